/** Compares a node's records with objects, pods and NICs: twice, so that what is changing meanwhile is no finding. */
import { setTimeout as sleep } from "node:timers/promises";
import type { PodStatus } from "../../ipam/leak.ts";
import { messageOf } from "../../lib/describe.ts";
import type { CheckRecord, DamageFinding } from "../../records/check-record.ts";
import { listRows } from "../../registry/list-rows.ts";
import type { Allocation } from "../../registry/registry.ts";
import { allocationName, type IpAllocation } from "../../resources/ip-allocation.ts";
import type { Backend } from "../backend.ts";
import { readNetnsStatus } from "../fencing/netns-status.ts";
import { listNamespacePaths, readNamespaceAddresses } from "../live-namespaces.ts";
import { findDamage, type NicAddress, type NodeFacts } from "./find-damage.ts";

/** Between the two readings of a check: milliseconds. @limit */
export const RECHECK_MS = 2_000;

/** Rows of the registry that are read at once. */
const ROWS_AT_ONCE = 500;

interface CheckDeps {
  readonly backend: Pick<Backend, "ipam" | "readPodOf" | "readObjects">;
  /** Where runtimes keep the network namespaces of pods. */
  readonly netnsDirectories: readonly string[];
}

/** Rejects with RegistryError. What else cannot be read is one of the record's problems. */
export async function checkNode(deps: CheckDeps): Promise<CheckRecord> {
  const first = await readNode(deps);
  const before = new Set(findDamage(first.facts).map(keyOf));
  const isClean = before.size === 0;
  if (!isClean) await sleep(RECHECK_MS);
  const { facts, problems } = isClean ? first : await readNode(deps);
  return {
    node: facts.node,
    time: new Date().toISOString(),
    records: facts.rows.length,
    nics: facts.nics.length,
    objects: facts.objects?.size,
    findings: isClean ? [] : findDamage(facts).filter((finding) => before.has(keyOf(finding))),
    problems,
  };
}

function keyOf({ kind, address, namespace, pod, interface: ifName }: DamageFinding): string {
  return [kind, address, namespace, pod, ifName].join(" ");
}

async function readNode({ backend, netnsDirectories }: CheckDeps): Promise<{ facts: NodeFacts; problems: string[] }> {
  const { inventory, node, clock } = backend.ipam;
  const problems: string[] = [];
  const { nics, unreadable } = await readNics(netnsDirectories);
  problems.push(...unreadable);
  const rows = await Array.fromAsync(listRows(inventory.registry, ROWS_AT_ONCE));
  const objects = await readObjects(backend, nics, rows, problems);
  const podOf = async (row: Allocation): Promise<PodStatus> => {
    if (backend.readPodOf === undefined || row.state !== "Bound" || row.pod === "") return { kind: "unknown" };
    return backend.readPodOf(row).catch((error: unknown) => {
      problems.push(`Pod ${row.namespace}/${row.pod} cannot be read: ${messageOf(error)}`);
      return { kind: "unknown" };
    });
  };
  const rowFacts: NodeFacts["rows"][number][] = [];
  for (const row of rows) rowFacts.push({ row, pod: await podOf(row), netns: await readNetnsStatus(row) });
  const { pools } = await inventory.loaded();
  const contains: NodeFacts["contains"] = (pool, ip) => inventory.poolCache.contains(pool, ip);
  return { facts: { node: node.name, nowMs: clock.nowMs(), rows: rowFacts, nics, objects, pools, contains }, problems };
}

/** One namespace in a turn of the event loop, on which probes count milliseconds. */
async function readNics(directories: readonly string[]) {
  const nics: NicAddress[] = [];
  const unreadable: string[] = [];
  const seen = new Set<string>();
  for (const path of listNamespacePaths(directories)) {
    const { addresses, problem } = readNamespaceAddresses(path, seen);
    nics.push(...addresses.map(({ netns, ifName, prefix }) => ({ netns, ifName, ip: prefix.ip })));
    if (problem !== undefined) unreadable.push(problem);
    await new Promise(setImmediate);
  }
  return { nics, unreadable };
}

/** Returns undefined without a cluster, and when the API server does not answer. */
async function readObjects(
  backend: CheckDeps["backend"],
  nics: readonly NicAddress[],
  rows: readonly Allocation[],
  problems: string[],
): Promise<ReadonlyMap<string, IpAllocation> | undefined> {
  if (backend.readObjects === undefined) return undefined;
  const { poolCache, snapshot } = backend.ipam.inventory;
  const ofNics = nics.flatMap(({ ip }) =>
    [...snapshot.pools.values()]
      .filter(({ name }) => poolCache.contains(name, ip))
      .map(({ spec }) => allocationName(ip, spec.addressSpace)),
  );
  const ofRows = rows.filter(({ state }) => state === "Bound").map(({ ip, space }) => allocationName(ip, space));
  try {
    const objects = await backend.readObjects(new Set([...ofNics, ...ofRows]));
    return new Map(objects.map((object) => [object.name, object]));
  } catch (error) {
    problems.push(`The objects of this node cannot be read: ${messageOf(error)}`);
    return undefined;
  }
}
