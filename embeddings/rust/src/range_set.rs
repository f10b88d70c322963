//! Sets of addresses.

use crate::address::{self, AddressRange, Family};
use crate::instance::Handle;
use crate::raw::{Raw, Status, clamped};
use crate::{Core, Error, Prefix, Size};
use std::net::IpAddr;

/// A set of addresses of one family, kept in a [`Core`]: algebra, membership, size, and the
/// shortest list of prefixes.
///
/// It is a handle: copying it copies no addresses. The set lives until [`RangeSet::drop`], or as
/// long as its core.
///
/// ```
/// use berth_core::{Core, Family, RangeSet};
///
/// let mut core = Core::new()?;
/// let all = RangeSet::new(&mut core, Family::V4, &["10.0.0.0/24".parse()?])?;
/// let gateway = RangeSet::new(&mut core, Family::V4, &["10.0.0.1".parse()?])?;
/// let rest = all.subtract(&mut core, gateway)?;
/// assert_eq!(rest.size(&mut core)?, 255);
/// assert_eq!(rest.prefixes(&mut core)?.len(), 8);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RangeSet(Handle);

impl RangeSet {
    /// The addresses of the ranges, which may overlap and stand in any order.
    ///
    /// [`Status::BadFamily`] for a range of the other family, [`Status::BadRange`] for one that
    /// ends before it starts.
    pub fn new(
        core: &mut Core,
        family: Family,
        ranges: &[AddressRange],
    ) -> Result<RangeSet, Error> {
        let handle = core.set_of(family, ranges)?;
        Ok(RangeSet::adopt(core, handle, family))
    }

    /// The addresses of the prefixes, which may overlap and stand in any order.
    pub fn from_prefixes(
        core: &mut Core,
        family: Family,
        prefixes: &[Prefix],
    ) -> Result<RangeSet, Error> {
        let item = family.width() + 1;
        let input = core.raw.reserve(prefixes.len().saturating_mul(item))?;
        for (prefix, bytes) in prefixes.iter().zip(input.chunks_exact_mut(item)) {
            if prefix.family() != family {
                return Err(Error::refused("set_create_prefixes", Status::BadFamily));
            }
            address::write(prefix.address(), bytes);
            bytes[item - 1] = prefix.length();
        }
        let count = clamped(prefixes.len());
        let handle = core.raw.set_create_prefixes(family.number(), count)?;
        Ok(RangeSet::adopt(core, handle, family))
    }

    pub(crate) fn adopt(core: &Core, handle: i32, family: Family) -> RangeSet {
        RangeSet(core.name(handle, family))
    }

    /// The family of its addresses.
    pub fn family(self) -> Family {
        self.0.family
    }

    /// The handle for the calls of [`Core::raw`].
    pub fn handle(self) -> i32 {
        self.0.number()
    }

    /// The addresses of either set.
    pub fn union(self, core: &mut Core, other: RangeSet) -> Result<RangeSet, Error> {
        self.derive(core, other, "set_union", Raw::set_union)
    }

    /// The addresses of both sets.
    pub fn intersect(self, core: &mut Core, other: RangeSet) -> Result<RangeSet, Error> {
        self.derive(core, other, "set_intersect", Raw::set_intersect)
    }

    /// The addresses of this set that are not in the other.
    pub fn subtract(self, core: &mut Core, other: RangeSet) -> Result<RangeSet, Error> {
        self.derive(core, other, "set_subtract", Raw::set_subtract)
    }

    /// Whether the sets share an address.
    pub fn overlaps(self, core: &mut Core, other: RangeSet) -> Result<bool, Error> {
        let (a, b) = self.pair(core, other, "set_overlaps")?;
        Ok(core.raw.set_overlaps(a, b)? == 1)
    }

    /// Whether every address of the other set is in this one.
    pub fn includes(self, core: &mut Core, other: RangeSet) -> Result<bool, Error> {
        let (a, b) = self.pair(core, other, "set_includes")?;
        Ok(core.raw.set_includes(a, b)? == 1)
    }

    /// Whether the address is in the set. One of the other family is not.
    pub fn contains(self, core: &mut Core, address: IpAddr) -> Result<bool, Error> {
        let set = self.0.number_in(core, "set_contains")?;
        if Family::of(address) != self.family() {
            return Ok(false);
        }
        core.write_address(address);
        Ok(core.raw.set_contains(set)? == 1)
    }

    /// [`RangeSet::contains`] for each address, in one call.
    pub fn contains_many(self, core: &mut Core, addresses: &[IpAddr]) -> Result<Vec<bool>, Error> {
        let set = self.0.number_in(core, "set_contains_many")?;
        let call = |raw: &mut Raw, count| raw.set_contains_many(set, count);
        let outcomes = core.each(self.family(), addresses, 0, call)?;
        Ok(outcomes.into_iter().map(|outcome| outcome == 1).collect())
    }

    /// How many of the packed addresses, 4 or 16 big-endian bytes each, are in the set. A byte for
    /// each, 1 or 0, is at the start of [`Raw::buffer`] then.
    pub fn contains_packed(self, core: &mut Core, packed: &[u8]) -> Result<usize, Error> {
        let set = self.0.number_in(core, "set_contains_many")?;
        let count = core.write_packed(self.family(), packed, "set_contains_many")?;
        Ok(core.raw.set_contains_many(set, count)? as usize)
    }

    /// The number of ranges that [`RangeSet::ranges`] gives.
    pub fn range_count(self, core: &mut Core) -> Result<usize, Error> {
        let set = self.0.number_in(core, "set_count")?;
        Ok(core.raw.set_count(set)? as usize)
    }

    /// The number of addresses.
    pub fn size(self, core: &mut Core) -> Result<Size, Error> {
        let set = self.0.number_in(core, "set_size")?;
        core.raw.set_size(set)?;
        Ok(Size::read(&address::array(core.raw.buffer())))
    }

    /// The fewest ranges, ascending; no two overlap or touch.
    pub fn ranges(self, core: &mut Core) -> Result<Vec<AddressRange>, Error> {
        let set = self.0.number_in(core, "set_ranges")?;
        let count = core.raw.set_ranges(set)? as usize;
        let (family, width) = (self.family(), self.family().width());
        let items = core.raw.buffer().chunks_exact(2 * width).take(count);
        let range = |item: &[u8]| AddressRange {
            first: family.read(item),
            last: family.read(&item[width..]),
        };
        Ok(items.map(range).collect())
    }

    /// The fewest prefixes that cover exactly this set, ascending.
    pub fn prefixes(self, core: &mut Core) -> Result<Vec<Prefix>, Error> {
        let set = self.0.number_in(core, "set_prefixes")?;
        let count = core.raw.set_prefixes(set)? as usize;
        let (family, width) = (self.family(), self.family().width());
        let items = core.raw.buffer().chunks_exact(width + 1).take(count);
        Ok(items.filter_map(|item| Prefix::new(family.read(item), item[width])).collect())
    }

    /// Ends the set and gives its memory back; every later use is [`Status::BadHandle`].
    pub fn drop(self, core: &mut Core) -> Result<(), Error> {
        let set = self.0.number_in(core, "drop")?;
        core.raw.drop(set)?;
        Ok(())
    }

    fn pair(
        self,
        core: &Core,
        other: RangeSet,
        operation: &'static str,
    ) -> Result<(i32, i32), Error> {
        Ok((self.0.number_in(core, operation)?, other.0.number_in(core, operation)?))
    }

    fn derive(
        self,
        core: &mut Core,
        other: RangeSet,
        operation: &'static str,
        call: fn(&mut Raw, i32, i32) -> Result<i32, Error>,
    ) -> Result<RangeSet, Error> {
        let (a, b) = self.pair(core, other, operation)?;
        let handle = call(&mut core.raw, a, b)?;
        Ok(RangeSet::adopt(core, handle, self.family()))
    }
}
