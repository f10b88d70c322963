//! What can go wrong. "Taken", "outside" and "none is free" are answers, not errors.

use crate::raw::Status;
use std::fmt;

/// A failure: misuse, a ceiling, or a module that is no core.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The core refused a call; see [`Error::status`] for why.
    Refused {
        /// The call's name in the ABI, such as `pool_create`.
        operation: &'static str,
        /// The status code, below 0.
        code: i32,
    },
    /// The bytes are no core, or one with another ABI.
    Module {
        /// What is wrong with them.
        reason: String,
    },
    /// The core ended in a trap. It never should: its memory may be inconsistent from here on.
    Trap {
        /// The call's name in the ABI.
        operation: &'static str,
        /// What the runtime says.
        reason: String,
    },
}

impl Error {
    /// Why the core refused; none for other errors, and for statuses of a newer ABI.
    pub fn status(&self) -> Option<Status> {
        match self {
            Error::Refused { code, .. } => Status::from_code(*code),
            _ => None,
        }
    }

    pub(crate) const fn refused(operation: &'static str, status: Status) -> Error {
        Error::Refused { operation, code: status as i32 }
    }

    pub(crate) fn module(error: &wasmtime::Error) -> Error {
        Error::Module { reason: format!("{error:#}") }
    }

    #[cold]
    pub(crate) fn trapped(operation: &'static str, error: &wasmtime::Error) -> Error {
        Error::Trap { operation, reason: format!("{error:#}") }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Refused { operation, code } => match Status::from_code(*code) {
                Some(status) => {
                    let (name, text) = (status.name(), status.text());
                    write!(formatter, "{operation} was refused with {name} ({code}): {text}")
                }
                None => write!(formatter, "{operation} was refused with the unknown status {code}"),
            },
            Error::Module { reason } => write!(formatter, "The module is no Berth core: {reason}"),
            Error::Trap { operation, reason } => {
                write!(formatter, "{operation} ended in a trap: {reason}")
            }
        }
    }
}

impl std::error::Error for Error {}

/// Turns one status into an answer: `Ok(None)` instead of the error.
pub(crate) fn unless<T>(status: Status, result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Error::Refused { code, .. }) if code == status as i32 => Ok(None),
        Err(error) => Err(error),
    }
}
