/**
 * Looks after NICs that go without a DEL. One whose link on the node was deleted is gone from a pod that runs on: it is
 * reported, for only a new pod gets a new one. With the pod's namespace its addresses have no use any more: without a
 * cluster, whose pods would tell, they are collected (leak).
 * Effects: the log, an event; records of the registry.
 */
import { setImmediate } from "node:timers/promises";
import { NetlinkError } from "../../kernel/netlink/error.ts";
import { findLinks } from "../../kernel/netlink/link/requests.ts";
import { NetnsError } from "../../kernel/netns.ts";
import type { Log } from "../../lib/log.ts";
import { PeriodicWorker } from "../../lib/periodic.ts";
import { insteadOf } from "../../lib/try-or.ts";
import { formatIp } from "../../net/ip.ts";
import { listRows } from "../../registry/list-rows.ts";
import type { Allocation, Registry } from "../../registry/registry.ts";
import type { Backend } from "../backend.ts";
import { pluginsOfRow } from "../coordinator/rebuild-request.ts";
import type { Audit } from "../log/audit.ts";
import { openPodNetns, readNetnsStatus } from "../netns/pod-netns.ts";

/** Time for which a NIC must be missing: milliseconds. A DEL deletes it before its address is released. */
const CONFIRM_MS = 2_000;

/** Interval at which NICs are looked for again while some are missing: milliseconds. */
const RECHECK_MS = 5_000;

/** Shortest time between two searches: milliseconds. */
const REST_MS = 1_000;

/** Most NICs that a sentence names. */
const MAX_NAMED = 8;

/** Main plugins whose device may be a driver's of the pod (VFIO), and no link. */
const DRIVER_TYPES = ["sriov", "userspace"];

interface MissingNicsDeps {
  readonly registry: Pick<Registry, "list" | "collect">;
  readonly backend: Pick<Backend, "ipam" | "mode" | "reportNode" | "resources">;
  readonly nowMs: () => number;
  readonly log: Log;
  readonly audit: Audit;
}

export class MissingNics {
  readonly #deps: MissingNicsDeps;
  readonly #worker: PeriodicWorker;
  /** When a row's namespace or NIC was first missed; by address, version of the row, and the missing part. */
  #missed: ReadonlyMap<string, number> = new Map();
  /** The NICs that were missing for long enough, in words. */
  #lost: ReadonlySet<string> = new Set();

  constructor(deps: MissingNicsDeps) {
    this.#deps = deps;
    this.#worker = new PeriodicWorker({
      failure: "Looking for the NICs of pods failed",
      work: () => this.#search(),
      firstMs: REST_MS,
      restMs: () => REST_MS,
      retryMs: () => RECHECK_MS,
      log: deps.log,
    });
  }

  /** Number of NICs that were missing for long enough. */
  get count(): number {
    return this.#lost.size;
  }

  /** A link of the node is gone, or may be. */
  wake(): void {
    this.#worker.wake();
  }

  async close(): Promise<void> {
    await this.#worker.close();
  }

  /** Returns when to search again: milliseconds; undefined if only a change can make NICs go. */
  async #search(): Promise<number | undefined> {
    const { registry, backend, nowMs, log, audit } = this.#deps;
    const { graceMs } = backend.resources.state.snapshot.vendorConf.garbageCollection;
    const missed = new Map<string, number>();
    const lost = new Set<string>();
    // In a cluster the pods decide.
    const mayCollect = backend.mode === "embedded";
    let nextMs = mayCollect ? graceMs : undefined;
    for await (const row of listRows(registry)) {
      const what = row.state === "Bound" && row.containerId !== "" ? await findMissing(row, backend.ipam) : undefined;
      if (what === undefined) continue;
      const key = `${formatIp(row.ip)}/${row.space} ${row.version} ${what}`;
      const sinceMs = this.#missed.get(key) ?? nowMs();
      missed.set(key, sinceMs);
      const isSure = nowMs() - sinceMs >= (what === "NIC" ? CONFIRM_MS : graceMs);
      if (what === "NIC") nextMs = Math.min(nextMs ?? RECHECK_MS, isSure ? RECHECK_MS : CONFIRM_MS);
      if (what === "NIC" && isSure)
        lost.add(`${row.ifName} of ${row.pod === "" ? row.containerId : `${row.namespace}/${row.pod}`}`);
      if (what === "namespace" && isSure && mayCollect && (await registry.collect(row)) !== undefined)
        audit.record({ audit: "COLLECT", allocations: [row], rule: "its network namespace is gone and no DEL came" });
    }
    const added = lost.difference(this.#lost);
    this.#missed = missed;
    this.#lost = lost;
    if (added.size > 0) {
      const text = describeLost(added);
      log.warn({ nics: added.size }, text);
      backend.reportNode?.("PodNicsGone", text);
    }
    return nextMs;
  }
}

/** One namespace in a turn of the event loop. Without a cookie the path is no proof that the namespace is gone. */
async function findMissing(row: Allocation, ipam: Backend["ipam"]): Promise<"NIC" | "namespace" | undefined> {
  await setImmediate();
  const status = await readNetnsStatus(row);
  if (status === "gone" && row.netnsCookie !== undefined) return "namespace";
  if (status !== "there" || hasNic(row) !== false) return undefined;
  return (await isOfDriver(row, ipam)) ? undefined : "NIC";
}

/** Returns whether a driver of the pod may have the NIC's device: the pod's namespace has no link of its name then. */
export async function mayBeDriven(row: Allocation, ipam: Backend["ipam"]): Promise<boolean> {
  return hasNic(row) !== true && (await isOfDriver(row, ipam));
}

async function isOfDriver(row: Allocation, ipam: Backend["ipam"]): Promise<boolean> {
  return (await pluginsOfRow(ipam, row)).some(({ entry }) => DRIVER_TYPES.includes(entry.type));
}

/**
 * Undefined without a namespace that can be read. A pod may take an address off its NIC, as sandboxes that copy links
 * do: then nothing is missing.
 */
function hasNic(row: Allocation): boolean | undefined {
  return insteadOf(isUnreadable, undefined, () => {
    using namespace = openPodNetns(row);
    return namespace && findLinks(namespace.route, [row.ifName]).length > 0;
  });
}

const isUnreadable = (error: unknown): boolean => error instanceof NetnsError || error instanceof NetlinkError;

function describeLost(nics: ReadonlySet<string>): string {
  const named = [...nics].slice(0, MAX_NAMED).join(", ");
  return `NICs of running pods are gone (${nics.size}), as when the node's interface under them is deleted, also if it was made again: ${named}. Delete these pods or restart their containers, which then get new NICs`;
}
