/** The embedded registry and a cluster node's journal as calls to a store. The statements are in store.ts. */

import { chmodSync, mkdirSync, statSync } from "node:fs";
import { Worker } from "node:worker_threads";
import type { FaultPlan } from "../../lib/fault.ts";
import type { Journal } from "../journal.ts";
import { type Cooldowns, type RecoverableRegistry, RegistryError } from "../registry.ts";
import type { SqliteJournal } from "./journal.ts";
import type { StoreMethod } from "./operation.ts";
import type { SessionOptions } from "./session.ts";
import type { OpenMessage } from "./sqlite-worker.ts";
import { ring, type StoreAccess, StoreThread, type StoreThreadOptions } from "./store-access.ts";

export interface SqliteRegistryOptions extends Omit<StoreThreadOptions, "bell"> {
  /** Boot ID of the running kernel: /proc/sys/kernel/random/boot_id. */
  readonly bootId: string;
  /** Created if missing, mode 0700. */
  readonly directory: string;
  /** Path of the witness, a file in memory; undefined if there is none. */
  readonly witness?: string | undefined;
  /** The machine's monotonic clock, the same in all processes of one boot. */
  readonly nowMs: () => number;
  /** Time to wait for another agent that uses the directory. */
  readonly lockWaitMs: number;
  /** Called once before that wait, with the process that holds the lock. */
  readonly onWaiting?: ((holder: string) => void) | undefined;
  readonly cooldowns: Cooldowns;
  readonly faultPlan?: FaultPlan | undefined;
  readonly faultCounter: SharedArrayBuffer;
}

/** Opens the embedded registry. Rejects with RegistryError. */
export function openSqliteRegistry(options: SqliteRegistryOptions): Promise<RecoverableRegistry> {
  return openSqlite(options, false);
}

/** Opens the journal of a cluster's node. Rejects with RegistryError. */
export function openSqliteJournal(options: SqliteRegistryOptions): Promise<Journal> {
  return openSqlite(options, true);
}

/**
 * A directory that the agent did not create, for example a hostPath volume, may be readable by all; its content is
 * not for other users.
 */
function restrictToOwner(directory: string): void {
  if ((statSync(directory).mode & 0o077) !== 0) chmodSync(directory, 0o700);
}

/** The worker is beside this file: a bundle in the build, TypeScript in the source tree. */
function workerUrl(): URL {
  return new URL(import.meta.url.endsWith(".ts") ? "./sqlite-worker.ts" : "./sqlite-worker.mjs", import.meta.url);
}

async function openSqlite(options: SqliteRegistryOptions, isJournal: boolean): Promise<SqliteRegistry> {
  mkdirSync(options.directory, { recursive: true, mode: 0o700 });
  restrictToOwner(options.directory);
  const bell = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const worker = new Worker(workerUrl(), { workerData: bell, name: "registry" });
  const { directory, witness, bootId, lockWaitMs, cooldowns, faultPlan, faultCounter } = options;
  const times = { lockWaitMs, cooldowns, nowMs: options.nowMs() };
  const session: SessionOptions = { directory, witness, bootId, ...times, faultPlan, faultCounter, isJournal };
  worker.postMessage(session);
  ring(bell);
  const opened = await new Promise<OpenMessage>((resolve, reject) => {
    worker.on("message", (message: OpenMessage) => {
      if (message.kind === "waiting") options.onWaiting?.(message.holder);
      else if (message.kind === "notice") options.onNotice?.(message.text);
      else resolve(message);
    });
    worker.once("error", reject);
  });
  worker.removeAllListeners("message");
  if (opened.kind !== "opened") {
    await worker.terminate();
    throw new RegistryError(opened.kind === "failed" ? opened.message : "The registry's thread did not start");
  }
  const thread = new StoreThread(worker, { ...options, bell }, opened.loss);
  return new SqliteRegistry(thread, options.nowMs);
}

/** Interval of the agent's checks that it can write to its registry, each second after a failure: milliseconds. */
export const PROBE_INTERVAL_MS = 5_000;

export class SqliteRegistry implements Journal, RecoverableRegistry {
  readonly #store: StoreAccess;
  readonly #nowMs: () => number;
  /** Never before the first probe, which begins the log and waits for the disk in place of the first claim. */
  #probedAtMs = Number.NEGATIVE_INFINITY;

  constructor(store: StoreAccess, nowMs: () => number) {
    this.#store = store;
    this.#nowMs = nowMs;
  }

  get trouble(): string | undefined {
    return this.#store.gone?.message ?? this.#store.trouble;
  }

  get pendingCalls(): number {
    return this.#store.pendingCalls;
  }

  async probe(): Promise<void> {
    const isThorough = this.#store.trouble !== undefined;
    if (!isThorough && performance.now() - this.#probedAtMs < PROBE_INTERVAL_MS) return;
    this.#probedAtMs = performance.now();
    if (this.#store.gone !== undefined) return;
    try {
      this.#store.trouble = (await this.#store.send("probe", [isThorough])) as string | undefined;
    } catch {
      // `trouble` has the reason.
    }
  }

  async recover(...of: Parameters<RecoverableRegistry["recover"]>): Promise<void> {
    await this.#call("recover", ...of, this.#nowMs());
    this.#store.trouble = undefined;
  }

  readonly claim: Journal["claim"] = (claim) => this.#call("claim", claim, this.#nowMs());
  readonly undo: Journal["undo"] = (created) => this.#call("undo", created, this.#nowMs());
  readonly retain: Journal["retain"] = (claimed) => this.#call("retain", claimed);
  readonly release: Journal["release"] = (attachment) => this.#call("release", attachment, this.#nowMs());

  async expire(): Promise<void> {
    while (await this.#call("expire", this.#nowMs()));
  }

  readonly findAttachment: Journal["findAttachment"] = (attachment) => this.#call("findAttachment", attachment);
  readonly findAddress: Journal["findAddress"] = (...of) => this.#call("findAddress", ...of);
  readonly findOwner: Journal["findOwner"] = (owner) => this.#call("findOwner", owner);
  readonly findCooling: Journal["findCooling"] = (spans, limit) => this.#call("findCooling", spans, limit);
  readonly quarantine: Journal["quarantine"] = (allocation, quarantine, created = []) =>
    this.#call("quarantineAndUndo", { allocation, quarantine, created }, this.#nowMs());
  readonly findQuarantined: Journal["findQuarantined"] = (query) => this.#call("findQuarantined", query);
  readonly endQuarantine: Journal["endQuarantine"] = (row) => this.#call("endQuarantine", row, this.#nowMs());
  readonly readUsed: Journal["readUsed"] = (span) => this.#call("readUsed", span);
  readonly countUsage: Journal["countUsage"] = () => this.#call("countUsage");
  readonly list: Journal["list"] = (...of) => this.#call("list", ...of);
  readonly findDue: Journal["findDue"] = (limit) => this.#call("findDue", limit, this.#nowMs());
  readonly record: Journal["record"] = (rows) => this.#call("record", rows);
  readonly forget: Journal["forget"] = (allocation, isTaken = false) => this.#call("forget", allocation, isTaken);
  readonly readOwners: Journal["readOwners"] = () => this.#call("readOwners");
  readonly noteOwner: Journal["noteOwner"] = (...of) => this.#call("noteOwner", ...of);
  readonly noteMachine: Journal["noteMachine"] = (machine) => this.#call("noteMachine", machine);
  readonly adopt: Journal["adopt"] = (adoption) => this.#call("adopt", adoption, this.#nowMs());
  readonly collect: Journal["collect"] = (allocation) => this.#call("collect", allocation, this.#nowMs());

  setCooldowns(cooldowns: Cooldowns): void {
    this.#call("setCooldowns", cooldowns).catch(() => {
      // Fails only if the thread has ended, which onDeath has reported.
    });
  }

  readonly close: Journal["close"] = () => this.#store.close();

  #call<M extends StoreMethod>(
    method: M,
    ...args: Parameters<SqliteJournal[M]>
  ): Promise<ReturnType<SqliteJournal[M]>> {
    if (this.#store.gone !== undefined) return Promise.reject(this.#store.gone);
    return this.#store.send(method, args) as Promise<ReturnType<SqliteJournal[M]>>;
  }
}
