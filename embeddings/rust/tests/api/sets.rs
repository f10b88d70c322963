use super::{ip, ranges, status};
use berth_core::{Core, Error, Family, Prefix, RangeSet, Status};

fn set(core: &mut Core, family: Family, of: &[&str]) -> RangeSet {
    RangeSet::new(core, family, &ranges(of)).expect("a set")
}

#[test]
fn sets_join_cut_and_compare() -> Result<(), Error> {
    let mut core = Core::new()?;
    let a = set(&mut core, Family::V4, &["10.0.0.128-10.0.1.5", "10.0.0.0-10.0.0.127"]);
    let b = set(&mut core, Family::V4, &["10.0.1.0/24"]);
    let (union, both) = (a.union(&mut core, b)?, a.intersect(&mut core, b)?);
    let rest = a.subtract(&mut core, b)?;
    assert_eq!(a.range_count(&mut core)?, 1);
    assert_eq!(union.ranges(&mut core)?, ranges(&["10.0.0.0-10.0.1.255"]));
    assert_eq!(both.ranges(&mut core)?, ranges(&["10.0.1.0-10.0.1.5"]));
    assert_eq!(rest.ranges(&mut core)?, ranges(&["10.0.0.0/24"]));
    assert!(a.overlaps(&mut core, b)? && !rest.overlaps(&mut core, b)?);
    assert!(union.includes(&mut core, a)? && !a.includes(&mut core, union)?);
    let prefixes: Vec<String> = both.prefixes(&mut core)?.iter().map(Prefix::to_string).collect();
    assert_eq!(prefixes, ["10.0.1.0/30", "10.0.1.4/31"]);
    assert_eq!(both.size(&mut core)?, 6);
    both.drop(&mut core)?;
    assert_eq!(status(both.size(&mut core)), Status::BadHandle);
    Ok(())
}

#[test]
fn members_are_of_the_family() -> Result<(), Error> {
    let mut core = Core::new()?;
    let v4 = set(&mut core, Family::V4, &["10.0.0.0/24"]);
    let some = ["10.0.0.7", "::ffff:10.0.0.7", "10.0.1.0"].map(ip);
    assert_eq!(v4.contains_many(&mut core, &some)?, [true, false, false]);
    for (address, wanted) in some.into_iter().zip([true, false, false]) {
        assert_eq!(v4.contains(&mut core, address)?, wanted);
    }
    assert_eq!(v4.contains_packed(&mut core, &[10, 0, 0, 1, 10, 0, 1, 0, 10, 0, 0, 2])?, 2);
    assert_eq!(core.raw().buffer()[..3], [1, 0, 1]);
    assert_eq!(status(v4.contains_packed(&mut core, &[10])), Status::BadArgument);
    Ok(())
}

#[test]
fn all_of_ipv6_is_counted() -> Result<(), Error> {
    let mut core = Core::new()?;
    let prefixes = ["::/1", "8000::/1"].map(|text| text.parse::<Prefix>().expect("a prefix"));
    let all = RangeSet::from_prefixes(&mut core, Family::V6, &prefixes)?;
    let size = all.size(&mut core)?;
    assert_eq!((size.to_u128(), size.saturating_u128()), (None, u128::MAX));
    assert_eq!(size.to_string(), "340282366920938463463374607431768211456");
    assert_eq!(all.ranges(&mut core)?, ranges(&["::/0"]));
    let one = set(&mut core, Family::V6, &["::1"]);
    assert_eq!(all.subtract(&mut core, one)?.size(&mut core)?, u128::MAX);
    Ok(())
}

#[test]
fn families_do_not_mix() -> Result<(), Error> {
    let mut core = Core::new()?;
    let v4 = set(&mut core, Family::V4, &["10.0.0.0/24"]);
    let v6 = set(&mut core, Family::V6, &["::/64"]);
    assert_eq!(status(v4.union(&mut core, v6)), Status::BadFamily);
    assert_eq!(status(v4.overlaps(&mut core, v6)), Status::BadFamily);
    let mixed = ranges(&["10.0.0.0/24", "::/64"]);
    assert_eq!(status(RangeSet::new(&mut core, Family::V4, &mixed)), Status::BadFamily);
    let turned = ranges(&["10.0.0.2-10.0.0.1"]);
    assert_eq!(status(RangeSet::new(&mut core, Family::V4, &turned)), Status::BadRange);
    assert_eq!(core.live_objects()?, 2);
    Ok(())
}
