/**
 * Replays conformance vectors, each on a fresh instance of the core, as test/vectors/core/README.md says.
 * Called in a browser's page and in Node.js.
 * Effects: none outside the instances.
 */
import { type CoreExports, openRaw } from "berth-core";

export interface Vector {
  readonly steps: readonly Step[];
  readonly state: { readonly bytes: number; readonly fnv1a64: string };
}

interface Step {
  readonly call: Exclude<keyof CoreExports, "memory">;
  readonly args: readonly number[];
  readonly input?: string;
  readonly result: number;
  readonly output?: string;
}

/** A difference between a vector's expectation and the core's behaviour. */
class Difference extends Error {}

/** Replays files of vectors in turn and says what each came to; ends with the first difference, if there is one. */
export async function replayAll(
  files: readonly string[],
  read: (file: string) => Promise<Vector>,
  wasm: WebAssembly.Module,
  say: (line: string) => void,
): Promise<string | undefined> {
  try {
    for (const file of files) say(await replay(file.replace(/\.json$/, ""), await read(file), wasm));
    return undefined;
  } catch (error) {
    if (error instanceof Difference) return error.message;
    throw error;
  }
}

/**
 * Returns the outcome of the vector: its steps, and the memory from address 0 to state_bytes(). Throws {@link
 * Difference}.
 */
async function replay(name: string, { steps, state }: Vector, wasm: WebAssembly.Module): Promise<string> {
  const core = await openRaw(wasm);
  for (const [index, step] of steps.entries()) {
    const complaint = play(core, step);
    if (complaint === undefined) continue;
    throw new Difference(`${name}: step ${index}, ${step.call}(${step.args.join(", ")}): ${complaint}`);
  }
  const memory = new Uint8Array(core.memory.buffer, 0, core.state_bytes());
  if (memory.length !== state.bytes) {
    throw new Difference(`${name}: state: ${memory.length} bytes, wanted ${state.bytes}`);
  }
  const fnv = fnv1a64(memory);
  if (fnv !== state.fnv1a64) throw new Difference(`${name}: state: fnv1a64 ${fnv}, wanted ${state.fnv1a64}`);
  const sha256 = new Uint8Array(await crypto.subtle.digest("SHA-256", memory.slice()));
  return `${name}: ${steps.length} steps, ${memory.length} bytes, sha256 ${hexOf(sha256)}`;
}

/** Does one step; what differs, if anything. */
function play(core: CoreExports, { call, args, input, result, output }: Step): string | undefined {
  if (input !== undefined) {
    const bytes = bytesOf(input);
    const start = core.exchange(bytes.length);
    new Uint8Array(core.memory.buffer).set(bytes, start);
  }
  const found = (core[call] as (...args: number[]) => number)(...args);
  if (found !== result) return `result ${found}, wanted ${result}`;
  if (output === undefined) return undefined;
  const written = hexOf(new Uint8Array(core.memory.buffer, core.exchange(0), output.length / 2));
  return written === output ? undefined : `output ${written}, wanted ${output}`;
}

function bytesOf(hex: string): Uint8Array {
  return Uint8Array.from({ length: hex.length / 2 }, (_, index) =>
    Number.parseInt(hex.slice(2 * index, 2 * index + 2), 16),
  );
}

function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** In two halves of 32 bits: a BigInt for each byte would take seconds. The prime is 2^40 + 0x1b3. */
function fnv1a64(bytes: Uint8Array): string {
  let high = 0xcbf29ce4;
  let low = 0x84222325;
  for (const byte of bytes) {
    low = (low ^ byte) >>> 0;
    const product = low * 0x1b3;
    high = (high * 0x1b3 + ((low << 8) >>> 0) + Math.floor(product / 2 ** 32)) % 2 ** 32;
    low = product % 2 ** 32;
  }
  return [high, low].map((half) => half.toString(16).padStart(8, "0")).join("");
}
