use super::{ip, pool, ranges, status};
use berth_core::{Claim, Core, Error, Policy, Release, Status};

#[test]
fn batches_tell_of_each_address_what_the_single_forms_tell() -> Result<(), Error> {
    let mut core = Core::new()?;
    let pool = pool(&mut core, &["10.0.0.0/24"], &["10.0.0.9"]);
    let some = ["10.0.0.1", "::1", "10.0.0.1", "10.1.0.0", "10.0.0.9"].map(ip);
    use Claim::{Claimed, Outside, Taken};
    let claimed = pool.claim_many(&mut core, &some)?;
    assert_eq!(claimed, [Claimed, Outside, Taken, Outside, Claimed]);
    assert_eq!(pool.test_many(&mut core, &some)?, [true, false, true, false, true]);
    assert_eq!(pool.contains_many(&mut core, &some)?, [true, false, true, false, false]);
    let released = pool.release_many(&mut core, &some)?;
    use Release::{Free, Released};
    let outside = Release::Outside;
    assert_eq!(released, [Released, outside, Free, outside, Released]);
    assert_eq!(pool.claim_many(&mut core, &[])?, []);
    Ok(())
}

#[test]
fn packed_batches_pass_bytes() -> Result<(), Error> {
    let mut core = Core::new()?;
    let pool = pool(&mut core, &["10.0.0.0/30"], &[]);
    let packed = pool.allocate_packed(&mut core, Policy::Ascending, 3)?.to_vec();
    assert_eq!(packed, [10, 0, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    assert_eq!(pool.test_packed(&mut core, &packed)?, 3);
    assert_eq!(pool.contains_packed(&mut core, &packed)?, 3);
    assert_eq!(pool.release_packed(&mut core, &packed[..8])?, 2);
    assert_eq!(pool.claim_packed(&mut core, &packed)?, 2);
    assert_eq!(core.raw().buffer()[..3], [1, 1, 0]);
    assert_eq!(status(pool.claim_packed(&mut core, &packed[..5])), Status::BadArgument);
    let rest = pool.allocate_many(&mut core, Policy::Ascending, 100)?;
    assert_eq!(rest, [ip("10.0.0.3")]);
    assert!(pool.allocate_many(&mut core, Policy::Ascending, 100)?.is_empty());
    Ok(())
}

#[test]
fn a_batch_may_grow_the_memory_and_move_the_buffer() -> Result<(), Error> {
    let mut core = Core::new()?;
    let pool = pool(&mut core, &["2001:db8::/104"], &[]);
    let before = core.raw().memory().len();
    let taken = pool.allocate_many(&mut core, Policy::Ascending, 200_000)?;
    assert!(core.raw().memory().len() > before);
    assert_eq!(taken.len(), 200_000);
    assert_eq!(taken[199_999], ip("2001:db8::3:d3f"));
    let start = core.raw().exchange(0)? as usize;
    let length = core.raw().exchange_size()? as usize;
    let memory = core.raw().memory()[start..start + length].to_vec();
    assert_eq!(core.raw().buffer(), memory);
    assert!(pool.release_many(&mut core, &taken)?.iter().all(|each| *each == Release::Released));
    assert_eq!(pool.counts(&mut core)?.used, 0);
    Ok(())
}

#[test]
fn a_run_is_taken_whole_or_not_at_all() -> Result<(), Error> {
    let mut core = Core::new()?;
    let pool = pool(&mut core, &["10.0.0.0/28", "10.0.1.0/28"], &["10.0.0.15"]);
    let [run, gap, masked, turned] =
        ["10.0.0.4-10.0.0.11", "10.0.0.8-10.0.1.3", "10.0.0.12-10.0.0.15", "10.0.0.3-10.0.0.2"]
            .map(|text| ranges(&[text])[0]);
    assert_eq!(pool.claim_run(&mut core, run)?, Claim::Claimed);
    assert_eq!(pool.claim_run(&mut core, run)?, Claim::Taken);
    assert_eq!(pool.claim_run(&mut core, masked)?, Claim::Taken);
    assert_eq!(pool.claim_run(&mut core, gap)?, Claim::Outside);
    assert_eq!(pool.release_run(&mut core, gap)?, None);
    assert_eq!(status(pool.claim_run(&mut core, turned)), Status::BadRange);
    assert_eq!(pool.claim_run(&mut core, ip("::1").into())?, Claim::Outside);
    assert_eq!(pool.counts(&mut core)?.used, 8);
    assert_eq!(pool.release_run(&mut core, run)?, Some(8));
    Ok(())
}

#[test]
fn a_batch_larger_than_the_buffer_can_be_is_refused() -> Result<(), Error> {
    let mut core = Core::new()?;
    let pool = pool(&mut core, &["10.0.0.0/8"], &[]);
    let packed = vec![0; (256 << 20) + 4];
    assert_eq!(status(pool.claim_packed(&mut core, &packed)), Status::OverCeiling);
    let many = pool.allocate_packed(&mut core, Policy::Ascending, usize::MAX)?;
    assert_eq!(many.len(), 4 << 24);
    Ok(())
}
