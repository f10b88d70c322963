/**
 * Makes addresses of running pods that another IPAM gave them Berth's allocations, and ends that again
 * (docs/migration.md). Nothing in a pod is changed, and no record of the other IPAM. An adoption is a claim of
 * exactly these addresses: one that another pod has is refused.
 */
import { ConfigError } from "../../config/config-error.ts";
import { messageOf } from "../../lib/describe.ts";
import type { Log } from "../../lib/log.ts";
import { equalIp, formatIp } from "../../net/ip.ts";
import type { AdoptedAddress, AdoptionRecord } from "../../records/adoption-record.ts";
import type { KubernetesRegistry } from "../../registry/kubernetes/kubernetes-registry.ts";
import { listRows } from "../../registry/list-rows.ts";
import { isAdopted } from "../../registry/nic.ts";
import { type Allocation, type ClaimOutcome, RegistryError } from "../../registry/registry.ts";
import type { AdoptionOptions, BackendOptions } from "../backend.ts";
import { SWEEP_PAGE } from "../gc/collector.ts";
import type { Identifier } from "../ipam/pod-identity.ts";
import type { PoolInventory } from "../ipam/pool-inventory.ts";
import { readCookie, readNetnsStatus } from "../netns/pod-netns.ts";
import { netnsIdOf, readLiveNamespaces } from "../request/live-namespaces.ts";
import { readRuntimeCache } from "../request/runtime-cache.ts";
import {
  type AdoptableNic,
  type AdoptionEvidence,
  isAllocatable,
  planAdoption,
  type RefusedAddress,
} from "./plan-adoption.ts";

interface AdoptionDeps {
  readonly node: string;
  readonly registry: KubernetesRegistry;
  readonly inventory: PoolInventory;
  readonly identifier: Pick<Identifier, "find">;
  readonly audit: BackendOptions["audit"];
  readonly log: Log;
}

/** Longest time that the API server may take for one NIC: milliseconds. */
const ADOPTION_PATIENCE_MS = 60_000;

/** Rejects with RegistryError when the API server does not answer; what was adopted until then stays. */
export async function adopt(deps: AdoptionDeps, options: AdoptionOptions): Promise<AdoptionRecord> {
  const { node, registry, inventory } = deps;
  const cache = readRuntimeCache(options.results);
  const namespaces = readLiveNamespaces(options.netns);
  const { pools, reserved, pods } = await inventory.loaded();
  const evidence: AdoptionEvidence = {
    cached: cache.attachments,
    live: namespaces.addresses,
    rows: await Array.fromAsync(listRows(registry, SWEEP_PAGE)),
    pools: [...pools.values()],
    reserved,
    findPod: (namespace, name) => pods.get(`${namespace}/${name}`),
    netnsIdOf,
  };
  const problems = [...cache.problems, ...namespaces.problems];
  const addresses = options.isUndo
    ? await releaseAdopted(deps, evidence, options.isDryRun)
    : await adoptAll(deps, evidence, options.isDryRun);
  return { node, addresses: addresses.toSorted(byHolder), problems };
}

function byHolder(one: AdoptedAddress, other: AdoptedAddress): number {
  const key = ({ namespace, pod, interface: nic, address }: AdoptedAddress): string =>
    [namespace, pod, nic, address].join(" ");
  return key(one) < key(other) ? -1 : 1;
}

async function adoptAll(deps: AdoptionDeps, evidence: AdoptionEvidence, isDryRun: boolean): Promise<AdoptedAddress[]> {
  const { adoptable, recorded, refused } = planAdoption(evidence);
  const adopted: AdoptedAddress[] = [];
  for (const nic of adoptable) {
    const refusal = isDryRun ? undefined : await adoptNic(deps, nic);
    const outcome = refusal !== undefined ? "refused" : isDryRun ? "adoptable" : "adopted";
    adopted.push(...describeNic(nic, outcome, refusal));
  }
  return [...recorded.flatMap((nic) => describeNic(nic, "recorded")), ...adopted, ...refused.map(describeRefused)];
}

/** Returns why it is refused: a clause; then nothing of the NIC is adopted. */
async function adoptNic(deps: AdoptionDeps, nic: AdoptableNic): Promise<string | undefined> {
  const { registry, inventory, identifier, audit, log } = deps;
  const { namespace, pod, owner, containerId, ifName, netns, mac, addresses } = nic;
  try {
    const { workload } = await identifier.find(namespace, pod);
    const proposals = await Promise.all(
      addresses.map(async (each) => ({ ...each, ifName, ...(await coolingOf(registry, each)) })),
    );
    const netnsCookie = netns === undefined ? undefined : readCookie(netns);
    const claimant = { owner, namespace, pod, ifName, containerId, network: "", netns, mac, workload };
    const claim = { ...claimant, netnsCookie, proposals, skipOwnCooling: true };
    const outcome = await registry.claim(claim, AbortSignal.timeout(ADOPTION_PATIENCE_MS));
    const refusal = await refusalOf(outcome, nic);
    if (outcome.kind !== "bound") return refusal;
    if (refusal !== undefined) {
      await registry.undo(outcome.created);
      return refusal;
    }
    if (workload !== undefined) await registry.retain(outcome.held.map((row) => ({ ...row, workload })));
    for (const { space, ip } of outcome.held) inventory.poolCache.mark(space, ip);
    audit.record({ audit: "ADOPT", allocations: outcome.held, rule: nic.ipams.join(", ") });
    return undefined;
  } catch (error) {
    if (!(error instanceof ConfigError || error instanceof RegistryError)) throw error;
    log.warn({ err: error, namespace, pod, ifName }, "Adopting the addresses of a NIC failed");
    return messageOf(error);
  }
}

/** An address that this node released a moment ago is taken over. */
async function coolingOf(registry: KubernetesRegistry, { space, ip }: Pick<Allocation, "space" | "ip">) {
  const row = await registry.findAddress(space, ip);
  return row?.state === "Cooling" ? { replaces: row.version } : {};
}

/** Between the look at the NIC and the claim the pod may have ended, and its address may be another pod's. */
async function refusalOf(outcome: ClaimOutcome, { addresses }: AdoptableNic): Promise<string | undefined> {
  if (outcome.kind === "cooling") return "it was released just now; try again after its cooldown";
  if (outcome.kind === "taken") {
    const [by] = outcome.by;
    const holder = by === undefined || by.pod === "" ? "another owner" : `pod ${by.namespace}/${by.pod}`;
    return `it is ${by?.state ?? "in use"} for ${holder} in Berth`;
  }
  for (const { ip } of addresses) {
    const row = outcome.held.find((each) => equalIp(each.ip, ip));
    if (row === undefined) {
      const other = outcome.held.find((each) => each.ip.family === ip.family);
      return `Berth has ${other === undefined ? "no address" : formatIp(other.ip)} for this NIC; release that first`;
    }
    if ((await readNetnsStatus(row)) !== "inUse") return "the NIC does not have it any more";
  }
  return undefined;
}

/** For the way back: the pods keep their addresses by the other IPAM's records. */
async function releaseAdopted(
  { registry, audit }: AdoptionDeps,
  evidence: AdoptionEvidence,
  isDryRun: boolean,
): Promise<AdoptedAddress[]> {
  const released: AdoptedAddress[] = [];
  for (const row of evidence.rows.filter(isAdopted)) {
    if (isAllocatable(row, evidence)) {
      const reason = `pool "${row.pool}" would allocate it to another pod; disable the pool, or reserve the address`;
      released.push(describeRow(row, "refused", reason));
      continue;
    }
    const cooling = isDryRun ? undefined : await registry.renounce(row);
    if (cooling !== undefined)
      audit.record({ audit: "RELEASE", allocations: [cooling], rule: "its adoption from another IPAM was undone" });
    released.push(describeRow(row, isDryRun ? "releasable" : "released"));
  }
  return released;
}

function describeNic(nic: AdoptableNic, outcome: AdoptedAddress["outcome"], reason?: string): AdoptedAddress[] {
  const { namespace, pod, ifName, ipams, addresses } = nic;
  return addresses.map(({ ip, pool }) => ({
    ...{ address: formatIp(ip), namespace, pod, interface: ifName, pool, ipams: [...ipams], outcome },
    ...(reason === undefined ? {} : { reason }),
  }));
}

function describeRefused({ owner, ifName, ip, reason }: RefusedAddress): AdoptedAddress {
  const { namespace = "", pod = "" } = owner ?? {};
  const where = { address: formatIp(ip), namespace, pod, interface: ifName };
  return { ...where, pool: "", ipams: [], outcome: "refused", reason };
}

function describeRow(row: Allocation, outcome: AdoptedAddress["outcome"], reason?: string): AdoptedAddress {
  const { ip, namespace, pod, ifName, pool } = row;
  const about = { address: formatIp(ip), namespace, pod, interface: ifName, pool, ipams: [], outcome };
  return reason === undefined ? about : { ...about, reason };
}
