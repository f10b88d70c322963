/**
 * What each mode gives to the rest of the agent: where its resources come from, where its addresses are written down, and who its pods are.
 * Made by open-embedded.ts and cluster/open-cluster.ts; agent.ts builds the plugins on it, and tests call addAddresses on it.
 * Effects: none (types only).
 */
import type { Detection } from "./detection/open-detection.ts";
import type { AddTools } from "./ipam/add.ts";
import type { Resources } from "./resources.ts";

export interface Foundation {
  readonly mode: "embedded" | "cluster";
  readonly resources: Resources;
  /** What addAddresses wants, and what belongs to the asking. */
  readonly tools: AddTools & Detection;
  /** Waits, for a bounded time, until resources are known at all. Rejects with CniError 50 that says what is missing. */
  synced(signal: AbortSignal): Promise<void>;
  /** Beside those of the resources: each a sentence. */
  problems(): readonly string[];
  /** Counters for GET /v1/stats: plain JSON. */
  stats(): Readonly<Record<string, unknown>>;
  close(): Promise<void>;
}
