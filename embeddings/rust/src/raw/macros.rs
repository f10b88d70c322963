//! What the list of calls, statuses and policies in `abi.rs` becomes.

/// The struct [`Raw`](super::Raw) with a method for each export of the module.
macro_rules! exports {
    ($($(#[$doc:meta])* fn $name:ident($($parameter:ident: $type:ty),*);)*) => {
        /// One instance of the core: every export as a method, and its memory.
        ///
        /// A method gives what the export gives, or [`Error::Refused`](crate::Error::Refused) when
        /// that is a status below 0; a trap, which is a bug of the core, panics. Input and output
        /// stand in the exchange buffer: [`write`](Raw::write), [`buffer`](Raw::buffer).
        pub struct Raw {
            pub(super) store: Store<()>,
            pub(super) memory: Memory,
            $($name: TypedFunc<($($type,)*), i32>,)*
        }

        impl Raw {
            pub(super) fn instantiate(module: &Module) -> Raw {
                let mut store = Store::new(module.engine(), ());
                let instance = Instance::new(&mut store, module, &[]).expect("it has no imports");
                Raw {
                    memory: instance.get_memory(&store, "memory").expect("the core's memory"),
                    $($name: instance
                        .get_typed_func(&store, stringify!($name))
                        .expect("an export of the core"),)*
                    store,
                }
            }

            $(
                $(#[$doc])*
                #[inline]
                pub fn $name(&mut self, $($parameter: $type),*) -> Result<i32, Error> {
                    let called = self.$name.call(&mut self.store, ($($parameter,)*));
                    match called.expect("the core does not trap") {
                        code if code < 0 => Err(Error::Refused { operation: stringify!($name), code }),
                        result => Ok(result),
                    }
                }
            )*

            /// Calls an export by its name, for tools that read calls from a file; each argument
            /// has the 32 bits of the parameter.
            pub fn call(&mut self, name: &str, arguments: &[i32]) -> Result<i32, Error> {
                match (name, arguments) {
                    $((stringify!($name), &[$($parameter),*]) => {
                        self.$name($($parameter as $type),*)
                    })*
                    _ => Err(Error::NoExport {
                        name: name.to_owned(),
                        arguments: arguments.len(),
                    }),
                }
            }
        }
    };
}

/// The enum [`Status`](super::Status).
macro_rules! statuses {
    ($($name:ident = $code:literal, $constant:literal, $doc:literal;)*) => {
        /// What the core says when it does not do what it was asked for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(i32)]
        pub enum Status {
            $(#[doc = $doc] $name = $code,)*
        }

        impl Status {
            /// The status with this code, if this version of the ABI has one.
            pub const fn from_code(code: i32) -> Option<Status> {
                match code {
                    $($code => Some(Status::$name),)*
                    _ => None,
                }
            }

            /// Its name in the ABI, such as `BAD_HANDLE`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Status::$name => $constant,)*
                }
            }

            /// What it means.
            pub const fn text(self) -> &'static str {
                match self {
                    $(Status::$name => $doc,)*
                }
            }
        }
    };
}

/// The enum [`Policy`](super::Policy).
macro_rules! policies {
    ($($name:ident = $number:literal, $doc:literal;)*) => {
        /// The policies of `pool_allocate`, as numbers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(i32)]
        pub enum Policy {
            $(#[doc = $doc] $name = $number,)*
        }
    };
}

pub(super) use {exports, policies, statuses};
