use super::{ip, status};
use berth_core::{AddressRange, Core, Error, Family, Prefix, Status};

fn prefix(text: &str) -> Prefix {
    text.parse().expect("a prefix")
}

#[test]
fn arithmetic_is_the_core_s() -> Result<(), Error> {
    let mut core = Core::new()?;
    let host = prefix("10.1.2.3/23");
    assert_eq!(host.first(&mut core)?, ip("10.1.2.0"));
    assert_eq!(host.last(&mut core)?, ip("10.1.3.255"));
    assert_eq!(host.mask(&mut core)?, ip("255.255.254.0"));
    assert_eq!(host.next(&mut core)?, Some(prefix("10.1.4.0/23")));
    assert_eq!(prefix("ffff::/16").next(&mut core)?, None);
    let part = prefix("2001:db8::/32").part(&mut core, 64, 0xabcd)?;
    assert_eq!(part, Some(prefix("2001:db8:0:abcd::/64")));
    assert_eq!(host.part(&mut core, 24, 2)?, None);
    assert_eq!(status(host.part(&mut core, 33, 0)), Status::BadArgument);
    let common = Prefix::common(&mut core, ip("10.1.2.3"), ip("10.1.9.9"))?;
    assert_eq!(common, prefix("10.1.0.0/20"));
    assert_eq!(status(Prefix::common(&mut core, ip("::"), ip("0.0.0.0"))), Status::BadFamily);
    Ok(())
}

#[test]
fn a_prefix_as_a_range_has_the_core_s_ends() -> Result<(), Error> {
    let mut core = Core::new()?;
    for address in ["0.0.0.0", "192.0.2.77", "255.255.255.255", "::", "2001:db8::7:1"].map(ip) {
        for length in 0..=Family::of(address).bits() {
            let prefix = Prefix::new(address, length).expect("a prefix");
            let range = AddressRange::from(prefix);
            assert_eq!(range.first, prefix.first(&mut core)?, "{prefix}");
            assert_eq!(range.last, prefix.last(&mut core)?, "{prefix}");
        }
    }
    Ok(())
}

#[test]
fn texts_are_read_strictly() {
    for text in ["10.0.0.0/33", "::/129", "10.0.0.0", "10.0.0.0/", "10.0.0.0/+8", "10/8", "/8"] {
        assert!(text.parse::<Prefix>().is_err(), "{text}");
    }
    // Addresses with a zone are no addresses.
    for text in ["", "-", "10.0.0.1-", "fe80::1%eth0", "fe80::1%eth0/64", "10.0.0.1 - 10.0.0.2"] {
        assert!(text.parse::<AddressRange>().is_err(), "{text}");
    }
    let error = "10.0.0.0/33".parse::<Prefix>().expect_err("refused");
    assert_eq!(error.to_string(), "\"10.0.0.0/33\" is not a prefix");
    assert_eq!(prefix("2001:DB8::1/32").to_string(), "2001:db8::1/32");
}
