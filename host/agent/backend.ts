/**
 * The port to a mode of the agent: resources, records of addresses, and identities of pods. The two implementations
 * are embedded/backend.ts and cluster/backend.ts.
 */

import type { PodsOfRows } from "../ipam/leak.ts";
import type { KubeClient } from "../kubernetes/client.ts";
import type { FaultPlan } from "../lib/fault.ts";
import type { Log } from "../lib/log.ts";
import type { AgentMetrics } from "../metrics/agent-metrics.ts";
import type { KubernetesRegistry } from "../registry/kubernetes/kubernetes-registry.ts";
import type { Allocation, Attachment, RegistryHealth } from "../registry/registry.ts";
import type { IpAllocation } from "../resources/ip-allocation.ts";
import type { AddDeps } from "./ipam/add.ts";
import type { ReadinessSource } from "./ipam/plugin.ts";
import type { Audit } from "./log/audit.ts";
import type { Resources } from "./request/resources.ts";

export interface RecoverOptions {
  /** Directories in which runtimes keep cached results. */
  readonly results: readonly string[];
  /** Directories in which runtimes keep network namespaces. */
  readonly netns: readonly string[];
  readonly isDryRun: boolean;
}

/** The options that both modes get from the process. */
export interface BackendOptions {
  /** This node's name. */
  readonly node: string;
  readonly stateDirectory: string;
  /** Directory of the runtimes' network definitions; may be missing. */
  readonly cniConfDirectory: string;
  /** The built core, berth-core.wasm. */
  readonly coreWasm: Uint8Array;
  /** Boot ID of the running kernel: /proc/sys/kernel/random/boot_id. */
  readonly bootId: string;
  /** The machine's monotonic clock. */
  readonly nowMs: () => number;
  /** Time to wait for another agent that locks the state directory. */
  readonly lockWaitMs: number;
  /** Called once, before that wait, with the lock's holder. */
  readonly onWaiting?: ((holder: string) => void) | undefined;
  /** Path of the registry's witness, in memory; absent: there is none. */
  readonly witness?: string | undefined;
  /** The registry has lost rows, which it recovers by itself: a sentence. */
  readonly onNotice?: ((text: string) => void) | undefined;
  readonly faultPlan?: FaultPlan | undefined;
  readonly faultCounter: SharedArrayBuffer;
  /** Absent: nothing is counted. */
  readonly metrics?: AgentMetrics | undefined;
  readonly log: Log;
  readonly audit: Audit;
  /** The registry's thread died, so the agent has to end. */
  readonly onDeath: (error: Error) => void;
}

export interface Backend extends ReadinessSource {
  readonly mode: "embedded" | "cluster";
  readonly resources: Resources;
  readonly health: RegistryHealth;
  /** For {@link addAddresses}, and all that allocates. */
  readonly ipam: AddDeps;
  /** Before the first request: how to remove the coordinator's objects for an attachment. By default it never does. */
  fenceWith?(detach: (row: Allocation) => Promise<void>): void;
  /**
   * Returns whether the addresses of the attachment were released while its sandbox is still there. Absent where the
   * agent releases nothing by itself.
   */
  isReleased?(attachment: Attachment): boolean;
  /** Tells the cluster's people about this node: a word for programs, and a sentence. Absent without a cluster. */
  reportNode?(reason: string, sentence: string): void;
  /** For explanations; undefined where there is no API server. */
  readonly live?: LiveObjects | undefined;
  /** Fills a registry that has lost rows; returns lines of text. Absent where the registry recovers by itself. */
  recover?(options: RecoverOptions): Promise<readonly string[]>;
  /** Absent without a cluster. */
  readonly registry?: KubernetesRegistry;
  /** The agent's own connection to the API server; undefined where there is none. */
  readonly client?: KubeClient | undefined;
  /** Sets the metrics of this mode. */
  collectMetrics(metrics: AgentMetrics): Promise<void>;
  /** Reads the rows' pods now. Absent where pods are not known; rejects without an answer. */
  readPodsOf?(rows: readonly Allocation[]): Promise<PodsOfRows>;
  /** Reads the node's objects, and those of these names. Absent without a cluster; rejects without an answer. */
  readObjects?(names: ReadonlySet<string>): Promise<readonly IpAllocation[]>;
  /** Counters for GET /v1/stats: plain JSON. */
  stats(): Readonly<Record<string, unknown>>;
  close(): Promise<void>;
}

/** Returns the problems of a backend, of which `own` are those of its mode. */
export function problemsOf(
  { resources: { state }, ipam, health: { trouble } }: Pick<Backend, "resources" | "ipam" | "health">,
  own: readonly string[],
): readonly string[] {
  const first = trouble === undefined ? [] : [trouble];
  return [...first, ...state.problems, ...state.snapshot.problems, ...ipam.inventory.problems, ...own];
}

/** The outcome of one read; `why` is a clause. */
export type ReadResult<T> =
  | { readonly kind: "there"; readonly value: T }
  | { readonly kind: "absent" }
  | { readonly kind: "unseen"; readonly why: string };

/** Objects read from the API server itself, for explanations. */
export interface LiveObjects {
  /** One of Berth's own kinds by its plural. Never rejects. */
  read(plural: "ippools" | "ippoolusages", name: string): Promise<ReadResult<unknown>>;
}
