//! The API of the crate, and what it does with hostile input.

mod batches;
mod cores;
mod hostile;
mod pools;
mod prefixes;
mod sets;
mod snapshots;

use berth_core::{AddressRange, Core, Error, Pool, Status};
use std::net::IpAddr;

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn ranges(texts: &[&str]) -> Vec<AddressRange> {
    texts.iter().map(|text| text.parse().expect("a range")).collect()
}

fn pool(core: &mut Core, of: &[&str], masked: &[&str]) -> Pool {
    Pool::new(core, &ranges(of), &ranges(masked)).expect("a pool")
}

fn status<T: std::fmt::Debug>(result: Result<T, Error>) -> Status {
    result.expect_err("a refusal").status().expect("a known status")
}
