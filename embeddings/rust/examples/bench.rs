//! Measures the shapes of a folder: JSON lines of nanoseconds for taking an address and giving it
//! back.

use berth_core::raw;
use berth_core::{AddressRange, Core, Load, Policy, Pool};
use serde::Deserialize;
use serde_json::json;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

#[derive(Deserialize)]
struct Shape {
    name: String,
    ranges: Vec<(String, String)>,
    snapshot: String,
    batch: usize,
}

type Failure = Box<dyn std::error::Error>;

const WARM_UP: Duration = Duration::from_millis(200);
const SAMPLE: Duration = Duration::from_millis(30);
const SAMPLES: usize = 9;
const ROUND_ROBIN: i32 = raw::Policy::RoundRobin as i32;

fn main() -> Result<(), Failure> {
    let folder = std::env::args_os().nth(1).ok_or("Usage: bench FOLDER")?;
    let folder = Path::new(&folder);
    let shapes: Vec<Shape> = serde_json::from_slice(&fs::read(folder.join("shapes.json"))?)?;
    let text = option_env!("BENCH_TOOLS").unwrap_or("built with unknown tools");
    println!("{}", json!({"runtime": "rust", "shape": "", "form": "version", "text": text}));
    let mut core = Core::new()?;
    let ns = measure(1, || Ok(core.raw().live_objects()? as u64))?;
    print("", "call", ns);
    for shape in &shapes {
        measure_shape(shape, &fs::read(folder.join(&shape.snapshot))?)?;
    }
    Ok(())
}

fn measure_shape(shape: &Shape, snapshot: &[u8]) -> Result<(), Failure> {
    let mut core = Core::new()?;
    let core = &mut core;
    let ranges: Result<Vec<AddressRange>, Failure> = shape
        .ranges
        .iter()
        .map(|(first, last)| Ok((first.parse()?..=last.parse()?).into()))
        .collect();
    let pool = Pool::new(core, &ranges?, &[])?;
    if pool.load(core, snapshot)? != Load::Loaded {
        return Err(format!("{} does not fit {}", shape.snapshot, shape.name).into());
    }
    let (handle, used) = (pool.handle(), pool.counts(core)?.used);

    let ns = measure(1, || {
        let address = pool.allocate(core, Policy::RoundRobin)?.ok_or("full")?;
        pool.release(core, address)?;
        Ok(u64::from(address.is_ipv4()))
    })?;
    print(&shape.name, "one", ns);

    let ns = measure(1, || {
        let raw = core.raw();
        let taken = raw.pool_allocate_many(handle, ROUND_ROBIN, 0, 1)?;
        Ok((taken + raw.pool_release(handle)?) as u64)
    })?;
    print(&shape.name, "raw", ns);

    let ns = measure(1, || {
        let raw = core.raw();
        let ordinal = raw.pool_allocate(handle, ROUND_ROBIN, 0)?;
        Ok((ordinal + raw.pool_release_at(handle, ordinal as u32)?) as u64)
    })?;
    print(&shape.name, "ordinal", ns);

    let mut packed = Vec::new();
    let ns = measure(shape.batch, || {
        packed.clear();
        packed.extend_from_slice(pool.allocate_packed(core, Policy::RoundRobin, shape.batch)?);
        Ok(pool.release_packed(core, &packed)? as u64)
    })?;
    print(&shape.name, "batch", ns);

    match pool.counts(core)?.used == used {
        true => Ok(()),
        false => Err(format!("{} is not what it was", shape.name).into()),
    }
}

/// The median of the samples: nanoseconds per item of a round, which has `items`.
fn measure(items: usize, mut round: impl FnMut() -> Result<u64, Failure>) -> Result<f64, Failure> {
    let mut timed = |rounds: u64| -> Result<Duration, Failure> {
        let start = Instant::now();
        let mut sum = 0;
        for _ in 0..rounds {
            sum += round()?;
        }
        black_box(sum);
        Ok(start.elapsed())
    };
    let start = Instant::now();
    let mut rounds = 1;
    let mut took = timed(rounds)?;
    while start.elapsed() < WARM_UP || took < SAMPLE {
        if took < SAMPLE {
            rounds *= 2;
        }
        took = timed(rounds)?;
    }
    let mut samples = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let ns = timed(rounds)?.as_nanos() as f64;
        samples.push(ns / rounds as f64 / items as f64);
    }
    samples.sort_by(f64::total_cmp);
    Ok(samples[SAMPLES / 2])
}

fn print(shape: &str, form: &str, ns: f64) {
    let ns = (ns * 100.0).round() / 100.0;
    println!("{}", json!({"runtime": "rust", "shape": shape, "form": form, "ns": ns}));
}
