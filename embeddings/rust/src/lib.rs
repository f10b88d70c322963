//! An allocator of IP addresses: pools with policies, sets of ranges, prefixes, snapshots.
//!
//! The allocator is one WebAssembly module, the same in every language, so that the same calls give
//! the same addresses everywhere; this crate has it, and runs it in wasmi, an interpreter in Rust. It
//! knows no time, no chance and no files: seeds are arguments, and snapshots are bytes.
//!
#![doc = concat!("```\n", include_str!("../examples/first.rs"), "```")]
//!
//! [`Pool`] and [`RangeSet`] are handles, free to copy; what they name lives in a [`Core`], which
//! their methods take first. A core works on one thread at a time: to share it, put it behind a
//! mutex.

#![deny(missing_docs)]

mod address;
mod error;
mod instance;
mod pool;
mod prefix;
mod range_set;
pub mod raw;
mod size;

pub use address::{AddressRange, Family, ParseError};
pub use error::Error;
pub use instance::Core;
pub use pool::{Claim, Counts, Load, Policy, Pool, Release};
pub use prefix::Prefix;
pub use range_set::RangeSet;
pub use raw::Status;
pub use size::Size;
