//! What a pool holds: numbers, sets, snapshots.

use super::Pool;
use crate::address::array;
use crate::raw::{Raw, Status, clamped, counts};
use crate::{Core, Error, RangeSet, Size};

/// What a pool holds, in numbers of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// In the ranges and not masked.
    pub total: Size,
    /// Used, masked or not.
    pub used: u32,
    /// Of those, masked.
    pub used_masked: u32,
    /// Neither used nor masked.
    pub free: Size,
    /// Neither used nor masked, in the window.
    pub window_free: u32,
    /// In the window: at most 2^24.
    pub window: u32,
    /// Used, beyond the window.
    pub beyond: u32,
    /// Names the ranges: pools with the same ranges have the same, and take each other's snapshots.
    pub digest: u64,
}

/// What [`Pool::load`] made of a snapshot; but for `Loaded`, the pool is as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Load {
    /// The pool holds what the snapshot says.
    Loaded,
    /// The snapshot is damaged or cut short.
    Damaged,
    /// The snapshot has another version of the format.
    OtherVersion,
    /// The snapshot is sound, and of a pool with other ranges.
    OtherPool,
}

impl Pool {
    /// What the pool holds, in numbers.
    pub fn counts(self, core: &mut Core) -> Result<Counts, Error> {
        let pool = self.number_in(core, "pool_counts")?;
        core.raw.pool_counts(pool)?;
        let bytes = core.raw.buffer();
        let size = |at: usize| Size::read(&array(&bytes[at..]));
        let u32_at = |at: usize| u32::from_le_bytes(array(&bytes[at..]));
        let total = size(counts::SIZE).less(size(counts::MASKED));
        let (used, used_masked) = (u32_at(counts::USED), u32_at(counts::USED_MASKED));
        Ok(Counts {
            total,
            used,
            used_masked,
            free: total.less(u128::from(used - used_masked).into()),
            window_free: u32_at(counts::FREE),
            window: u32_at(counts::WINDOW),
            beyond: u32_at(counts::BEYOND),
            digest: u64::from_le_bytes(array(&bytes[counts::DIGEST..])),
        })
    }

    /// Free addresses in each block of 4,096 ordinals of the window; the last block may be shorter.
    pub fn free_per_block(self, core: &mut Core) -> Result<Vec<u16>, Error> {
        let pool = self.number_in(core, "pool_blocks")?;
        let blocks = core.raw.pool_blocks(pool)? as usize;
        let items = core.raw.buffer().chunks_exact(2).take(blocks);
        Ok(items.map(|item| u16::from_le_bytes(array(item))).collect())
    }

    /// The used addresses, masked or not, as a set that the caller drops.
    ///
    /// [`Status::OverCeiling`] when they are more than 2^20 runs.
    pub fn used(self, core: &mut Core) -> Result<RangeSet, Error> {
        self.set(core, "pool_used", Raw::pool_used)
    }

    /// A copy of the pool's ranges, as a set that the caller drops.
    pub fn ranges(self, core: &mut Core) -> Result<RangeSet, Error> {
        self.set(core, "pool_ranges", Raw::pool_ranges)
    }

    /// A copy of the pool's masks, as far as they lie in the ranges, as a set that the caller drops.
    pub fn masks(self, core: &mut Core) -> Result<RangeSet, Error> {
        self.set(core, "pool_masks", Raw::pool_masks)
    }

    /// What is used, as bytes for [`Pool::load`] of a pool with the same ranges. Masks and the order
    /// of release are not in it.
    pub fn save(self, core: &mut Core) -> Result<Vec<u8>, Error> {
        let pool = self.number_in(core, "pool_save")?;
        let length = core.raw.pool_save(pool)? as usize;
        Ok(core.raw.buffer()[..length].to_vec())
    }

    /// Replaces what is used by what [`Pool::save`] gave.
    pub fn load(self, core: &mut Core, snapshot: &[u8]) -> Result<Load, Error> {
        let pool = self.number_in(core, "pool_load")?;
        core.raw.write(snapshot)?;
        match core.raw.pool_load(pool, clamped(snapshot.len())) {
            Ok(_) => Ok(Load::Loaded),
            Err(error) => match error.status() {
                Some(Status::BadSnapshot) => Ok(Load::Damaged),
                Some(Status::OtherVersion) => Ok(Load::OtherVersion),
                Some(Status::OtherPool) => Ok(Load::OtherPool),
                _ => Err(error),
            },
        }
    }

    fn set(
        self,
        core: &mut Core,
        operation: &'static str,
        call: fn(&mut Raw, i32) -> Result<i32, Error>,
    ) -> Result<RangeSet, Error> {
        let pool = self.number_in(core, operation)?;
        let handle = call(&mut core.raw, pool)?;
        Ok(RangeSet::adopt(core, handle, self.family()))
    }
}
