/**
 * What each mode gives to the rest of the agent: where its resources come from, where its addresses are written down, and who its pods are.
 * Made by embedded/open-embedded.ts and cluster/open-cluster.ts; agent.ts builds the plugins on it, and tests call addAddresses on it.
 */
import type { FaultPlan } from "../lib/fault.ts";
import type { Log } from "../lib/log.ts";
import type { Allocation } from "../registry/registry.ts";
import type { Detection } from "./detection/open-detection.ts";
import type { RecoverOptions } from "./embedded/recovery/recover.ts";
import type { LiveObjects } from "./explain/live-objects.ts";
import type { AddTools } from "./ipam/add.ts";
import type { CheckTools } from "./ipam/check.ts";
import type { Resources } from "./resources.ts";

/** What both modes need of the process. */
export interface BackendOptions {
  /** This node's name. */
  readonly node: string;
  readonly stateDirectory: string;
  /** Where the runtimes read network definitions; need not be there. */
  readonly cniConfDirectory: string;
  /** The built core, berth-core.wasm. */
  readonly coreWasm: Uint8Array;
  /** Of the running kernel: /proc/sys/kernel/random/boot_id. */
  readonly bootId: string;
  /** The machine's monotonic clock. */
  readonly nowMs: () => number;
  /** How long to wait for another agent that has the state directory. */
  readonly lockWaitMs: number;
  /** Called once, before that wait, with its holder. */
  readonly onWaiting?: ((holder: string) => void) | undefined;
  /** Path of the registry's witness, in memory; absent: there is none. */
  readonly witness?: string | undefined;
  /** The registry has lost rows, which come back by themselves: a sentence. */
  readonly onNotice?: ((text: string) => void) | undefined;
  readonly faultPlan?: FaultPlan | undefined;
  readonly faultCounter: SharedArrayBuffer;
  readonly log: Log;
  /** The agent cannot go on: its registry's thread died. */
  readonly onDeath: (error: Error) => void;
}

export interface Backend {
  readonly mode: "embedded" | "cluster";
  readonly resources: Resources;
  /** What addAddresses and checkAddresses want, and what belongs to the asking. */
  readonly tools: AddTools & CheckTools & Detection;
  /** Waits, for a bounded time, until resources are known at all. Rejects with CniError 50 that says what is missing. */
  synced(signal: AbortSignal): Promise<void>;
  /** Whether an ADD can be served, from memory. */
  isReady(): boolean;
  /** Beside those of the resources: each a sentence. */
  problems(): readonly string[];
  /** Before the first request: how to take away what the coordinator made for an attachment. Absent: the agent never does so by itself. */
  readonly fenceWith?: ((detach: (row: Allocation) => Promise<void>) => void) | undefined;
  /** For explanations; undefined where there is no API server. */
  readonly live?: LiveObjects | undefined;
  /** Fills a registry that has lost rows: lines for people. Absent where that needs nobody. */
  recover?(options: RecoverOptions): Promise<readonly string[]>;
  /** Counters for GET /v1/stats: plain JSON. */
  stats(): Readonly<Record<string, unknown>>;
  close(): Promise<void>;
}
