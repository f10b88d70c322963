//! Prefixes, and their arithmetic by the core.

use crate::address::{self, Family, ParseError};
use crate::error::unless;
use crate::raw::Status;
use crate::{Core, Error};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A prefix such as `10.0.0.0/24`. Host bits stay as they are given, and do not matter.
///
/// ```
/// use berth_core::{Core, Prefix};
///
/// let mut core = Core::new()?;
/// let prefix: Prefix = "10.1.2.3/24".parse()?;
/// assert_eq!(prefix.last(&mut core)?.to_string(), "10.1.2.255");
/// assert_eq!(prefix.part(&mut core, 26, 3)?, Some("10.1.2.192/26".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// None when the length is above 32 for IPv4, or above 128 for IPv6.
    pub const fn new(address: IpAddr, length: u8) -> Option<Prefix> {
        if length > Family::of(address).bits() {
            return None;
        }
        Some(Prefix { address, length })
    }

    /// The longest prefix that holds both addresses. [`Status::BadFamily`] when one is IPv4 and
    /// the other is IPv6.
    pub fn common(core: &mut Core, a: IpAddr, b: IpAddr) -> Result<Prefix, Error> {
        let family = Family::of(a);
        if Family::of(b) != family {
            return Err(Error::refused("prefix_common", Status::BadFamily));
        }
        let input = core.raw.reserve(2 * family.width())?;
        address::write(a, input);
        address::write(b, &mut input[family.width()..]);
        let length = core.raw.prefix_common(family.number())? as u8;
        let address = Prefix { address: a, length }.first(core)?;
        Ok(Prefix { address, length })
    }

    /// The address as it was given.
    pub const fn address(self) -> IpAddr {
        self.address
    }

    /// Bits of the prefix: 0 to 32 or 128.
    pub const fn length(self) -> u8 {
        self.length
    }

    /// The family of its addresses.
    pub const fn family(self) -> Family {
        Family::of(self.address)
    }

    /// The lowest address.
    pub fn first(self, core: &mut Core) -> Result<IpAddr, Error> {
        core.write_address(self.address);
        core.raw.prefix_first(self.family().number(), self.bits())?;
        Ok(core.read_address(self.family()))
    }

    /// The highest address.
    pub fn last(self, core: &mut Core) -> Result<IpAddr, Error> {
        core.write_address(self.address);
        core.raw.prefix_last(self.family().number(), self.bits())?;
        Ok(core.read_address(self.family()))
    }

    /// The network mask, such as 255.255.255.0.
    pub fn mask(self, core: &mut Core) -> Result<IpAddr, Error> {
        core.raw.prefix_mask(self.family().number(), self.bits())?;
        Ok(core.read_address(self.family()))
    }

    /// The prefix of the same length right after this one; none after the last.
    pub fn next(self, core: &mut Core) -> Result<Option<Prefix>, Error> {
        core.write_address(self.address);
        let result = core.raw.prefix_next(self.family().number(), self.bits());
        let found = unless(Status::None, result)?;
        Ok(found.map(|_| Prefix { address: core.read_address(self.family()), ..self }))
    }

    /// Part `index` when the prefix is split into prefixes of a greater length; none when it has
    /// fewer parts.
    pub fn part(self, core: &mut Core, length: u8, index: u32) -> Result<Option<Prefix>, Error> {
        core.write_address(self.address);
        let family = self.family();
        let result = core.raw.prefix_part(family.number(), self.bits(), length.into(), index);
        let found = unless(Status::Outside, result)?;
        Ok(found.map(|_| Prefix { address: core.read_address(family), length }))
    }

    fn bits(self) -> i32 {
        self.length.into()
    }
}

impl FromStr for Prefix {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Prefix, ParseError> {
        let parts = text.split_once('/');
        parts
            // A sign is no part of a length, though it is of a number.
            .filter(|(_, length)| length.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|(address, length)| Prefix::new(address.parse().ok()?, length.parse().ok()?))
            .ok_or_else(|| ParseError::new(text, "a prefix"))
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.length)
    }
}
