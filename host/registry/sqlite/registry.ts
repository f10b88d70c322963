/**
 * The embedded registry, and a cluster node's journal: `Registry` and `Journal` as calls to a thread that owns the database. The statements are in
 * store.ts, the thread in sqlite-worker.ts.
 */
import { chmodSync, mkdirSync, statSync } from "node:fs";
import { Worker } from "node:worker_threads";
import type { FaultPlan } from "../../lib/fault.ts";
import type { Ip } from "../../net/ip.ts";
import type { Adoption, Journal } from "../journal.ts";
import type {
  AddressSpan,
  Allocation,
  Attachment,
  Claim,
  ClaimOutcome,
  Cooldowns,
  FreedObserver,
  ListCursor,
  Quarantine,
  QuarantineQuery,
  RecoverableRegistry,
  Recovered,
  UsageCount,
} from "../registry.ts";
import { RegistryError } from "../registry.ts";
import type { Reply } from "./batch.ts";
import type { SqliteJournal } from "./journal.ts";
import type { CallMessage, StoreMethod } from "./operation.ts";
import type { SessionOptions } from "./session.ts";
import type { NoticeMessage, OpenMessage } from "./sqlite-worker.ts";

/** How often the agent checks that it can write to its registry: milliseconds. After a failure it checks every second. @limit */
export const PROBE_INTERVAL_MS = 5_000;

export interface SqliteRegistryOptions {
  /** Created if missing, mode 0700. */
  readonly directory: string;
  /** Path of the witness, a file in memory; undefined if there is none. */
  readonly witness?: string | undefined;
  /** Of the running kernel: /proc/sys/kernel/random/boot_id. */
  readonly bootId: string;
  /** The machine's monotonic clock, the same in all processes of one boot. */
  readonly nowMs: () => number;
  /** How long to wait for another agent that uses the directory. */
  readonly lockWaitMs: number;
  /** Called once before that wait, with the process that holds the lock. */
  readonly onWaiting?: ((holder: string) => void) | undefined;
  /** Called with a sentence when rows were lost that are restored without an administrator. */
  readonly onNotice?: ((text: string) => void) | undefined;
  readonly cooldowns: Cooldowns;
  readonly onFreed: FreedObserver;
  /** The thread ended: nothing can be recorded any more. */
  readonly onDeath: (error: Error) => void;
  readonly faultPlan?: FaultPlan | undefined;
  readonly faultCounter: SharedArrayBuffer;
}

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** The thread keeps nothing between two calls; the largest reply is a page of allocations. */
const WORKER_HEAP = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 48 };

/** The worker is beside this file: a bundle in the build, TypeScript in the source tree. */
function workerUrl(): URL {
  return new URL(import.meta.url.endsWith(".ts") ? "./sqlite-worker.ts" : "./sqlite-worker.mjs", import.meta.url);
}

/** Opens the embedded registry. Rejects with RegistryError. */
export function openSqliteRegistry(options: SqliteRegistryOptions): Promise<RecoverableRegistry> {
  return openSqlite(options, false);
}

/** Opens the journal of a cluster's node. Rejects with RegistryError. */
export function openSqliteJournal(options: SqliteRegistryOptions): Promise<Journal> {
  return openSqlite(options, true);
}

/** A directory that the agent did not create, for example a hostPath volume, may be readable by all; its content is not for other users. */
function restrictToOwner(directory: string): void {
  if ((statSync(directory).mode & 0o077) !== 0) chmodSync(directory, 0o700);
}

async function openSqlite(options: SqliteRegistryOptions, isJournal: boolean): Promise<SqliteRegistry> {
  mkdirSync(options.directory, { recursive: true, mode: 0o700 });
  restrictToOwner(options.directory);
  const workerData: SessionOptions = {
    directory: options.directory,
    witness: options.witness,
    bootId: options.bootId,
    lockWaitMs: options.lockWaitMs,
    cooldowns: options.cooldowns,
    faultPlan: options.faultPlan,
    faultCounter: options.faultCounter,
    isJournal,
    nowMs: options.nowMs(),
  };
  const worker = new Worker(workerUrl(), { workerData, name: "registry", resourceLimits: WORKER_HEAP });
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
  return new SqliteRegistry(worker, options, opened.loss);
}

class SqliteRegistry implements Journal, RecoverableRegistry {
  readonly #worker: Worker;
  readonly #nowMs: () => number;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;
  #gone: RegistryError | undefined;
  #trouble: string | undefined;
  #probedAtMs = performance.now();

  constructor(worker: Worker, options: SqliteRegistryOptions, loss: string | undefined) {
    this.#trouble = loss;
    this.#worker = worker;
    this.#nowMs = options.nowMs;
    worker.removeAllListeners("error");
    worker.on("message", (message: Reply | NoticeMessage) => {
      if ("kind" in message) options.onNotice?.(message.text);
      else this.#deliver(message, options.onFreed);
    });
    const die = (error: Error): void => {
      if (this.#gone !== undefined) return;
      this.#end(new RegistryError(`The registry's thread ended: ${error.message}`, { cause: error }));
      options.onDeath(error);
    };
    worker.on("error", die);
    worker.on("exit", (code) => die(new Error(`exit code ${code}`)));
  }

  get trouble(): string | undefined {
    return this.#gone?.message ?? this.#trouble;
  }

  get pendingCalls(): number {
    return this.#waiting.size;
  }

  async probe(): Promise<void> {
    const isThorough = this.#trouble !== undefined;
    if (!isThorough && performance.now() - this.#probedAtMs < PROBE_INTERVAL_MS) return;
    this.#probedAtMs = performance.now();
    if (this.#gone !== undefined) return;
    try {
      this.#trouble = (await this.#send("probe", [isThorough])) as string | undefined;
    } catch {
      // `trouble` has the reason.
    }
  }

  async recover(found: readonly Recovered[], gone: readonly Allocation[]): Promise<void> {
    await this.#call("recover", found, gone, this.#nowMs());
    this.#trouble = undefined;
  }

  claim(claim: Claim): Promise<ClaimOutcome> {
    return this.#call("claim", claim, this.#nowMs());
  }

  undo(created: readonly Allocation[]): Promise<void> {
    return this.#call("undo", created, this.#nowMs());
  }

  release(attachment: Attachment): Promise<readonly Allocation[]> {
    return this.#call("release", attachment, this.#nowMs());
  }

  releaseOthers(network: string, valid: readonly Attachment[], beforeMs: number): Promise<readonly Allocation[]> {
    return this.#call("releaseOthers", network, valid, beforeMs, this.#nowMs());
  }

  releaseUnattached(beforeMs: number): Promise<readonly Allocation[]> {
    return this.#call("releaseUnattached", beforeMs, this.#nowMs());
  }

  async expire(): Promise<number> {
    for (;;) {
      const cooling = await this.#call("expire", this.#nowMs());
      if (cooling !== undefined) return cooling;
    }
  }

  findAttachment(attachment: Attachment): Promise<readonly Allocation[]> {
    return this.#call("findAttachment", attachment);
  }

  findAddress(space: string, ip: Ip): Promise<Allocation | undefined> {
    return this.#call("findAddress", space, ip);
  }

  findOwner(owner: string): Promise<readonly Allocation[]> {
    return this.#call("findOwner", owner);
  }

  findCooling(spans: readonly AddressSpan[], limit: number): Promise<readonly Allocation[]> {
    return this.#call("findCooling", spans, limit);
  }

  quarantine(
    allocation: Allocation,
    quarantine: Quarantine,
    created: readonly Allocation[] = [],
  ): Promise<Allocation | undefined> {
    return this.#call("quarantineAndUndo", { allocation, quarantine, created }, this.#nowMs());
  }

  findQuarantined(query: QuarantineQuery): Promise<readonly Allocation[]> {
    return this.#call("findQuarantined", query);
  }

  postponeProbe(allocation: Allocation, nextProbeAtMs: number): Promise<void> {
    return this.#call("postponeProbe", allocation, nextProbeAtMs);
  }

  endQuarantine(allocation: Allocation): Promise<void> {
    return this.#call("endQuarantine", allocation, this.#nowMs());
  }

  trust(allocation: Allocation): Promise<Allocation | undefined> {
    return this.#call("trust", allocation);
  }

  readUsed(span: AddressSpan): Promise<Uint8Array> {
    return this.#call("readUsed", span);
  }

  async listUsed(): Promise<undefined> {
    return undefined;
  }

  async readUsageSummary(): Promise<undefined> {
    return undefined;
  }

  async findRetained(): Promise<readonly Allocation[]> {
    return [];
  }

  countUsage(): Promise<readonly UsageCount[]> {
    return this.#call("countUsage");
  }

  list(after: ListCursor | undefined, limit: number): Promise<readonly Allocation[]> {
    return this.#call("list", after, limit);
  }

  findDue(limit: number): Promise<readonly Allocation[]> {
    return this.#call("findDue", limit, this.#nowMs());
  }

  findUnconfirmed(limit: number): Promise<readonly Allocation[]> {
    return this.#call("findUnconfirmed", limit);
  }

  confirm(allocations: readonly Allocation[]): Promise<void> {
    return this.#call("confirm", allocations);
  }

  forget(allocation: Allocation): Promise<boolean> {
    return this.#call("forget", allocation);
  }

  adopt(adoption: Adoption): Promise<Allocation | undefined> {
    return this.#call("adopt", adoption, this.#nowMs());
  }

  collect(allocation: Allocation): Promise<Allocation | undefined> {
    return this.#call("collect", allocation, this.#nowMs());
  }

  setCooldowns(cooldowns: Cooldowns): void {
    this.#call("setCooldowns", cooldowns).catch(() => {
      // Fails only if the thread has ended, which onDeath has reported.
    });
  }

  async close(): Promise<void> {
    if (this.#gone !== undefined) return;
    const closed = this.#send("close", []);
    this.#gone = new RegistryError("The registry is closed");
    await closed;
    await this.#worker.terminate();
  }

  #call<M extends StoreMethod>(
    method: M,
    ...args: Parameters<SqliteJournal[M]>
  ): Promise<ReturnType<SqliteJournal[M]>> {
    if (this.#gone !== undefined) return Promise.reject(this.#gone);
    return this.#send(method, args) as Promise<ReturnType<SqliteJournal[M]>>;
  }

  #send(method: CallMessage["method"], args: readonly unknown[]): Promise<unknown> {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, method, args } satisfies CallMessage);
    });
  }

  /** Reports freed addresses before the caller goes on, in the order of the writes. */
  #deliver(reply: Reply, onFreed: FreedObserver): void {
    const waiting = this.#waiting.get(reply.id);
    this.#waiting.delete(reply.id);
    if ("error" in reply) {
      if (reply.error.isStorage) this.#trouble = reply.error.message;
      waiting?.reject(new RegistryError(reply.error.message, { full: reply.error.full }));
    } else {
      for (const { space, ip } of reply.freed) onFreed(space, ip);
      waiting?.resolve(reply.value);
    }
  }

  #end(error: RegistryError): void {
    this.#gone = error;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}
