/** What a walk is about: pods, what they have, and the nodes with their agents. */
import type { DatabaseSync } from "node:sqlite";
import type { Reconciler } from "../../../host/agent/gc/reconciler.ts";
import type { KubernetesRegistry } from "../../../host/registry/kubernetes/kubernetes-registry.ts";
import type { ObjectChange } from "../../../host/registry/kubernetes/object-sync.ts";
import type { IpAllocation, Workload } from "../../../host/resources/ip-allocation.ts";
import { openDisk } from "../../fakes/memory-journal.ts";

export interface WalkPod {
  readonly name: string;
  readonly uid: string;
  readonly node: string;
  readonly workload?: Workload;
  /** The families it asks for. */
  readonly sides: readonly (4 | 6)[];
  isGone: boolean;
  /** Of the ADD under way. */
  adding?: AbortController | undefined;
}

/** A NIC that has the address, as the pod sees it. */
export interface Live {
  readonly pod: WalkPod;
  readonly containerId: string;
  readonly address: string;
}

export interface Agent {
  readonly registry: KubernetesRegistry;
  readonly reconciler: Reconciler;
  isDead: boolean;
}

export class WalkNode {
  readonly name: string;
  disk: DatabaseSync = openDisk();
  boot = 1;
  agent: Agent | undefined;
  readonly events: ObjectChange[] = [];
  items = new Map<string, IpAllocation>();
  isSynced = false;
  /** DELs that no agent has answered. */
  readonly spool: { containerId: string; ifName: string }[] = [];

  constructor(name: string) {
    this.name = name;
  }
}
