//! What the list of calls, statuses and policies in `abi.rs` becomes.

/// The methods of [`Raw`](super::Raw), one for each export of the module.
macro_rules! exports {
    ($($(#[$doc:meta])* fn $name:ident($($parameter:ident: $type:ty),*);)*) => {
        impl Raw {
            $(
                $(#[$doc])*
                #[inline]
                pub fn $name(&mut self, $($parameter: $type),*) -> Result<i32, Error> {
                    match self.module.$name($($parameter as u32),*) as i32 {
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
