use super::{ip, pool, ranges, status};
use berth_core::{Core, Error, Family, Policy, Pool, RangeSet, Status};

#[test]
fn a_dropped_pool_is_refused_by_every_method() -> Result<(), Error> {
    let mut core = Core::new()?;
    let gone = pool(&mut core, &["10.0.0.0/24"], &[]);
    gone.drop(&mut core)?;
    // Its slot is another pool's now, its handle is not.
    let next = pool(&mut core, &["10.0.0.0/24"], &[]);
    let core = &mut core;
    let (one, run) = (ip("10.0.0.1"), ranges(&["10.0.0.0/30"])[0]);
    let refusals = [
        status(gone.allocate(core, Policy::Ascending)),
        status(gone.allocate_many(core, Policy::Ascending, 2)),
        status(gone.find_free(core, 0)),
        status(gone.find_free_run(core, 1, 0, 0)),
        status(gone.find_free_wide(core, 0)),
        status(gone.claim(core, one)),
        status(gone.release(core, one)),
        status(gone.test(core, one)),
        status(gone.contains(core, one)),
        status(gone.claim_many(core, &[one])),
        status(gone.release_packed(core, &[10, 0, 0, 1])),
        status(gone.claim_run(core, run)),
        status(gone.release_run(core, run)),
        status(gone.counts(core)),
        status(gone.free_per_block(core)),
        status(gone.used(core)),
        status(gone.save(core)),
        status(gone.load(core, &[])),
        status(gone.edit(core, &[run], &[])),
        status(gone.track_freed(core)),
        status(gone.drop(core)),
    ];
    assert!(refusals.iter().all(|status| *status == Status::BadHandle));
    assert_eq!(next.counts(core)?.used, 0);
    Ok(())
}

#[test]
fn a_handle_of_another_core_is_refused() -> Result<(), Error> {
    let (mut core, mut other) = (Core::new()?, Core::new()?);
    let here = pool(&mut core, &["10.0.0.0/24"], &[]);
    let there = pool(&mut other, &["10.0.0.0/24"], &[]);
    assert_eq!(here.handle(), there.handle());
    assert_eq!(status(here.allocate(&mut other, Policy::Ascending)), Status::BadHandle);
    assert_eq!(status(there.claim(&mut core, ip("10.0.0.1"))), Status::BadHandle);
    let set = RangeSet::new(&mut core, Family::V4, &[])?;
    let peer = RangeSet::new(&mut other, Family::V4, &[])?;
    assert_eq!(status(set.union(&mut core, peer)), Status::BadHandle);
    Ok(())
}

#[test]
fn a_hundred_thousand_pools_come_and_go() -> Result<(), Error> {
    let mut core = Core::new()?;
    let shape = ranges(&["10.0.0.0/24"]);
    let mut length = 0;
    for round in 0..100_000 {
        let pool = Pool::new(&mut core, &shape, &[])?;
        pool.allocate(&mut core, Policy::Ascending)?;
        pool.drop(&mut core)?;
        if round == 0 {
            length = core.state_bytes()?;
        }
    }
    assert_eq!((core.live_objects()?, core.state_bytes()?), (0, length));
    Ok(())
}

#[test]
fn the_ceiling_of_live_objects_is_an_error() -> Result<(), Error> {
    let mut core = Core::new()?;
    for _ in 0..65_536 {
        RangeSet::new(&mut core, Family::V4, &[])?;
    }
    let refusal = RangeSet::new(&mut core, Family::V4, &[]).expect_err("refused");
    assert_eq!(refusal.status(), Some(Status::OverCeiling));
    assert_eq!(
        refusal.to_string(),
        "set_create was refused with OVER_CEILING (-7): A ceiling, below, is reached. Nothing has changed."
    );
    Ok(())
}

#[test]
fn raw_calls_with_wrong_numbers_are_refused() -> Result<(), Error> {
    let mut core = Core::new()?;
    let raw = core.raw();
    assert_eq!(status(raw.set_create(5, 0)), Status::BadFamily);
    assert_eq!(status(raw.set_create(4, -1)), Status::ShortExchange);
    assert_eq!(status(raw.exchange(-1)), Status::BadArgument);
    assert_eq!(status(raw.pool_counts(i32::MIN)), Status::BadHandle);
    assert_eq!(raw.call("live_objects", &[])?, 0);
    assert!(matches!(raw.call("live_objects", &[1]), Err(Error::NoExport { .. })));
    assert!(matches!(raw.call("memory", &[]), Err(Error::NoExport { .. })));
    Ok(())
}
