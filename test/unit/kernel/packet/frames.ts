/** Recorded frames (record/frames.ts), each with the words of `tcpdump`, and an interpreter of filters. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

export interface RecordedFrame {
  readonly command: string;
  /** tcpdump's line. */
  readonly reading: string;
  readonly frame: Uint8Array;
}

/** `$ command`, then two lines for each frame: tcpdump's words, and its bytes. */
export function readFrames(): RecordedFrame[] {
  const text = readFileSync(join(import.meta.dirname, "../recorded/frames.txt"), "utf8");
  return text.split(/^\$ /m).flatMap((row) => {
    const [command = "", ...lines] = row.trimEnd().split("\n");
    const frames = [...lines.join("\n").matchAll(/^(.+)\n(.+)$/gm)];
    return frames.map(([, reading = "", hex = ""]) => ({ command, reading, frame: Uint8Array.fromHex(hex) }));
  });
}

/**
 * Returns the number of bytes that a classic BPF program of loads, equal-jumps and returns keeps of a frame. A load
 * beyond the end keeps none. `packetType` is the kernel's type of the frame (PACKET_*).
 */
export function runFilter(program: Uint8Array, frame: Uint8Array, packetType = 0): number {
  const code = new DataView(program.buffer, program.byteOffset, program.byteLength);
  const bytes = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
  const widths: Record<number, number> = { 32: 4, 40: 2, 48: 1 };
  let accumulator = 0;
  for (let at = 0; ; at += 8) {
    const operation = code.getUint16(at, true);
    const k = code.getUint32(at + 4, true);
    const width = widths[operation];
    if (operation === 0x06) return k;
    if (operation === 0x15) at += 8 * code.getUint8(accumulator === k ? at + 2 : at + 3);
    else if (operation === 0x30 && k === 0xffff_f004) accumulator = packetType;
    else if (width === undefined) throw new Error(`instruction 0x${operation.toString(16)}`);
    else if (k + width > frame.length) return 0;
    else if (width === 4) accumulator = bytes.getUint32(k);
    else accumulator = width === 2 ? bytes.getUint16(k) : bytes.getUint8(k);
  }
}
