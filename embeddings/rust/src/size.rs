//! Numbers of addresses.

use std::fmt;

/// A number of addresses: 0 to 2^128, one more than `u128` holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size {
    /// Whether it is 2^128; then `low` is 0.
    whole: bool,
    low: u128,
}

impl Size {
    /// The number; none when it is 2^128: all of IPv6.
    pub const fn to_u128(self) -> Option<u128> {
        if self.whole { None } else { Some(self.low) }
    }

    /// The number, or the largest `u128` when it is 2^128.
    pub const fn saturating_u128(self) -> u128 {
        if self.whole { u128::MAX } else { self.low }
    }

    /// From the 17 bytes, big-endian, that the core writes.
    pub(crate) fn read(bytes: &[u8; 17]) -> Size {
        let (high, low) = bytes.split_first_chunk::<1>().expect("17 bytes");
        let low = low.try_into().expect("17 bytes less 1");
        Size { whole: high[0] == 1, low: u128::from_be_bytes(low) }
    }

    /// Of `part`, which is no larger, how much it leaves.
    pub(crate) fn less(self, part: Size) -> Size {
        Size {
            whole: self.whole && part.low == 0 && !part.whole,
            low: self.low.wrapping_sub(part.low),
        }
    }
}

impl From<u128> for Size {
    fn from(low: u128) -> Size {
        Size { whole: false, low }
    }
}

impl PartialEq<u128> for Size {
    fn eq(&self, number: &u128) -> bool {
        self.to_u128() == Some(*number)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_u128() {
            Some(number) => number.fmt(formatter),
            None => formatter.pad("340282366920938463463374607431768211456"),
        }
    }
}
