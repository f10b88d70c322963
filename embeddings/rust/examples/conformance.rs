//! Replays vectors (test/vectors/core/README.md), each on an instance of its own: conformance FILE...

use berth_core::Raw;
use std::{env, fs, process};

fn main() {
    for file in env::args().skip(1) {
        let text = fs::read_to_string(&file).expect("the file of a vector");
        match replay(&text) {
            Ok(summary) => println!("{file}: {summary}"),
            Err(difference) => {
                eprintln!("{file}:{difference}");
                process::exit(1);
            }
        }
    }
}

/// What to say of the vector, or its first line that is otherwise.
fn replay(text: &str) -> Result<String, String> {
    let (mut raw, mut steps, mut last) = (Raw::new(), -1, "");
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split(' ').collect();
        let (result, output) = play(&mut raw, &columns);
        let found = format!("{} {result} {output}", columns[..3].join(" "));
        if found != line {
            return Err(format!("{number}: {found}"));
        }
        (steps, last) = (steps + 1, line);
    }
    Ok(format!("{steps} steps, {last}"))
}

/// A line's result, and as much output as the line has.
fn play(raw: &mut Raw, columns: &[&str]) -> (i32, String) {
    if columns[0] == "state" {
        let bytes = raw.state_bytes().expect("a length");
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        let hash = raw.memory()[..bytes as usize].iter().fold(0xcbf2_9ce4_8422_2325, step);
        return (bytes, format!("{hash:016x}"));
    }
    if columns[2] != "-" {
        let byte = |at| u8::from_str_radix(&columns[2][at..at + 2], 16).expect("hexadecimal");
        let input: Vec<u8> = (0..columns[2].len()).step_by(2).map(byte).collect();
        raw.write(&input).expect("room for the input");
    }
    let args: Vec<i32> = columns[1].split(',').filter_map(|word| word.parse().ok()).collect();
    let result = raw.call(columns[0], &args);
    if columns[4] == "-" {
        return (result, "-".into());
    }
    let output = &raw.output()[..columns[4].len() / 2];
    (result, output.iter().map(|byte| format!("{byte:02x}")).collect())
}
