//! Addresses as the core takes them, and ranges of them.

use crate::Prefix;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::str::FromStr;

/// IPv4 or IPv6. An IPv4-mapped address such as `::ffff:10.0.0.1` is IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Family {
    /// IPv4: addresses of 4 bytes.
    V4 = 4,
    /// IPv6: addresses of 16 bytes.
    V6 = 6,
}

impl Family {
    /// The family of an address.
    pub const fn of(address: IpAddr) -> Family {
        match address {
            IpAddr::V4(_) => Family::V4,
            IpAddr::V6(_) => Family::V6,
        }
    }

    /// Bytes of a packed address: 4 or 16.
    pub const fn width(self) -> usize {
        match self {
            Family::V4 => 4,
            Family::V6 => 16,
        }
    }

    /// Bits of an address: 32 or 128, the length of the longest prefix.
    pub const fn bits(self) -> u8 {
        self.width() as u8 * 8
    }

    /// The number that the core knows it by.
    pub(crate) const fn number(self) -> i32 {
        self as i32
    }

    /// Reads the address at the start of `bytes`, big-endian.
    #[inline]
    pub(crate) fn read(self, bytes: &[u8]) -> IpAddr {
        match self {
            Family::V4 => IpAddr::V4(Ipv4Addr::from(array::<4>(bytes))),
            Family::V6 => IpAddr::V6(Ipv6Addr::from(array::<16>(bytes))),
        }
    }
}

#[inline]
pub(crate) fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    *bytes.first_chunk().expect("the core has written so many bytes")
}

/// Writes the address to the start of `bytes`, big-endian.
#[inline]
pub(crate) fn write(address: IpAddr, bytes: &mut [u8]) {
    match address {
        IpAddr::V4(address) => bytes[..4].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => bytes[..16].copy_from_slice(&address.octets()),
    }
}

/// The address as a number.
pub(crate) fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

/// The addresses from `first` to `last`, both included.
///
/// As text: `10.0.0.10-10.0.0.99`, one address, or a prefix.
///
/// ```
/// use berth_core::AddressRange;
///
/// let range: AddressRange = "10.0.0.0/24".parse()?;
/// assert_eq!(range.to_string(), "10.0.0.0-10.0.0.255");
/// # Ok::<(), berth_core::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressRange {
    /// The lowest address.
    pub first: IpAddr,
    /// The highest address, of the same family. The core refuses a range that ends before it
    /// starts.
    pub last: IpAddr,
}

impl From<IpAddr> for AddressRange {
    fn from(address: IpAddr) -> AddressRange {
        AddressRange { first: address, last: address }
    }
}

impl From<RangeInclusive<IpAddr>> for AddressRange {
    fn from(range: RangeInclusive<IpAddr>) -> AddressRange {
        AddressRange { first: *range.start(), last: *range.end() }
    }
}

impl From<Prefix> for AddressRange {
    fn from(prefix: Prefix) -> AddressRange {
        let bits = prefix.family().bits();
        let host = u128::MAX.checked_shr(u32::from(128 - bits + prefix.length())).unwrap_or(0);
        let first = number(prefix.address()) & !host;
        let address = |number: u128| match prefix.family() {
            Family::V4 => IpAddr::V4(Ipv4Addr::from(number as u32)),
            Family::V6 => IpAddr::V6(Ipv6Addr::from(number)),
        };
        AddressRange { first: address(first), last: address(first | host) }
    }
}

impl FromStr for AddressRange {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<AddressRange, ParseError> {
        if text.contains('/') {
            return text.parse::<Prefix>().map(AddressRange::from);
        }
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) => Ok(AddressRange { first, last }),
            _ => Err(ParseError::new(text, "a range of addresses")),
        }
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.first, self.last)
    }
}

/// A text that is no prefix, or no range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    text: String,
    wanted: &'static str,
}

impl ParseError {
    pub(crate) fn new(text: &str, wanted: &'static str) -> ParseError {
        ParseError { text: text.to_owned(), wanted }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{}\" is not {}", self.text, self.wanted)
    }
}

impl std::error::Error for ParseError {}
