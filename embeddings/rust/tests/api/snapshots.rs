use super::{ip, pool};
use berth_core::{Core, Error, Load, Policy};

#[test]
fn a_snapshot_goes_to_another_pool_with_the_same_ranges() -> Result<(), Error> {
    let mut core = Core::new()?;
    let a = pool(&mut core, &["10.0.0.0/16"], &[]);
    a.allocate_many(&mut core, Policy::Hashed(77), 10_000)?;
    let snapshot = a.save(&mut core)?;
    let mut other = Core::new()?;
    let b = pool(&mut other, &["10.0.0.0/17", "10.0.128.0/17"], &["10.0.0.1"]);
    assert_eq!(b.load(&mut other, &snapshot)?, Load::Loaded);
    assert_eq!(b.save(&mut other)?, snapshot);
    assert_eq!(a.counts(&mut core)?.digest, b.counts(&mut other)?.digest);
    let (used_a, used_b) = (a.used(&mut core)?, b.used(&mut other)?);
    assert_eq!(used_a.ranges(&mut core)?, used_b.ranges(&mut other)?);
    let blocks = b.free_per_block(&mut other)?;
    assert_eq!(blocks.len(), 16);
    let free: u32 = blocks.into_iter().map(u32::from).sum();
    assert_eq!(free, b.counts(&mut other)?.window_free);
    Ok(())
}

#[test]
fn a_bad_snapshot_changes_nothing() -> Result<(), Error> {
    let mut core = Core::new()?;
    let a = pool(&mut core, &["10.0.0.0/24"], &[]);
    a.claim(&mut core, ip("10.0.0.9"))?;
    let sound = a.save(&mut core)?;
    a.claim(&mut core, ip("10.0.0.10"))?;
    for at in 0..sound.len() {
        let mut damaged = sound.clone();
        damaged[at] ^= 0x10;
        assert_ne!(a.load(&mut core, &damaged)?, Load::Loaded, "byte {at}");
        assert_ne!(a.load(&mut core, &sound[..at])?, Load::Loaded, "{at} bytes");
    }
    let mut newer = sound.clone();
    newer[4] = 2;
    assert_eq!(a.load(&mut core, &newer)?, Load::OtherVersion);
    let b = pool(&mut core, &["10.0.1.0/24"], &[]);
    assert_eq!(b.load(&mut core, &sound)?, Load::OtherPool);
    assert_eq!(b.load(&mut core, &[0xff; 5000])?, Load::Damaged);
    assert_eq!(a.counts(&mut core)?.used, 2);
    Ok(())
}
