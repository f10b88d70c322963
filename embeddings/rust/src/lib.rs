//! An allocator of IP addresses: pools with policies, sets of ranges, prefixes, snapshots.
#![doc = include_str!("../README.md")]

pub mod raw;

pub use raw::{Error, Policy, Prefix, Range, Raw, Status};

use raw::{family, read, size, width};

use std::net::IpAddr;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An instance of the core, in which pools and sets live; they meet only what lives in the same
/// one. A clone is the same instance. Threads may share it: each call takes its lock.
#[derive(Clone, Default)]
pub struct Core(Arc<Mutex<Raw>>);

impl Core {
    /// The calls below the types, for what these leave out, such as batches.
    pub fn raw<T>(&self, call: impl FnOnce(&mut Raw) -> T) -> T {
        call(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Raw> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A pool with nothing used. Masked addresses (reserved, gateways) are never found free, but
    /// may be claimed. Ranges and masks are of one family, and may overlap.
    pub fn pool(&self, ranges: &[Range], masks: &[Range]) -> Result<Pool, Error> {
        let width = ranges.first().or(masks.first()).map_or(4, |range| width(range.start()));
        let (ranges, masks) = (self.set(width, ranges)?, self.set(width, masks)?);
        let handle = self.lock().pool_create(ranges.handle, masks.handle)?;
        Ok(Pool(Object { core: self.clone(), width, handle }))
    }

    /// A set of ranges of one family, which may overlap and stand in any order.
    pub fn range_set(&self, ranges: &[Range]) -> Result<RangeSet, Error> {
        self.set(ranges.first().map_or(4, |range| width(range.start())), ranges)
    }

    fn set(&self, width: usize, ranges: &[Range]) -> Result<RangeSet, Error> {
        let ends = ranges.iter().flat_map(|range| [*range.start(), *range.end()]);
        let mut raw = self.lock();
        raw.pass(width, ends)?;
        let handle = raw.set_create(family(width), ranges.len() as i32)?;
        Ok(RangeSet(Object { core: self.clone(), width, handle }))
    }

    /// The lowest address of the prefix.
    pub fn prefix_first(&self, prefix: Prefix) -> Result<IpAddr, Error> {
        self.prefix(prefix, Raw::prefix_first)
    }

    /// The highest address of the prefix.
    pub fn prefix_last(&self, prefix: Prefix) -> Result<IpAddr, Error> {
        self.prefix(prefix, Raw::prefix_last)
    }

    /// The network mask, such as 255.255.255.0 for a length of 24.
    pub fn prefix_mask(&self, prefix: Prefix) -> Result<IpAddr, Error> {
        self.prefix(prefix, Raw::prefix_mask)
    }

    /// The prefix of the same length after this one; none after the last.
    pub fn prefix_next(&self, prefix: Prefix) -> Result<Option<Prefix>, Error> {
        let address = found(self.prefix(prefix, Raw::prefix_next))?;
        Ok(address.map(|address| Prefix { address, ..prefix }))
    }

    /// Part `index`, from 0, of the prefix when it is split into prefixes of that length.
    pub fn prefix_part(&self, whole: Prefix, bits: u8, index: u32) -> Result<Option<Prefix>, Error> {
        let part = |raw: &mut Raw, family, length| raw.prefix_part(family, length, bits.into(), index);
        let address = found(self.prefix(whole, part))?;
        Ok(address.map(|address| Prefix { address, length: bits }))
    }

    /// The longest prefix that holds both addresses, which are of one family.
    pub fn prefix_common(&self, a: IpAddr, b: IpAddr) -> Result<Prefix, Error> {
        let mut raw = self.lock();
        raw.pass(width(&a), [a, b])?;
        let length = raw.prefix_common(family(width(&a)))? as u8;
        drop(raw);
        Ok(Prefix { address: self.prefix_first(Prefix { address: a, length })?, length })
    }

    fn prefix(
        &self,
        Prefix { address, length }: Prefix,
        call: impl FnOnce(&mut Raw, i32, i32) -> Result<i32, Error>,
    ) -> Result<IpAddr, Error> {
        let (mut raw, width) = (self.lock(), width(&address));
        raw.pass(width, [address])?;
        call(&mut raw, family(width), length.into())?;
        Ok(read(raw.output(), width))
    }
}

/// Turns "none" and "outside" into answers.
fn found<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Err(Error { status: Status::None | Status::Outside, .. }) => Ok(None),
        result => result.map(Some),
    }
}

/// What a pool or a set is in its core. Dropping it gives its memory back.
pub struct Object {
    core: Core,
    width: usize,
    handle: i32,
}

impl Drop for Object {
    fn drop(&mut self) {
        let _ = Raw::drop(&mut self.core.lock(), self.handle);
    }
}

impl Object {
    /// What the calls of [`Core::raw`] name it by.
    pub fn handle(&self) -> i32 {
        self.handle
    }

    fn call(&self, call: fn(&mut Raw, i32) -> Result<i32, Error>) -> Result<(MutexGuard<'_, Raw>, usize), Error> {
        let mut raw = self.core.lock();
        let result = call(&mut raw, self.handle)?;
        Ok((raw, result as usize))
    }

    /// The answer to a question about an address; none for one that is outside, or of another family.
    fn ask(&self, address: IpAddr, call: fn(&mut Raw, i32) -> Result<i32, Error>) -> Result<Option<i32>, Error> {
        if width(&address) != self.width {
            return Ok(None);
        }
        let mut raw = self.core.lock();
        raw.pass(self.width, [address])?;
        found(call(&mut raw, self.handle))
    }

    fn set(&self, handle: i32) -> RangeSet {
        RangeSet(Object { core: self.core.clone(), width: self.width, handle })
    }
}

/// A set of addresses of one family.
pub struct RangeSet(Object);

impl Deref for RangeSet {
    type Target = Object;

    fn deref(&self) -> &Object {
        &self.0
    }
}

impl RangeSet {
    fn with(&self, other: &RangeSet, call: fn(&mut Raw, i32, i32) -> Result<i32, Error>) -> Result<i32, Error> {
        call(&mut self.core.lock(), self.handle, other.handle)
    }

    /// The addresses of either set.
    pub fn union(&self, other: &RangeSet) -> Result<RangeSet, Error> {
        Ok(self.set(self.with(other, Raw::set_union)?))
    }

    /// The addresses of both sets.
    pub fn intersect(&self, other: &RangeSet) -> Result<RangeSet, Error> {
        Ok(self.set(self.with(other, Raw::set_intersect)?))
    }

    /// The addresses of this set that are not in the other.
    pub fn subtract(&self, other: &RangeSet) -> Result<RangeSet, Error> {
        Ok(self.set(self.with(other, Raw::set_subtract)?))
    }

    /// Whether the sets share an address.
    pub fn overlaps(&self, other: &RangeSet) -> Result<bool, Error> {
        Ok(self.with(other, Raw::set_overlaps)? == 1)
    }

    /// Whether every address of the other set is in this one.
    pub fn includes(&self, other: &RangeSet) -> Result<bool, Error> {
        Ok(self.with(other, Raw::set_includes)? == 1)
    }

    /// Whether the address is in the set. One of the other family is not.
    pub fn contains(&self, address: IpAddr) -> Result<bool, Error> {
        Ok(self.ask(address, Raw::set_contains)? == Some(1))
    }

    /// The number of addresses; that of all IPv6 addresses is one too small.
    pub fn size(&self) -> Result<u128, Error> {
        Ok(size(self.call(Raw::set_size)?.0.output()))
    }

    /// The fewest ranges, ascending.
    pub fn ranges(&self) -> Result<Vec<Range>, Error> {
        let (mut raw, count) = self.call(Raw::set_ranges)?;
        let range = |item: &[u8]| read(item, self.width)..=read(&item[self.width..], self.width);
        Ok(raw.output().chunks_exact(2 * self.width).take(count).map(range).collect())
    }

    /// The fewest prefixes that cover exactly this set, ascending.
    pub fn prefixes(&self) -> Result<Vec<Prefix>, Error> {
        let (mut raw, count) = self.call(Raw::set_prefixes)?;
        let prefix = |item: &[u8]| Prefix { address: read(item, self.width), length: item[self.width] };
        Ok(raw.output().chunks_exact(self.width + 1).take(count).map(prefix).collect())
    }
}

/// Which addresses of some ranges are used, and which is free next. The first 2^24 are its window,
/// in which the policies work; those beyond can be claimed, and found by [`Pool::find_free_wide`].
pub struct Pool(Object);

impl Deref for Pool {
    type Target = Object;

    fn deref(&self) -> &Object {
        &self.0
    }
}

/// What became of an address: `Claimed` and `Released` are changes, at `Taken` and `Free` it was so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    Claimed,
    Taken,
    Released,
    Free,
    Outside,
}

/// What a pool holds: addresses that are not masked (`total`), not used either (`free`), used,
/// used though masked, in the window, and used beyond the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    pub total: u128,
    pub free: u128,
    pub used: u32,
    pub used_masked: u32,
    pub window: u32,
    pub beyond: u32,
}

impl Pool {
    /// Gives the pool other ranges and masks. What is used stays used wherever its address is in
    /// the new ranges. On an error nothing has changed.
    pub fn edit(&self, ranges: &[Range], masks: &[Range]) -> Result<(), Error> {
        let (ranges, masks) = (self.core.set(self.width, ranges)?, self.core.set(self.width, masks)?);
        self.core.lock().pool_edit(self.handle, ranges.handle, masks.handle).map(|_| ())
    }

    /// The address of the ordinal that a call has found.
    fn at(&self, ordinal: Result<i32, Error>) -> Result<Option<IpAddr>, Error> {
        let Some(ordinal) = found(ordinal)? else { return Ok(None) };
        let mut raw = self.core.lock();
        raw.pool_address(self.handle, ordinal as u32)?;
        Ok(Some(read(raw.output(), self.width)))
    }

    /// Takes the next free address of the window by the policy. The seed is for [`Policy::Hashed`].
    pub fn allocate(&self, policy: Policy, seed: u32) -> Result<Option<IpAddr>, Error> {
        let ordinal = self.core.lock().pool_allocate(self.handle, policy as i32, seed);
        self.at(ordinal)
    }

    /// From now on remembers the order of release, for [`Policy::LeastRecentlyFreed`].
    pub fn track_freed(&self) -> Result<(), Error> {
        self.call(Raw::pool_track_freed).map(|_| ())
    }

    /// The first free address at or after ordinal `seed` modulo the window, wrapping once.
    pub fn find_free(&self, seed: u32) -> Result<Option<IpAddr>, Error> {
        let ordinal = self.core.lock().pool_find(self.handle, seed);
        self.at(ordinal)
    }

    /// The first free address in hashed order over all addresses, from the seed's low bits on.
    pub fn find_free_wide(&self, seed: u128) -> Result<Option<IpAddr>, Error> {
        let mut raw = self.core.lock();
        raw.write(&seed.to_be_bytes())?;
        let is_found = found(raw.pool_find_wide(self.handle))?.is_some();
        Ok(is_found.then(|| read(raw.output(), self.width)))
    }

    /// Whether the address can be allocated: it is in the ranges and not masked.
    pub fn contains(&self, address: IpAddr) -> Result<bool, Error> {
        Ok(self.ask(address, Raw::pool_contains)? == Some(1))
    }

    /// Whether the address is used, masked or not.
    pub fn test(&self, address: IpAddr) -> Result<bool, Error> {
        Ok(self.ask(address, Raw::pool_test)? == Some(1))
    }

    /// Marks an address used, a masked one too.
    pub fn claim(&self, address: IpAddr) -> Result<Outcome, Error> {
        let result = self.ask(address, Raw::pool_claim)?.unwrap_or(2);
        Ok([Outcome::Taken, Outcome::Claimed, Outcome::Outside][result as usize])
    }

    /// Marks an address not used.
    pub fn release(&self, address: IpAddr) -> Result<Outcome, Error> {
        let result = self.ask(address, Raw::pool_release)?.unwrap_or(2);
        Ok([Outcome::Free, Outcome::Released, Outcome::Outside][result as usize])
    }

    /// What the pool holds, in numbers.
    pub fn counts(&self) -> Result<Counts, Error> {
        use raw::counts::{BEYOND, MASKED, SIZE, USED, USED_MASKED, WINDOW};
        let (mut raw, _) = self.call(Raw::pool_counts)?;
        let bytes = raw.output();
        let word = |at| u32::from_le_bytes(*bytes[at..].first_chunk().expect("4 bytes"));
        let (used, used_masked, window, beyond) = (word(USED), word(USED_MASKED), word(WINDOW), word(BEYOND));
        let total = size(&bytes[SIZE..]) - size(&bytes[MASKED..]);
        let free = total - u128::from(used - used_masked);
        Ok(Counts { total, free, used, used_masked, window, beyond })
    }

    /// The used addresses, masked or not.
    pub fn used(&self) -> Result<RangeSet, Error> {
        Ok(self.set(self.call(Raw::pool_used)?.1 as i32))
    }

    /// What is used, for [`Pool::load`] of a pool with the same ranges; without masks and the order
    /// of release.
    pub fn save(&self) -> Result<Vec<u8>, Error> {
        let (mut raw, length) = self.call(Raw::pool_save)?;
        Ok(raw.output()[..length].to_vec())
    }

    /// Replaces what is used by what [`Pool::save`] gave. Refusals are [`Status::BadSnapshot`],
    /// [`Status::OtherVersion`] and [`Status::OtherPool`].
    pub fn load(&self, snapshot: &[u8]) -> Result<(), Error> {
        let mut raw = self.core.lock();
        raw.write(snapshot)?;
        raw.pool_load(self.handle, snapshot.len() as i32).map(|_| ())
    }
}
