use super::{ip, pool, status};
use berth_core::{Claim, Core, Error, Policy, Status};

#[test]
fn a_copy_is_equal_and_goes_its_own_way() -> Result<(), Error> {
    let mut core = Core::new()?;
    let pool = pool(&mut core, &["10.0.0.0/8"], &[]);
    pool.allocate_many(&mut core, Policy::Ascending, 1 << 20)?;
    let mut copy = core.copy()?;
    let length = core.state_bytes()?;
    assert_eq!(copy.state_bytes()?, length);
    assert!(core.raw().memory()[..length] == copy.raw().memory()[..length]);
    let next = pool.allocate(&mut copy, Policy::RoundRobin)?;
    assert_eq!(pool.allocate(&mut core, Policy::RoundRobin)?, next);
    assert_eq!(pool.claim(&mut core, ip("10.200.0.0"))?, Claim::Claimed);
    assert_eq!(pool.claim(&mut copy, ip("10.200.0.0"))?, Claim::Claimed);
    pool.drop(&mut core)?;
    assert_eq!(status(pool.counts(&mut core)), Status::BadHandle);
    assert_eq!(pool.counts(&mut copy)?.used, (1 << 20) + 2);
    Ok(())
}

#[test]
fn a_core_may_move_to_another_thread() -> Result<(), Error> {
    let mut core = Core::new()?;
    let pool = pool(&mut core, &["10.0.0.0/24"], &[]);
    let taken = std::thread::spawn(move || pool.allocate(&mut core, Policy::Hashed(3))).join();
    assert_eq!(taken.expect("no panic")?, Some(ip("10.0.0.3")));
    Ok(())
}
