use super::{ip, pool, ranges, status};
use berth_core::{Claim, Core, Error, Policy, Pool, Release, Status};

#[test]
fn every_policy_takes_in_its_order_until_none_is_free() -> Result<(), Error> {
    let mut core = Core::new()?;
    let pool = pool(&mut core, &["10.0.0.0-10.0.0.5"], &["10.0.0.0"]);
    assert_eq!(pool.allocate(&mut core, Policy::Ascending)?, Some(ip("10.0.0.1")));
    assert_eq!(pool.allocate(&mut core, Policy::RoundRobin)?, Some(ip("10.0.0.2")));
    pool.release(&mut core, ip("10.0.0.2"))?;
    assert_eq!(pool.allocate(&mut core, Policy::RoundRobin)?, Some(ip("10.0.0.3")));
    assert_eq!(pool.allocate(&mut core, Policy::Hashed(6 + 4))?, Some(ip("10.0.0.4")));
    assert_eq!(status(pool.allocate(&mut core, Policy::LeastRecentlyFreed)), Status::BadArgument);
    pool.track_freed(&mut core)?;
    pool.release(&mut core, ip("10.0.0.3"))?;
    pool.release(&mut core, ip("10.0.0.1"))?;
    let policy = Policy::LeastRecentlyFreed;
    let order = ["10.0.0.2", "10.0.0.5", "10.0.0.3", "10.0.0.1"].map(ip);
    for wanted in order {
        assert_eq!(pool.allocate(&mut core, policy)?, Some(wanted));
    }
    for policy in [policy, Policy::Ascending, Policy::RoundRobin, Policy::Hashed(u32::MAX)] {
        assert_eq!(pool.allocate(&mut core, policy)?, None);
    }
    Ok(())
}

#[test]
fn claiming_and_releasing_tell_what_they_found() -> Result<(), Error> {
    let mut core = Core::new()?;
    let pool = pool(&mut core, &["10.0.0.0/24", "10.9.0.0/24"], &["10.0.0.1"]);
    assert_eq!(pool.claim(&mut core, ip("10.9.0.7"))?, Claim::Claimed);
    assert_eq!(pool.claim(&mut core, ip("10.9.0.7"))?, Claim::Taken);
    assert_eq!(pool.claim(&mut core, ip("10.5.0.7"))?, Claim::Outside);
    assert!(pool.test(&mut core, ip("10.9.0.7"))?);
    assert!(!pool.test(&mut core, ip("10.5.0.7"))?);
    assert!(!pool.contains(&mut core, ip("10.0.0.1"))?);
    assert_eq!(pool.claim(&mut core, ip("10.0.0.1"))?, Claim::Claimed);
    let counts = pool.counts(&mut core)?;
    assert_eq!((counts.used, counts.used_masked), (2, 1));
    assert_eq!(counts.total, 511);
    assert_eq!(counts.free, 510);
    assert_eq!((counts.window, counts.window_free, counts.beyond), (512, 510, 0));
    assert_eq!(pool.release(&mut core, ip("10.9.0.7"))?, Release::Released);
    assert_eq!(pool.release(&mut core, ip("10.9.0.7"))?, Release::Free);
    assert_eq!(pool.release(&mut core, ip("10.5.0.7"))?, Release::Outside);
    Ok(())
}

#[test]
fn an_address_of_the_other_family_is_outside() -> Result<(), Error> {
    let mut core = Core::new()?;
    let v4 = pool(&mut core, &["0.0.0.0/0"], &[]);
    let v6 = pool(&mut core, &["::/0"], &[]);
    // An IPv4-mapped address is IPv6.
    for (pool, other) in [(v4, "::1"), (v4, "::ffff:10.0.0.1"), (v6, "10.0.0.1")] {
        let other = ip(other);
        assert_eq!(pool.claim(&mut core, other)?, Claim::Outside);
        assert_eq!(pool.release(&mut core, other)?, Release::Outside);
        assert!(!pool.test(&mut core, other)? && !pool.contains(&mut core, other)?);
        assert_eq!(pool.counts(&mut core)?.used, 0);
    }
    assert_eq!(v6.claim(&mut core, ip("::ffff:10.0.0.1"))?, Claim::Claimed);
    assert_eq!(v6.counts(&mut core)?.total.to_u128(), None);
    assert_eq!(v6.counts(&mut core)?.free, u128::MAX);
    Ok(())
}

#[test]
fn finding_takes_nothing() -> Result<(), Error> {
    let mut core = Core::new()?;
    let pool = pool(&mut core, &["2001:db8::/64"], &["2001:db8::/120"]);
    assert_eq!(pool.find_free(&mut core, 0)?, Some(ip("2001:db8::100")));
    let run = pool.find_free_run(&mut core, 16, 8, 0x101)?;
    assert_eq!(run, Some("2001:db8::200-2001:db8::20f".parse().expect("a range")));
    let seed = u128::from_be_bytes([0xab; 16]);
    let wide = pool.find_free_wide(&mut core, seed)?.expect("one");
    assert_eq!(wide, ip("2001:db8::abab:abab:abab:abab"));
    assert_eq!(pool.counts(&mut core)?.used, 0);
    assert_eq!(pool.claim(&mut core, wide)?, Claim::Claimed);
    assert_eq!(pool.counts(&mut core)?.beyond, 1);
    assert_eq!(pool.find_free_run(&mut core, 1 << 25, 0, 0)?, None);
    assert_eq!(status(pool.find_free_run(&mut core, 0, 0, 0)), Status::BadArgument);
    assert_eq!(status(pool.find_free_run(&mut core, 1, u32::MAX, 0)), Status::BadArgument);
    Ok(())
}

#[test]
fn an_edit_keeps_what_is_used_where_the_ranges_stay() -> Result<(), Error> {
    let mut core = Core::new()?;
    let pool = pool(&mut core, &["10.0.0.0/24"], &[]);
    pool.claim(&mut core, ip("10.0.0.5"))?;
    pool.claim(&mut core, ip("10.0.0.200"))?;
    pool.edit(&mut core, &ranges(&["10.0.0.0/25"]), &ranges(&["10.0.0.0/30"]))?;
    assert!(pool.test(&mut core, ip("10.0.0.5"))?);
    assert!(!pool.test(&mut core, ip("10.0.0.200"))?);
    let (held, masked) = (pool.ranges(&mut core)?, pool.masks(&mut core)?);
    assert_eq!(held.ranges(&mut core)?, ranges(&["10.0.0.0/25"]));
    assert_eq!(masked.ranges(&mut core)?, ranges(&["10.0.0.0/30"]));
    assert_eq!(status(pool.edit(&mut core, &ranges(&["::/64"]), &[])), Status::BadFamily);
    assert!(pool.test(&mut core, ip("10.0.0.5"))?);
    // Nothing is left of the sets that the shapes passed through.
    assert_eq!(core.live_objects()?, 3);
    Ok(())
}

#[test]
fn a_pool_without_ranges_is_full() -> Result<(), Error> {
    let mut core = Core::new()?;
    let empty = Pool::new(&mut core, &[], &[])?;
    assert_eq!(empty.allocate(&mut core, Policy::Ascending)?, None);
    assert_eq!(empty.find_free_wide(&mut core, 7)?, None);
    assert_eq!(empty.counts(&mut core)?.total, 0);
    assert_eq!(empty.free_per_block(&mut core)?, []);
    Ok(())
}
