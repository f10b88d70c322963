/**
 * Compares a node's records with objects, pods, NICs, neighbours, routes and rules: twice, so that changes meanwhile
 * are no findings.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { findUnread } from "../../findings/host/check-agent.ts";
import { findDamage, findRivals, isOf, type NicAddress, type NodeFacts } from "../../findings/node/find-damage.ts";
import { findClosed, findDrift, findLeftovers, keyOfIp } from "../../findings/node/find-drift.ts";
import { keyOf } from "../../findings/problem.ts";
import { readClusterId } from "../../kubernetes/cluster-id.ts";
import { orNote } from "../../lib/try-or.ts";
import { formatIp } from "../../net/ip.ts";
import { formatAddressName } from "../../records/allocation-record.ts";
import type { CheckRecord } from "../../records/check-record.ts";
import { listRows } from "../../registry/list-rows.ts";
import type { Allocation } from "../../registry/registry.ts";
import { allocationName, type IpAllocation } from "../../resources/ip-allocation.ts";
import type { Backend } from "../backend.ts";
import { readNetnsStatus } from "../netns/pod-netns.ts";
import { netnsIdOf, readLiveNamespaces } from "../request/live-namespaces.ts";
import { mayBeDriven } from "./missing-nics.ts";
import { type CoordinatorState, readDrift, repairDrift } from "./read-drift.ts";

/** Between the two readings of a check: milliseconds. */
const RECHECK_MS = 2_000;

/** Time for which a check waits for the identity of its cluster: milliseconds. */
const CLUSTER_ID_MS = 5_000;

interface CheckDeps {
  readonly backend: Pick<Backend, "ipam" | "readPodsOf" | "readObjects" | "client">;
  readonly coordinator: CoordinatorState;
  /** Directories in which runtimes keep the network namespaces of pods. */
  readonly netnsDirectories: readonly string[];
}

/**
 * Rejects with RegistryError. Any other state that cannot be read is one of the record's problems. `withUsed`: the
 * record has the addresses of NICs.
 */
export async function checkNode(deps: CheckDeps, withUsed: boolean): Promise<CheckRecord> {
  const first = await readNode(deps);
  const before = new Set(first.findings.map(keyOf));
  const isClean = before.size === 0;
  if (!isClean) await sleep(RECHECK_MS);
  const { facts, attachments, findings, unread } = isClean ? first : await readNode(deps);
  return {
    node: facts.node,
    cluster: await findClusterId(deps.backend),
    time: new Date().toISOString(),
    records: facts.rows.length,
    nics: facts.nics.length,
    objects: facts.objects?.size,
    attachments,
    findings: [...findings.filter((finding) => before.has(keyOf(finding))), ...unread],
    ...(withUsed ? { used: usedAddresses(facts) } : {}),
  };
}

/** Restores missing objects of the coordinator's attachments, then checks. Rejects as {@link checkNode}. */
export async function repairNode(deps: CheckDeps, withUsed: boolean): Promise<CheckRecord> {
  const { facts } = await readFacts(deps);
  const { networks, identifier } = deps.backend.ipam;
  const { repaired, findings } = await repairDrift({ coordinator: deps.coordinator, networks, identifier }, facts);
  const record = await checkNode(deps, withUsed);
  return { ...record, repaired, findings: [...findings, ...record.findings] };
}

async function readFacts({ backend, netnsDirectories }: CheckDeps) {
  const { inventory, node, clock } = backend.ipam;
  const { addresses, macs, problems } = await readLiveNamespaces(netnsDirectories);
  const nics: NicAddress[] = addresses.map(({ prefix, ...nic }) => ({ ...nic, ip: prefix.ip }));
  const rows = await Array.fromAsync(listRows(inventory.registry));
  const objects = await readObjects(backend, nics, rows, problems);
  const isOfPod = ({ state, pod }: Allocation): boolean => state === "Bound" && pod !== "";
  const reading = backend.readPodsOf?.(rows.filter(isOfPod));
  const statusOf = reading && (await orNote(problems, "The pods of this node", reading));
  const rowFacts: NodeFacts["rows"][number][] = [];
  for (const row of rows) {
    const netnsId = row.netns === undefined ? undefined : netnsIdOf(row.netns);
    const status = await readNetnsStatus(row);
    const netns = status === "there" && (await mayBeDriven(row, backend.ipam)) ? "unknown" : status;
    const pod = (isOfPod(row) ? statusOf?.(row) : undefined) ?? { kind: "unknown" };
    rowFacts.push({ row, pod, netns, netnsId });
  }
  const { pools } = await inventory.loaded();
  const contains: NodeFacts["contains"] = (pool, ip) => inventory.poolCache.contains(pool, ip, true);
  const facts = { node: node.name, nowMs: clock.nowMs(), rows: rowFacts, nics, objects, pools, contains };
  return { facts, macs, problems };
}

async function readNode(deps: CheckDeps) {
  const { coordinator } = deps;
  const { networks, identifier } = deps.backend.ipam;
  const { facts, macs, problems } = await readFacts(deps);
  const drift = await readDrift({ coordinator, networks, identifier }, facts);
  const kernel = coordinator.observeNode();
  const known = { ...knownAttachments(facts, coordinator), macs };
  return {
    facts,
    attachments: drift.compared,
    findings: [
      ...findDamage(facts),
      ...findRivals({ ...facts, neighbours: kernel.neighbours, links: kernel.state.links }),
      ...findDrift(drift.drifts),
      ...findLeftovers(kernel.state, known),
      ...findClosed(kernel.closedChains),
    ],
    unread: findUnread([...problems, ...drift.problems]),
  };
}

function knownAttachments({ rows, nics }: NodeFacts, { attachments: { requests } }: CoordinatorState) {
  const bound = rows.map(({ row }) => row).filter(({ state }) => state === "Bound");
  const ofRequests = requests.flatMap(({ netConf }) => netConf.prevResult?.ips ?? []).map(({ address }) => address);
  return {
    containerIds: new Set([...bound, ...requests].map(({ containerId }) => containerId)),
    ips: new Set([...bound, ...nics, ...ofRequests].map(({ ip }) => keyOfIp(ip))),
    recorded: new Set(bound.map(({ ip }) => keyOfIp(ip))),
  };
}

/** The addresses of pools on NICs of this node, each with its pod. */
function usedAddresses({ nics, rows, pools, contains }: NodeFacts): NonNullable<CheckRecord["used"]> {
  return nics.flatMap((nic) => {
    const row = rows.find((each) => isOf(each, nic))?.row;
    const pool = [...pools.values()].find(({ name }) => contains(name, nic.ip));
    const space = row?.space ?? pool?.spec.addressSpace;
    if (space === undefined) return [];
    const named = row === undefined || row.pod === "" ? undefined : `${row.namespace}/${row.pod}, ${nic.ifName}`;
    return [{ address: formatAddressName(formatIp(nic.ip), space), place: named ?? `${nic.ifName} in ${nic.netns}` }];
  });
}

/** Returns the identity of the cluster; undefined without a cluster, and when the API server does not answer. */
export async function findClusterId({ client }: Pick<Backend, "client">): Promise<string | undefined> {
  return client && readClusterId(client, CLUSTER_ID_MS).catch(() => undefined);
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
      .filter(({ name }) => poolCache.contains(name, ip, true))
      .map(({ spec }) => allocationName(ip, spec.addressSpace)),
  );
  const ofRows = rows.filter(({ state }) => state === "Bound").map(({ ip, space }) => allocationName(ip, space));
  const read = backend.readObjects(new Set([...ofNics, ...ofRows]));
  const objects = await orNote(problems, "The objects of this node", read);
  return objects && new Map(objects.map((object) => [object.name, object]));
}
