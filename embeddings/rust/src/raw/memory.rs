//! The memory of an instance, little-endian, as WebAssembly has it.

const PAGE: usize = 65536;

/// Bytes that can become more. An access beyond their end panics, as WebAssembly would trap: that
/// is a bug of the core.
pub(super) struct Memory {
    /// At least `length` bytes; those behind are zero, and cost nothing until they are used.
    bytes: Vec<u8>,
    length: usize,
}

macro_rules! accesses {
    ($($type:ident: $load:ident, $store:ident;)*) => {
        $(
            #[allow(dead_code)] // whether the core uses it, depends on its compiler
            #[inline(always)]
            pub fn $load(&self, at: u32, offset: usize) -> $type {
                let start = start_of(at, offset);
                let bytes = &self.bytes[start..start + size_of::<$type>()];
                $type::from_le_bytes(bytes.try_into().expect("so many bytes"))
            }

            #[inline(always)]
            pub fn $store(&mut self, at: u32, offset: usize, value: $type) {
                let start = start_of(at, offset);
                self.bytes[start..start + size_of::<$type>()].copy_from_slice(&value.to_le_bytes());
            }
        )*
    };
}

/// Where an access starts. The check is for processors of 32 bits, and gone on others.
#[inline(always)]
fn start_of(at: u32, offset: usize) -> usize {
    (at as usize).checked_add(offset).expect("an address in the memory")
}

impl Memory {
    /// So many pages of zeros.
    pub fn new(pages: u32) -> Memory {
        let length = pages as usize * PAGE;
        Memory { bytes: vec![0; length], length }
    }

    /// An equal memory of which only the first `used` bytes may be other than zero.
    pub fn copy_of(&self, used: usize) -> Memory {
        let mut bytes = vec![0; self.length];
        bytes[..used].copy_from_slice(&self.bytes[..used]);
        Memory { bytes, length: self.length }
    }

    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.length]
    }

    accesses! {
        u8: load8, store8;
        u16: load16, store16;
        u32: load32, store32;
        u64: load64, store64;
    }

    /// memory.copy
    pub fn copy(&mut self, to: u32, from: u32, length: u32) {
        let (to, from, length) = (to as usize, from as usize, length as usize);
        assert!(to + length <= self.length, "the copy ends in the memory");
        self.bytes.copy_within(from..from + length, to);
    }

    /// memory.fill
    pub fn fill(&mut self, at: u32, value: u8, length: u32) {
        self.bytes[at as usize..][..length as usize].fill(value);
    }

    /// memory.size
    pub fn pages(&self) -> u32 {
        (self.length / PAGE) as u32
    }

    /// memory.grow: the pages before, or all ones when the memory cannot be so long.
    pub fn grow(&mut self, pages: u32, most: u32) -> u32 {
        let before = self.pages();
        if pages > most - before {
            return u32::MAX;
        }
        let length = (before + pages) as usize * PAGE;
        if length > self.bytes.len() {
            let room = (2 * length).min(most as usize * PAGE);
            let mut bytes = vec![0; room];
            bytes[..self.length].copy_from_slice(self.bytes());
            self.bytes = bytes;
        }
        self.length = length;
        before
    }
}

#[cfg(test)]
mod tests {
    use super::{Memory, PAGE};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn it_grows_by_zeros_up_to_its_maximum() {
        let mut memory = Memory::new(1);
        memory.store8(0, 7, 9);
        assert_eq!(memory.grow(2, 5), 1);
        assert_eq!(memory.grow(1, 5), 3);
        assert_eq!(memory.bytes().len(), 4 * PAGE);
        assert_eq!(memory.load8(7, 0), 9);
        assert!(memory.bytes()[PAGE..].iter().all(|byte| *byte == 0));
        assert_eq!(memory.grow(2, 5), u32::MAX);
        assert_eq!(memory.grow(u32::MAX, 5), u32::MAX);
        assert_eq!(memory.pages(), 4);
    }

    #[test]
    fn beyond_its_end_it_panics() {
        let end = PAGE as u32;
        let accesses: [fn(&mut Memory, u32); 5] = [
            |memory, end| _ = memory.load8(end, 0),
            |memory, end| _ = memory.load64(end - 7, 0),
            |memory, _| memory.store32(u32::MAX, 1, 0),
            |memory, end| memory.copy(end - 4, 0, 5),
            |memory, end| memory.fill(end - 4, 1, 5),
        ];
        for access in accesses {
            let mut memory = Memory::new(1);
            let outcome = catch_unwind(AssertUnwindSafe(|| access(&mut memory, end)));
            assert!(outcome.is_err());
        }
    }
}
