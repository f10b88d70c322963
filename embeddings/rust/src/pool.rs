//! Pools: which addresses are used, which is free next.

mod batch;
mod state;

pub use state::{Counts, Load};

use crate::address::{AddressRange, Family};
use crate::error::unless;
use crate::instance::Handle;
use crate::raw::{self, Status};
use crate::{Core, Error};
use std::net::IpAddr;

/// A pool of addresses of one family, kept in a [`Core`].
///
/// It has ranges, and masks: addresses that are never found free, such as a gateway. Addresses have
/// ordinals, ascending from 0; the first 2^24 are the window, in which the policies work. Those
/// beyond can be claimed one by one, and found by [`Pool::find_free_wide`].
///
/// It is a handle: copying it copies no pool. The pool lives until [`Pool::drop`], or as long as its
/// core. An address of the other family is outside every pool, an IPv4-mapped one outside those of
/// IPv4.
///
/// ```
/// use berth_core::{Core, Policy, Pool, Release};
///
/// let mut core = Core::new()?;
/// let pool = Pool::new(&mut core, &["2001:db8::/64".parse()?], &["2001:db8::".parse()?])?;
/// let address = pool.allocate(&mut core, Policy::Ascending)?.expect("one is free");
/// assert_eq!(address.to_string(), "2001:db8::1");
/// assert_eq!(pool.release(&mut core, address)?, Release::Released);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pool(Handle);

/// In which order the free addresses of the window are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// The lowest.
    Ascending,
    /// The next after the last one that this policy took.
    RoundRobin,
    /// The first at or after ordinal seed modulo the window: sticky, and spread out when the seed
    /// is a hash.
    Hashed(u32),
    /// Those never freed since [`Pool::track_freed`], ascending; then those freed longest ago.
    LeastRecentlyFreed,
}

impl Policy {
    /// As the core takes it: the policy and its argument.
    fn arguments(self) -> (i32, u32) {
        match self {
            Policy::Ascending => (raw::Policy::Ascending as i32, 0),
            Policy::RoundRobin => (raw::Policy::RoundRobin as i32, 0),
            Policy::Hashed(seed) => (raw::Policy::Hashed as i32, seed),
            Policy::LeastRecentlyFreed => (raw::Policy::LeastRecentlyFreed as i32, 0),
        }
    }
}

/// What [`Pool::claim`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Claim {
    /// It was free, and is used now.
    Claimed,
    /// It was used already.
    Taken,
    /// It is not in the pool's ranges.
    Outside,
}

/// What [`Pool::release`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Release {
    /// It was used, and is free now.
    Released,
    /// It was free already.
    Free,
    /// It is not in the pool's ranges.
    Outside,
}

impl Pool {
    /// A pool with nothing used. Ranges, and masks, may overlap and stand in any order.
    ///
    /// Its family, which it keeps, is that of the first range or mask; IPv4 without any.
    /// [`Status::BadFamily`] when they differ, [`Status::BadRange`] for a range that ends before it
    /// starts, [`Status::OverCeiling`] above the [ceilings](crate::raw).
    pub fn new(
        core: &mut Core,
        ranges: &[AddressRange],
        masks: &[AddressRange],
    ) -> Result<Pool, Error> {
        let first = ranges.first().or(masks.first());
        let family = first.map_or(Family::V4, |range| Family::of(range.first));
        let handle = with_sets(core, family, ranges, masks, |core, ranges, masks| {
            core.raw.pool_create(ranges, masks)
        })?;
        Ok(Pool(core.name(handle, family)))
    }

    /// Gives the pool another shape. What is used stays used wherever its address is in the new
    /// ranges, and is forgotten elsewhere. On an error nothing has changed.
    pub fn edit(
        self,
        core: &mut Core,
        ranges: &[AddressRange],
        masks: &[AddressRange],
    ) -> Result<(), Error> {
        let pool = self.number_in(core, "pool_edit")?;
        with_sets(core, self.family(), ranges, masks, |core, ranges, masks| {
            core.raw.pool_edit(pool, ranges, masks)
        })?;
        Ok(())
    }

    /// The family of its addresses.
    pub fn family(self) -> Family {
        self.0.family
    }

    /// The handle for the calls of [`Core::raw`].
    pub fn handle(self) -> i32 {
        self.0.number()
    }

    /// Takes the next free address by the policy; none when all are used or masked.
    #[inline]
    pub fn allocate(self, core: &mut Core, policy: Policy) -> Result<Option<IpAddr>, Error> {
        let pool = self.number_in(core, "pool_allocate")?;
        let (number, seed) = policy.arguments();
        // The batch form gives the address itself, in one call.
        if core.raw.pool_allocate_many(pool, number, seed, 1)? == 1 {
            return Ok(Some(core.read_address(self.family())));
        }
        // It does not tell whether addresses or memory ran out.
        let result = core.raw.pool_allocate(pool, number, seed);
        self.address_of(core, unless(Status::None, result)?)
    }

    /// The first free address at or after ordinal `seed` modulo the window, wrapping once. Takes
    /// nothing.
    pub fn find_free(self, core: &mut Core, seed: u32) -> Result<Option<IpAddr>, Error> {
        let pool = self.number_in(core, "pool_find")?;
        let found = unless(Status::None, core.raw.pool_find(pool, seed))?;
        self.address_of(core, found)
    }

    /// `count` free addresses that follow one another, the first a multiple of 2^`align_bits`, 0 to
    /// 24; in the window, from ordinal `seed` modulo the window on, wrapping once. Takes nothing.
    pub fn find_free_run(
        self,
        core: &mut Core,
        count: u32,
        align_bits: u32,
        seed: u32,
    ) -> Result<Option<AddressRange>, Error> {
        let pool = self.number_in(core, "pool_find_run")?;
        let (items, bits) = (raw::clamped(count as usize), raw::clamped(align_bits as usize));
        let found = unless(Status::None, core.raw.pool_find_run(pool, seed, items, bits))?;
        let Some(first) = self.address_of(core, found)? else {
            return Ok(None);
        };
        let last = self.address_of(core, found.map(|ordinal| ordinal + items - 1))?;
        Ok(last.map(|last| AddressRange { first, last }))
    }

    /// The first free address in hashed order over all ordinals, those beyond the window too, at or
    /// after the seed's low bits, as many as the largest ordinal has; wraps once. Takes nothing.
    pub fn find_free_wide(self, core: &mut Core, seed: u128) -> Result<Option<IpAddr>, Error> {
        let pool = self.number_in(core, "pool_find_wide")?;
        core.raw.write(&seed.to_be_bytes())?;
        let found = unless(Status::None, core.raw.pool_find_wide(pool))?;
        Ok(found.map(|_| core.read_address(self.family())))
    }

    /// Marks an address used. A masked one can be marked, too: ask [`Pool::contains`] first where
    /// that matters.
    #[inline]
    pub fn claim(self, core: &mut Core, address: IpAddr) -> Result<Claim, Error> {
        let pool = self.number_in(core, "pool_claim")?;
        if !self.pass(core, address) {
            return Ok(Claim::Outside);
        }
        Ok(match unless(Status::Outside, core.raw.pool_claim(pool))? {
            None => Claim::Outside,
            Some(0) => Claim::Taken,
            Some(_) => Claim::Claimed,
        })
    }

    /// Marks an address not used.
    #[inline]
    pub fn release(self, core: &mut Core, address: IpAddr) -> Result<Release, Error> {
        let pool = self.number_in(core, "pool_release")?;
        if !self.pass(core, address) {
            return Ok(Release::Outside);
        }
        Ok(match unless(Status::Outside, core.raw.pool_release(pool))? {
            None => Release::Outside,
            Some(0) => Release::Free,
            Some(_) => Release::Released,
        })
    }

    /// Whether the address is used, masked or not.
    #[inline]
    pub fn test(self, core: &mut Core, address: IpAddr) -> Result<bool, Error> {
        let pool = self.number_in(core, "pool_test")?;
        if !self.pass(core, address) {
            return Ok(false);
        }
        Ok(unless(Status::Outside, core.raw.pool_test(pool))? == Some(1))
    }

    /// Whether the address can be allocated: it is in the ranges and not masked.
    #[inline]
    pub fn contains(self, core: &mut Core, address: IpAddr) -> Result<bool, Error> {
        let pool = self.number_in(core, "pool_contains")?;
        Ok(self.pass(core, address) && core.raw.pool_contains(pool)? == 1)
    }

    /// From now on remembers the order in which addresses of the window become free, for
    /// [`Policy::LeastRecentlyFreed`].
    pub fn track_freed(self, core: &mut Core) -> Result<(), Error> {
        let pool = self.number_in(core, "pool_track_freed")?;
        core.raw.pool_track_freed(pool)?;
        Ok(())
    }

    /// Ends the pool and gives its memory back; every later use is [`Status::BadHandle`].
    pub fn drop(self, core: &mut Core) -> Result<(), Error> {
        let pool = self.number_in(core, "drop")?;
        core.raw.drop(pool)?;
        Ok(())
    }

    #[inline]
    fn number_in(self, core: &Core, operation: &'static str) -> Result<i32, Error> {
        self.0.number_in(core, operation)
    }

    /// Writes the address where the core reads it; false when its family is not the pool's.
    #[inline]
    fn pass(self, core: &mut Core, address: IpAddr) -> bool {
        let is_of_family = Family::of(address) == self.family();
        if is_of_family {
            core.write_address(address);
        }
        is_of_family
    }

    fn address_of(self, core: &mut Core, ordinal: Option<i32>) -> Result<Option<IpAddr>, Error> {
        let Some(ordinal) = ordinal else {
            return Ok(None);
        };
        core.raw.pool_address(self.0.number(), ordinal as u32)?;
        Ok(Some(core.read_address(self.family())))
    }

    /// The ordinal of an address of the window.
    fn ordinal_of(self, core: &mut Core, address: IpAddr) -> Result<Option<u32>, Error> {
        if !self.pass(core, address) {
            return Ok(None);
        }
        let found = unless(Status::Outside, core.raw.pool_ordinal(self.0.number()))?;
        Ok(found.map(|ordinal| ordinal as u32))
    }
}

/// Calls `make` with the handles of two sets, which end with it.
fn with_sets<T>(
    core: &mut Core,
    family: Family,
    ranges: &[AddressRange],
    masks: &[AddressRange],
    make: impl FnOnce(&mut Core, i32, i32) -> Result<T, Error>,
) -> Result<T, Error> {
    let ranges = core.set_of(family, ranges)?;
    let result = core.set_of(family, masks).and_then(|masks| {
        let result = make(core, ranges, masks);
        core.raw.drop(masks).and(result)
    });
    core.raw.drop(ranges).and(result)
}
