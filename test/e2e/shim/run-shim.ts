/** Executes the built shim as a container runtime does, and returns its outcome. Effects: child processes. */
import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";
import { join } from "node:path";

export const root = join(import.meta.dirname, "../../..");

export interface ShimCall {
  /** An executable; by default the built `berth`. */
  readonly executable?: string;
  readonly command?: string;
  /** Arguments of the command line; a runtime gives none. */
  readonly args?: readonly string[];
  /** The whole environment besides CNI_COMMAND. */
  readonly env?: Record<string, string>;
  /** `null` leaves stdin open. */
  readonly stdin?: string | Uint8Array | null;
  /** Runs the executable by this command, for example `["unshare", "-m"]`. */
  readonly prefix?: readonly string[];
  readonly stdio?: StdioOptions;
  readonly started?: (child: ChildProcess) => void;
}

export interface ShimOutcome {
  readonly exitCode: number | null;
  readonly stdout: Buffer;
  readonly stderr: string;
  readonly elapsedMs: number;
}

export const NET_CONF = '{"cniVersion":"1.0.0","name":"blue","type":"macvlan","ipam":{"type":"berth"}}';

function collect(stream: NodeJS.ReadableStream | null): Buffer[] {
  const chunks: Buffer[] = [];
  stream?.on("data", (chunk: Buffer) => chunks.push(chunk));
  return chunks;
}

/** Resolves when the shim has ended and its output is complete. */
export function runShim(call: ShimCall): Promise<ShimOutcome> {
  const line = [...(call.prefix ?? []), call.executable ?? join(root, "dist/bin/berth"), ...(call.args ?? [])];
  const env = { ...call.env, ...(call.command === undefined ? {} : { CNI_COMMAND: call.command }) };
  const startedAt = performance.now();
  const child = spawn(line[0] ?? "", line.slice(1), { env, stdio: call.stdio ?? "pipe" });
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);
  child.stdin?.on("error", () => {}); // the shim need not read all of it
  if (call.stdin !== null) child.stdin?.end(call.stdin ?? NET_CONF);
  call.started?.(child);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (exitCode) => {
      const elapsedMs = performance.now() - startedAt;
      resolve({ exitCode, stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr).toString(), elapsedMs });
    });
  });
}

export interface CniErrorBody {
  readonly cniVersion: string;
  readonly code: number;
  readonly msg: string;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The bytes as one JSON object in UTF-8. Throws when they are anything else. */
export function decodeObject(bytes: Uint8Array): Record<string, unknown> {
  const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  if (!isRecord(value)) throw new Error(`Not an object: ${JSON.stringify(value)}`);
  return value;
}

/** Returns the CNI error JSON that the shim printed. Throws when it is none, or when the exit code is not 1. */
export function requireCniError(outcome: ShimOutcome): CniErrorBody {
  const { cniVersion, code, msg } = decodeObject(outcome.stdout);
  if (outcome.exitCode !== 1) throw new Error(`Exit code is ${outcome.exitCode}; want 1`);
  if (typeof cniVersion !== "string" || typeof code !== "number" || typeof msg !== "string") {
    throw new Error(`Not a CNI error: ${outcome.stdout}`);
  }
  return { cniVersion, code, msg };
}
