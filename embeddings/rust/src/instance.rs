//! One instance of the core, in which pools and sets live.

use crate::Error;
use crate::address::{self, AddressRange, Family};
use crate::raw::{Raw, Status, clamped};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

/// A buffer of this length holds the input and the output of every operation on one address.
const FIRST_EXCHANGE_BYTES: i32 = 4096;

/// An instance of the core: the memory of all its pools and sets.
///
/// It works on one thread at a time, and may move to another. Whatever is made in it is a small
/// handle, [`Pool`](crate::Pool) or [`RangeSet`](crate::RangeSet), whose methods take the core as
/// their first argument. Dropping the core frees everything.
pub struct Core {
    pub(crate) raw: Raw,
    /// Names the core and its copies, so that a handle of another core is refused.
    line: u64,
}

static LINES: AtomicU64 = AtomicU64::new(0);

impl Core {
    /// An empty instance. The first one decodes the module; later ones take microseconds.
    pub fn new() -> Result<Core, Error> {
        let mut raw = Raw::new();
        raw.exchange(FIRST_EXCHANGE_BYTES)?;
        let line = LINES.fetch_add(1, Ordering::Relaxed);
        Ok(Core { raw, line })
    }

    /// An equal instance, which goes its own way from here: what a pool or set held here, the same
    /// handle holds there.
    ///
    /// ```
    /// use berth_core::{Core, Policy, Pool};
    ///
    /// let mut core = Core::new()?;
    /// let pool = Pool::new(&mut core, &["10.0.0.0/24".parse()?], &[])?;
    /// let mut copy = core.copy()?;
    /// pool.allocate(&mut copy, Policy::Ascending)?;
    /// assert_eq!(pool.counts(&mut copy)?.used, 1);
    /// assert_eq!(pool.counts(&mut core)?.used, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn copy(&mut self) -> Result<Core, Error> {
        Ok(Core { raw: self.raw.copy()?, line: self.line })
    }

    /// The calls below the types: for ordinals, and for whoever counts calls. Handles are those of
    /// [`Pool::handle`](crate::Pool::handle) and [`RangeSet::handle`](crate::RangeSet::handle).
    pub fn raw(&mut self) -> &mut Raw {
        &mut self.raw
    }

    /// How much of the instance's memory is in use: bytes.
    pub fn state_bytes(&mut self) -> Result<usize, Error> {
        Ok(self.raw.state_bytes()? as usize)
    }

    /// Pools and sets that have not been dropped.
    pub fn live_objects(&mut self) -> Result<usize, Error> {
        Ok(self.raw.live_objects()? as usize)
    }

    #[inline]
    pub(crate) fn write_address(&mut self, address: IpAddr) {
        address::write(address, self.raw.buffer_mut());
    }

    #[inline]
    pub(crate) fn read_address(&self, family: Family) -> IpAddr {
        family.read(self.raw.buffer())
    }

    /// Calls a batch form for the addresses of the family: the outcome for each address, in their
    /// order, and `other` for those of the other family.
    pub(crate) fn each(
        &mut self,
        family: Family,
        addresses: &[IpAddr],
        other: i8,
        call: impl FnOnce(&mut Raw, i32) -> Result<i32, Error>,
    ) -> Result<Vec<i8>, Error> {
        let width = family.width();
        let of_family = |address: &&IpAddr| Family::of(**address) == family;
        let input = self.raw.reserve(addresses.len().saturating_mul(width))?;
        let mut items = input.chunks_exact_mut(width);
        let mut count = 0;
        for (address, item) in addresses.iter().filter(of_family).zip(&mut items) {
            address::write(*address, item);
            count += 1;
        }
        call(&mut self.raw, count)?;
        let mut outcomes = self.raw.buffer().iter().map(|byte| *byte as i8);
        let outcome = |address| match of_family(&address) {
            true => outcomes.next().unwrap_or(other),
            false => other,
        };
        Ok(addresses.iter().map(outcome).collect())
    }

    /// Writes packed addresses to the exchange buffer: how many they are.
    pub(crate) fn write_packed(
        &mut self,
        family: Family,
        packed: &[u8],
        operation: &'static str,
    ) -> Result<i32, Error> {
        if !packed.len().is_multiple_of(family.width()) {
            return Err(Error::refused(operation, Status::BadArgument));
        }
        self.raw.write(packed)?;
        Ok(clamped(packed.len() / family.width()))
    }

    /// A set that the caller drops, as the core's handle.
    pub(crate) fn set_of(&mut self, family: Family, ranges: &[AddressRange]) -> Result<i32, Error> {
        let width = family.width();
        let input = self.raw.reserve(ranges.len().saturating_mul(2 * width))?;
        for (range, item) in ranges.iter().zip(input.chunks_exact_mut(2 * width)) {
            if Family::of(range.first) != family || Family::of(range.last) != family {
                return Err(Error::refused("set_create", Status::BadFamily));
            }
            address::write(range.first, item);
            address::write(range.last, &mut item[width..]);
        }
        self.raw.set_create(family.number(), clamped(ranges.len()))
    }

    pub(crate) fn name(&self, handle: i32, family: Family) -> Handle {
        Handle { line: self.line, number: handle, family }
    }
}

/// What a pool or a set is on this side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Handle {
    line: u64,
    number: i32,
    pub(crate) family: Family,
}

impl Handle {
    /// The core's number for it. In a core of another line that number would be something else.
    #[inline]
    pub(crate) fn number_in(self, core: &Core, operation: &'static str) -> Result<i32, Error> {
        if self.line != core.line {
            return Err(Error::refused(operation, Status::BadHandle));
        }
        Ok(self.number)
    }

    pub(crate) fn number(self) -> i32 {
        self.number
    }
}
