/**
 * The exchange buffer: the one place where host and core pass bytes. The host writes an operation's input to its
 * start and finds the output there. No pointer of the host's is ever followed, so none can be wrong.
 * Effects: linear memory; may grow it and move the buffer.
 */
import { EXCHANGE, EXCHANGE_SIZE, MAX_EXCHANGE, NO_MEMORY, OVER_CEILING } from "../abi";
import { allocate, free } from "./heap";

const MIN_BYTES: u32 = 4096;

/** Returns the start of the buffer. */
export function exchangeAt(): usize {
  return load<u32>(EXCHANGE);
}

/** Bytes of the buffer, a power of two or 0. */
export function exchangeSize(): u32 {
  return load<u32>(EXCHANGE_SIZE);
}

/** Whether there is a buffer: it then holds 4,096 bytes at least, and so any one input but a list. */
export function isOpen(): bool {
  return exchangeSize() != 0;
}

/** Whether the buffer holds `count` items of `bytes` each. */
export function holds(count: i32, bytes: u32): bool {
  return count >= 0 && <u64>(<u32>count) * bytes <= <u64>exchangeSize();
}

/**
 * Makes the buffer at least `bytes` long; its contents survive when it moves. The address, or NO_MEMORY or
 * OVER_CEILING. The size in effect is a power of two.
 */
export function reserveExchange(bytes: u32): i32 {
  const size = exchangeSize();
  if (bytes > MAX_EXCHANGE) return OVER_CEILING;
  if (size > 0 && bytes <= size) return <i32>load<u32>(EXCHANGE);
  const wanted = bytes <= MIN_BYTES ? MIN_BYTES : (<u32>1) << (32 - clz<u32>(bytes - 1));
  const block = allocate(wanted);
  if (block == 0) return NO_MEMORY;
  if (size > 0) {
    memory.copy(block, exchangeAt(), size);
    free(exchangeAt(), size);
  }
  store<u32>(EXCHANGE, <u32>block);
  store<u32>(EXCHANGE_SIZE, wanted);
  return <i32>block;
}
