//! What can go wrong. "Taken", "outside" and "none is free" are answers, not errors.

use crate::raw::Status;
use std::fmt;

/// A failure: misuse, or a ceiling.
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
    /// [`Raw::call`](crate::raw::Raw::call) knows no export of this name with so many arguments.
    NoExport {
        /// The name.
        name: String,
        /// How many.
        arguments: usize,
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
            Error::NoExport { name, arguments } => {
                write!(formatter, "The core exports no {name} with {arguments} arguments")
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
