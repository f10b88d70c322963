//! Many addresses of a pool in one call.

use super::{Claim, Policy, Pool, Release};
use crate::address::{AddressRange, number};
use crate::raw::{Raw, Status, clamped};
use crate::{Core, Error};
use std::net::IpAddr;

/// What a batch form says of an address outside the ranges.
const OUTSIDE: i8 = Status::Outside as i8;

type Call = fn(&mut Raw, i32, i32) -> Result<i32, Error>;

impl Pool {
    /// Takes up to `count` addresses by the policy; fewer when no more are free.
    pub fn allocate_many(
        self,
        core: &mut Core,
        policy: Policy,
        count: usize,
    ) -> Result<Vec<IpAddr>, Error> {
        let family = self.family();
        let packed = self.allocate_packed(core, policy, count)?;
        Ok(packed.chunks_exact(family.width()).map(|bytes| family.read(bytes)).collect())
    }

    /// Like [`Pool::allocate_many`], as 4 or 16 big-endian bytes each, where the core has written
    /// them.
    pub fn allocate_packed(
        self,
        core: &mut Core,
        policy: Policy,
        count: usize,
    ) -> Result<&[u8], Error> {
        let pool = self.number_in(core, "pool_allocate_many")?;
        let (policy, seed) = policy.arguments();
        let taken = core.raw.pool_allocate_many(pool, policy, seed, clamped(count))? as usize;
        Ok(&core.raw.buffer()[..taken * self.family().width()])
    }

    /// [`Pool::claim`] for each address. After an error, those before the failure are done.
    pub fn claim_many(self, core: &mut Core, addresses: &[IpAddr]) -> Result<Vec<Claim>, Error> {
        let outcomes = self.each(core, "pool_claim_many", Raw::pool_claim_many, addresses)?;
        let claim = |outcome| match outcome {
            OUTSIDE => Claim::Outside,
            0 => Claim::Taken,
            _ => Claim::Claimed,
        };
        Ok(outcomes.into_iter().map(claim).collect())
    }

    /// [`Pool::release`] for each address.
    pub fn release_many(
        self,
        core: &mut Core,
        addresses: &[IpAddr],
    ) -> Result<Vec<Release>, Error> {
        let outcomes = self.each(core, "pool_release_many", Raw::pool_release_many, addresses)?;
        let release = |outcome| match outcome {
            OUTSIDE => Release::Outside,
            0 => Release::Free,
            _ => Release::Released,
        };
        Ok(outcomes.into_iter().map(release).collect())
    }

    /// [`Pool::test`] for each address.
    pub fn test_many(self, core: &mut Core, addresses: &[IpAddr]) -> Result<Vec<bool>, Error> {
        let outcomes = self.each(core, "pool_test_many", Raw::pool_test_many, addresses)?;
        Ok(outcomes.into_iter().map(|outcome| outcome == 1).collect())
    }

    /// [`Pool::contains`] for each address.
    pub fn contains_many(self, core: &mut Core, addresses: &[IpAddr]) -> Result<Vec<bool>, Error> {
        let outcomes = self.each(core, "pool_contains_many", Raw::pool_contains_many, addresses)?;
        Ok(outcomes.into_iter().map(|outcome| outcome == 1).collect())
    }

    /// Marks packed addresses used, 4 or 16 big-endian bytes each: how many are newly marked.
    ///
    /// A byte for each is at the start of [`Raw::buffer`] then: 1 newly marked, 0 it was used, else
    /// the low byte of a status. After an error, those before the failure are done.
    pub fn claim_packed(self, core: &mut Core, packed: &[u8]) -> Result<usize, Error> {
        self.packed(core, "pool_claim_many", Raw::pool_claim_many, packed)
    }

    /// Marks packed addresses not used: how many were used. Otherwise like [`Pool::claim_packed`].
    pub fn release_packed(self, core: &mut Core, packed: &[u8]) -> Result<usize, Error> {
        self.packed(core, "pool_release_many", Raw::pool_release_many, packed)
    }

    /// How many of the packed addresses are used. Otherwise like [`Pool::claim_packed`].
    pub fn test_packed(self, core: &mut Core, packed: &[u8]) -> Result<usize, Error> {
        self.packed(core, "pool_test_many", Raw::pool_test_many, packed)
    }

    /// How many of the packed addresses can be allocated. Otherwise like [`Pool::claim_packed`].
    pub fn contains_packed(self, core: &mut Core, packed: &[u8]) -> Result<usize, Error> {
        self.packed(core, "pool_contains_many", Raw::pool_contains_many, packed)
    }

    /// Marks a range of the window used, all of it or nothing: [`Claim::Taken`] when one address is
    /// used or masked, [`Claim::Outside`] when one is not in the ranges or beyond the window.
    pub fn claim_run(self, core: &mut Core, run: AddressRange) -> Result<Claim, Error> {
        let pool = self.number_in(core, "pool_claim_run")?;
        let Some((first, count)) = self.ordinals_of(core, "pool_claim_run", run)? else {
            return Ok(Claim::Outside);
        };
        Ok(match core.raw.pool_claim_run(pool, first, count)? {
            0 => Claim::Taken,
            _ => Claim::Claimed,
        })
    }

    /// Marks a range of the window not used: how many of its addresses were used. None when one is
    /// not in the ranges or beyond the window; then nothing has changed.
    pub fn release_run(self, core: &mut Core, run: AddressRange) -> Result<Option<u32>, Error> {
        let pool = self.number_in(core, "pool_release_run")?;
        let Some((first, count)) = self.ordinals_of(core, "pool_release_run", run)? else {
            return Ok(None);
        };
        Ok(Some(core.raw.pool_release_run(pool, first, count)? as u32))
    }

    /// First ordinal and number of ordinals of a run, if its addresses are all in the window. Where
    /// ranges have a gap, ordinals go on and addresses do not.
    fn ordinals_of(
        self,
        core: &mut Core,
        operation: &'static str,
        run: AddressRange,
    ) -> Result<Option<(u32, i32)>, Error> {
        let first = self.ordinal_of(core, run.first)?;
        let last = self.ordinal_of(core, run.last)?;
        let (Some(first), Some(last)) = (first, last) else {
            return Ok(None);
        };
        let Some(distance) = number(run.last).checked_sub(number(run.first)) else {
            return Err(Error::refused(operation, Status::BadRange));
        };
        let whole = distance == u128::from(last - first);
        Ok(whole.then_some((first, (last - first + 1) as i32)))
    }

    fn each(
        self,
        core: &mut Core,
        operation: &'static str,
        call: Call,
        addresses: &[IpAddr],
    ) -> Result<Vec<i8>, Error> {
        let pool = self.number_in(core, operation)?;
        let one = |raw: &mut Raw, count| call(raw, pool, count);
        core.each(self.family(), addresses, OUTSIDE, one)
    }

    fn packed(
        self,
        core: &mut Core,
        operation: &'static str,
        call: Call,
        packed: &[u8],
    ) -> Result<usize, Error> {
        let pool = self.number_in(core, operation)?;
        let count = core.write_packed(self.family(), packed, operation)?;
        Ok(call(&mut core.raw, pool, count)? as usize)
    }
}
