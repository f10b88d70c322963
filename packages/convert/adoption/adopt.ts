/**
 * Turns addresses that another IPAM gave to running pods into Berth's allocations, and undoes that
 * (docs/migration.md). Nothing in a pod is changed, and no record of the other IPAM. An adoption is a claim of
 * exactly these addresses: one that another pod has is refused.
 */
import type { Backend } from "../../../host/agent/backend.ts";
import type { AddDeps } from "../../../host/agent/ipam/add.ts";
import type { Audit } from "../../../host/agent/log/audit.ts";
import { readCookie, readNetnsStatus } from "../../../host/agent/netns/pod-netns.ts";
import type { Routes } from "../../../host/agent/operate/status-api.ts";
import { netnsIdOf, readLiveNamespaces } from "../../../host/agent/request/live-namespaces.ts";
import { readRuntimeCache } from "../../../host/agent/request/runtime-cache.ts";
import { type Answer, answerJson, answerRefusal } from "../../../host/agent/server/answer.ts";
import { ConfigError } from "../../../host/config/config-error.ts";
import { messageOf } from "../../../host/lib/describe.ts";
import { SerialQueue } from "../../../host/lib/serial.ts";
import { equalIp, formatIp } from "../../../host/net/ip.ts";
import type { KubernetesRegistry } from "../../../host/registry/kubernetes/kubernetes-registry.ts";
import { listRows } from "../../../host/registry/list-rows.ts";
import { isAdopted } from "../../../host/registry/nic.ts";
import { type Allocation, type ClaimOutcome, RegistryError } from "../../../host/registry/registry.ts";
import type { AdoptedAddress, AdoptionRecord } from "./adoption-record.ts";
import {
  type AdoptableNic,
  type AdoptionEvidence,
  isAllocatable,
  planAdoption,
  type RefusedAddress,
} from "./plan-adoption.ts";

interface AdoptionDeps extends Pick<AddDeps, "node" | "inventory" | "identifier" | "log"> {
  readonly registry: KubernetesRegistry;
  readonly audit: Audit;
}

/** Longest time that the API server may take for one NIC: milliseconds. */
const ADOPTION_PATIENCE_MS = 60_000;

/** POST /v1/adopt of the agent. One after another: each reads the whole registry. */
export function openAdoption({ ipam, registry }: Pick<Backend, "ipam" | "registry">, audit: Audit): Routes {
  const adoptions = new SerialQueue();
  const answer = async (query: URLSearchParams): Promise<Answer> => {
    if (registry === undefined)
      return answerRefusal(409, "Only agents of a cluster adopt addresses; berthctl recover completes this registry");
    return answerJson(await adopt({ ...ipam, registry, audit }, query));
  };
  return { "/v1/adopt": (query) => adoptions.run(() => answer(query)) };
}

/** Rejects with RegistryError when the API server does not answer; addresses that were adopted until then stay. */
async function adopt(deps: AdoptionDeps, query: URLSearchParams): Promise<AdoptionRecord> {
  const { node, registry, inventory } = deps;
  const cache = readRuntimeCache(query.getAll("results"));
  const namespaces = await readLiveNamespaces(query.getAll("netns"));
  const isDryRun = !query.has("apply");
  const { pools, reserved, pods } = await inventory.loaded();
  const evidence: AdoptionEvidence = {
    cached: cache.attachments,
    live: namespaces.addresses,
    rows: await Array.fromAsync(listRows(registry)),
    pools: [...pools.values()],
    reserved,
    findPod: (namespace, name) => pods.get(`${namespace}/${name}`),
    netnsIdOf,
  };
  const problems = [...cache.problems, ...namespaces.problems];
  const addresses = query.has("undo")
    ? await releaseAdopted(deps, evidence, isDryRun)
    : await adoptAll(deps, evidence, isDryRun);
  return { node: node.name, addresses: addresses.toSorted(byHolder), problems };
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
