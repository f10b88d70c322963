use berth_core::{Core, Policy, Pool};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut core = Core::new()?;
    let pool = Pool::new(&mut core, &["10.0.0.0/24".parse()?], &["10.0.0.0/30".parse()?])?;
    let address = pool.allocate(&mut core, Policy::Ascending)?.ok_or("none is free")?;
    println!("{address}, {} left", pool.counts(&mut core)?.free);
    pool.release(&mut core, address)?;
    Ok(())
}
