/** The raw layer of the Rust embedding: the module in wasmi, its constants, and a method for each export. */
import type { GeneratedText } from "../generated-text.ts";
import { type Binding, type Call, type Constant, pascalCase, prefixed } from "./binding.ts";

export function renderRustBindings({ version, statuses, policies, ceilings, counts, calls }: Binding): GeneratedText {
  const text = `//! The core as it is: handles, ordinals, and bytes in one buffer.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::LazyLock;
use wasmi::{Engine, Instance, Memory, Module, Store, WasmParams};

/// The module, decoded once for all instances.
static MODULE: LazyLock<Module> = LazyLock::new(|| {
    Module::new(&Engine::default(), include_bytes!("berth-core.wasm")).expect("the core is a module")
});

/// Major and minor version of the ABI.
pub const ABI_VERSION: (u16, u16) = (${version.major}, ${version.minor});

${constants(ceilings, "u32")}
/// Where \`pool_counts\` writes each number.
pub mod counts {
${constants(counts, "usize")}}

/// Why the core refused a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Status {
${members(statuses)}}

impl Status {
    fn from_code(code: i32) -> Status {
        match code {
${statuses.map(({ name, value }) => `            ${value} => Status::${pascalCase(name)},\n`).join("")}            _ => panic!("the core has no status {code}"),
        }
    }

    /// Its name in the ABI, such as \`BAD_HANDLE\`, and its meaning.
    pub const fn text(self) -> (&'static str, &'static str) {
        match self {
${statuses.map(({ name, doc }) => `            Status::${pascalCase(name)} => ("${name}", ${JSON.stringify(doc)}),\n`).join("")}        }
    }
}

/// A refusal of the core: misuse, a ceiling, or a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The call, such as \`pool_create\`.
    pub operation: &'static str,
    /// Why.
    pub status: Status,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, text) = self.status.text();
        write!(formatter, "{}: {name} ({}): {text}", self.operation, self.status as i32)
    }
}

impl std::error::Error for Error {}

pub(crate) fn width(address: &IpAddr) -> usize {
    if address.is_ipv4() { 4 } else { 16 }
}

pub(crate) fn family(width: usize) -> i32 {
    if width == 4 { 4 } else { 6 }
}

pub(crate) fn bytes(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().into(),
        IpAddr::V6(address) => address.octets().into(),
    }
}

pub(crate) fn read(bytes: &[u8], width: usize) -> IpAddr {
    match <[u8; 4]>::try_from(&bytes[..width]) {
        Ok(bytes) => bytes.into(),
        Err(_) => <[u8; 16]>::try_from(&bytes[..width]).expect("4 or 16 bytes").into(),
    }
}

/// The 17 bytes of a number of addresses; that of all IPv6 addresses is one too small.
pub(crate) fn size(bytes: &[u8]) -> u128 {
    let low = u128::from_be_bytes(bytes[1..17].try_into().expect("16 bytes"));
    if bytes[0] == 0 { low } else { u128::MAX }
}

/// The addresses from the first to the last; a [\`Prefix\`] becomes one with \`into()\`.
pub type Range = RangeInclusive<IpAddr>;

/// A prefix such as \`10.0.0.0/24\`: any address in it, whose host bits do not matter, and its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix {
    pub address: IpAddr,
    pub length: u8,
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Prefix, String> {
        let parsed = text.split_once('/').and_then(|(address, length)| {
            let prefix = Prefix { address: address.parse().ok()?, length: length.parse().ok()? };
            (usize::from(prefix.length) <= 8 * width(&prefix.address)).then_some(prefix)
        });
        parsed.ok_or_else(|| format!("\\"{text}\\" is not a prefix"))
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.length)
    }
}

impl From<Prefix> for Range {
    fn from(Prefix { address, length }: Prefix) -> Range {
        let (mut first, mut last) = (bytes(address), bytes(address));
        for bit in usize::from(length)..8 * first.len() {
            first[bit / 8] &= !(0x80 >> (bit % 8));
            last[bit / 8] |= 0x80 >> (bit % 8);
        }
        read(&first, first.len())..=read(&last, last.len())
    }
}

/// In which order the free addresses of the window are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Policy {
${members(policies)}}

/// One instance of the core: a method for each export, which panics on a trap, a bug of the core.
pub struct Raw {
    store: Store<()>,
    instance: Instance,
    memory: Memory,
}

impl Default for Raw {
    fn default() -> Raw {
        Raw::new()
    }
}

impl Raw {
    /// A fresh instance, with room for the addresses that calls write.
    pub fn new() -> Raw {
        let mut store = Store::new(MODULE.engine(), ());
        let instance = Instance::new(&mut store, &MODULE, &[]).expect("it has no imports");
        let memory = instance.get_memory(&store, "memory").expect("the core's memory");
        let mut raw = Raw { store, instance, memory };
        raw.write(&[0; 64]).expect("a first page");
        raw
    }

    fn invoke(&mut self, operation: &'static str, params: impl WasmParams) -> Result<i32, Error> {
        let function = self.instance.get_typed_func(&self.store, operation).expect("an export");
        match function.call(&mut self.store, params).expect("the core does not trap") {
            code if code < 0 => Err(Error { operation, status: Status::from_code(code) }),
            result => Ok(result),
        }
    }

    /// The instance's memory.
    pub fn memory(&self) -> &[u8] {
        self.memory.data(&self.store)
    }

    /// Writes the input of the next call to the exchange buffer.
    pub fn write(&mut self, input: &[u8]) -> Result<(), Error> {
        let at = self.exchange(input.len().try_into().unwrap_or(i32::MAX))? as usize;
        self.memory.data_mut(&mut self.store)[at..][..input.len()].copy_from_slice(input);
        Ok(())
    }

    /// Writes addresses of so many bytes each.
    pub(crate) fn pass(&mut self, size: usize, all: impl IntoIterator<Item = IpAddr>) -> Result<(), Error> {
        let mut input = Vec::new();
        for address in all {
            if width(&address) != size {
                return Err(Error { operation: "exchange", status: Status::BadFamily });
            }
            input.extend(bytes(address));
        }
        self.write(&input)
    }

    /// The memory from the exchange buffer on: the output of the last call.
    pub fn output(&mut self) -> &[u8] {
        let at = self.exchange(0).expect("the buffer's address") as usize;
        &self.memory()[at..]
    }

    /// Calls an export by its name: its result, or the code of its status.
    pub fn call(&mut self, name: &str, args: &[i32]) -> i32 {
        let result = match name {
${calls.map(dispatch).join("")}            _ => panic!("the core exports no {name}"),
        };
        result.unwrap_or_else(|error| error.status as i32)
    }
${calls.map(method).join("")}}
`;
  return { path: "embeddings/rust/src/raw.rs", text };
}

function constants(items: readonly Constant[], type: string): string {
  return items.map(({ name, value, doc }) => `/// ${doc}\npub const ${name}: ${type} = ${value};\n`).join("");
}

function members(items: readonly Constant[]): string {
  return items.map(({ name, value, doc }) => `    /// ${doc}\n    ${pascalCase(name)} = ${value},\n`).join("");
}

function method({ name, doc, facts, params }: Call): string {
  const typed = params.map((param) => `, ${param.name}: ${param.isUnsigned ? "u32" : "i32"}`).join("");
  return `
${prefixed("    /// ", [doc, "", ...facts])}    pub fn ${name}(&mut self${typed}) -> Result<i32, Error> {
        self.invoke("${name}", (${params.map((param) => `${param.name},`).join(" ")}))
    }
`;
}

function dispatch({ name, params }: Call): string {
  const args = params.map((param, at) => `args[${at}]${param.isUnsigned ? " as u32" : ""}`);
  return `            "${name}" => self.${name}(${args.join(", ")}),\n`;
}
