//! Plays the vectors of test/vectors/core in a folder, and prints what became of the memory.

use berth_core::Error;
use berth_core::raw::Raw;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Deserialize)]
struct Vector {
    steps: Vec<Step>,
    state: State,
}

#[derive(Deserialize)]
struct Step {
    call: String,
    args: Vec<i32>,
    input: Option<String>,
    result: i32,
    output: Option<String>,
}

#[derive(Deserialize)]
struct State {
    bytes: usize,
    fnv1a64: String,
}

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1) else {
        eprintln!("Usage: conformance FOLDER");
        return ExitCode::FAILURE;
    };
    match play_all(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn play_all(folder: &Path) -> Result<(), Failure> {
    let entries: Result<Vec<PathBuf>, _> =
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut files = entries?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    if files.is_empty() {
        return Err(format!("No vectors in {}", folder.display()).into());
    }
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let vector: Vector = serde_json::from_slice(&fs::read(&file)?)?;
        let line = play(&vector).map_err(|failure| format!("{name}: {failure}"))?;
        println!("{name}: {line}");
    }
    Ok(())
}

/// Plays a vector on a fresh instance.
fn play(vector: &Vector) -> Result<String, Failure> {
    let mut raw = Raw::new();
    for (index, step) in vector.steps.iter().enumerate() {
        if let Some(found) = play_step(&mut raw, step)? {
            let arguments: Vec<String> = step.args.iter().map(i32::to_string).collect();
            let arguments = arguments.join(", ");
            return Err(format!("step {index}, {}({arguments}): {found}", step.call).into());
        }
    }
    let bytes = raw.state_bytes()? as usize;
    if bytes != vector.state.bytes {
        return Err(format!("state: {bytes} bytes, wanted {}", vector.state.bytes).into());
    }
    let state = &raw.memory()[..bytes];
    let sum = format!("{:016x}", fnv1a64(state));
    if sum != vector.state.fnv1a64 {
        return Err(format!("state: fnv1a64 {sum}, wanted {}", vector.state.fnv1a64).into());
    }
    let sha256 = hex(&Sha256::digest(state));
    Ok(format!("{} steps, {bytes} bytes, sha256 {sha256}", vector.steps.len()))
}

/// Plays a step; what differs, if anything does.
fn play_step(raw: &mut Raw, step: &Step) -> Result<Option<String>, Failure> {
    if let Some(input) = &step.input {
        let input = unhex(input)?;
        raw.exchange(input.len() as i32)?;
        raw.buffer_mut()[..input.len()].copy_from_slice(&input);
    }
    let result = match raw.call(&step.call, &step.args) {
        Err(Error::Refused { code, .. }) => code,
        result => result?,
    };
    if result != step.result {
        return Ok(Some(format!("result {result}, wanted {}", step.result)));
    }
    let Some(wanted) = &step.output else {
        return Ok(None);
    };
    let start = raw.exchange(0)? as usize;
    let output = hex(&raw.memory()[start..start + wanted.len() / 2]);
    Ok((output != *wanted).then(|| format!("output {output}, wanted {wanted}")))
}

fn fnv1a64(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Result<Vec<u8>, Failure> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Ok(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?)).collect()
}
