//! The core as it is: handles, ordinals, and bytes in one buffer.
//!
//! For whoever wants ordinals, or fewer calls than the types of the crate make. The methods of
//! [`Raw`] are the calls of the ABI, one each.

mod abi;
mod macros;

pub use abi::*;

use crate::Error;
use std::ops::Range;
use std::sync::LazyLock;
use wasmi::{Engine, Module};

/// The SHA-256 of the berth-core.wasm in this crate.
pub const MODULE_SHA256: &str = include_str!("raw/berth-core.sha256");

static WASM: &[u8] = include_bytes!("raw/berth-core.wasm");

/// The module, decoded once for all instances.
static MODULE: LazyLock<Module> =
    LazyLock::new(|| Module::new(&Engine::default(), WASM).expect("the core is a module"));

/// Where the header of the core's memory says where the exchange buffer is, and how long: u32
/// each. Reading it takes no call, and is right after every call.
const EXCHANGE: usize = 16;
const EXCHANGE_LENGTH: usize = 20;
const HEADER_BYTES: usize = 64;

impl Default for Raw {
    fn default() -> Raw {
        Raw::new()
    }
}

impl Raw {
    /// A fresh instance. The first one decodes the module; later ones take microseconds.
    pub fn new() -> Raw {
        Raw::instantiate(&MODULE)
    }

    /// An equal instance, in which every handle means what it means here. All state is in the
    /// memory, so a copy of that is a copy of everything.
    pub fn copy(&mut self) -> Result<Raw, Error> {
        let used = self.state_bytes()? as usize;
        let mut copy = Raw::new();
        let missing = self.memory.size(&self.store) - copy.memory.size(&copy.store);
        let grown = copy.memory.grow(&mut copy.store, missing);
        grown.map_err(|_| Error::refused("copy", Status::NoMemory))?;
        copy.memory.data_mut(&mut copy.store)[..used].copy_from_slice(&self.memory()[..used]);
        Ok(copy)
    }

    /// The instance's memory.
    pub fn memory(&self) -> &[u8] {
        self.memory.data(&self.store)
    }

    /// The exchange buffer: where a call has left its output.
    #[inline]
    pub fn buffer(&self) -> &[u8] {
        let memory = self.memory();
        &memory[exchange(memory)]
    }

    /// The exchange buffer, to write input at its start. Empty before the first
    /// [`exchange`](Raw::exchange).
    #[inline]
    pub fn buffer_mut(&mut self) -> &mut [u8] {
        let memory = self.memory.data_mut(&mut self.store);
        let place = exchange(memory);
        &mut memory[place]
    }

    /// The first `length` bytes of the exchange buffer, which grows if it has to.
    #[inline]
    pub fn reserve(&mut self, length: usize) -> Result<&mut [u8], Error> {
        if length > self.buffer().len() {
            self.exchange(clamped(length))?;
        }
        Ok(&mut self.buffer_mut()[..length])
    }

    /// Copies input to the start of the exchange buffer, which grows if it has to.
    pub fn write(&mut self, input: &[u8]) -> Result<(), Error> {
        self.reserve(input.len())?.copy_from_slice(input);
        Ok(())
    }
}

/// A length or a count as the core takes it. What does not fit is above every ceiling, as is the
/// number that it becomes, and the core refuses it.
pub(crate) fn clamped(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// Where the exchange buffer is.
#[inline]
fn exchange(memory: &[u8]) -> Range<usize> {
    let header = memory.first_chunk::<HEADER_BYTES>().expect("the core has a page at least");
    let start = word(header, EXCHANGE);
    start..start + word(header, EXCHANGE_LENGTH)
}

#[inline]
fn word(header: &[u8; HEADER_BYTES], at: usize) -> usize {
    let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
    u32::from_le_bytes(bytes) as usize
}
