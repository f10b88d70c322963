/**
 * Classic BPF programs as lists of instructions. The kernel runs them on each packet for a socket.
 *
 *      0      2    3    4       8
 *      ├ code ┼ jt ┼ jf ┼ k     ┤      (linux/filter.h, struct sock_filter)
 */
import { viewOf } from "./netlink/attribute.ts";

/** BPF_LD | BPF_ABS, by width */
export const LOAD_BYTE = 0x30;
export const LOAD_HALF = 0x28;
export const LOAD_WORD = 0x20;
export const JUMP_EQUAL = 0x15;
/** BPF_RET | BPF_K: the number of bytes to keep. */
const RETURN = 0x06;

export type Instruction = readonly [code: number, jumpTrue: number, jumpFalse: number, k: number];

export const REJECT: Instruction = [RETURN, 0, 0, 0];
export const ACCEPT: Instruction = [RETURN, 0, 0, 0x4_0000];

export function assembleFilter(program: readonly Instruction[]): Uint8Array {
  const bytes = new Uint8Array(8 * program.length);
  const view = viewOf(bytes);
  for (const [index, [code, jumpTrue, jumpFalse, k]] of program.entries()) {
    view.setUint16(8 * index, code, true);
    view.setUint8(8 * index + 2, jumpTrue);
    view.setUint8(8 * index + 3, jumpFalse);
    view.setUint32(8 * index + 4, k, true);
  }
  return bytes;
}

/** Rejects the packet unless `load` loads one of `values`. */
export function requireValue(load: Instruction, values: readonly number[]): Instruction[] {
  const tests = values.map((value, index): Instruction => [JUMP_EQUAL, values.length - index, 0, value]);
  return [load, ...tests, REJECT];
}
