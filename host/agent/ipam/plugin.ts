/** The plugin `berth`: the verbs of CNI over the registry. */
import { CniError, ErrorCode, refuseInterface } from "../../cni/error.ts";
import { type AttachRequest, type DetachRequest, decodePodArgs, type NodeRequest } from "../../cni/request.ts";
import { observeLink } from "../../kernel/observe-link.ts";
import { equalIp, formatIp } from "../../net/ip.ts";
import { prefixContains } from "../../net/prefix.ts";
import { UNKNOWN_CONTAINER } from "../../registry/journal.ts";
import { listRows } from "../../registry/list-rows.ts";
import { type Allocation, containerOfNetns, type Registry, type RegistryHealth } from "../../registry/registry.ts";
import type { Snapshot } from "../../resources/snapshot.ts";
import type { Addition, Plugin } from "../request/plugin.ts";
import { type AddDeps, addAddresses } from "./add.ts";
import type { ClusterIpam } from "./cluster-ipam.ts";

/** Whether the agent can serve, from memory. */
export interface Readiness {
  readonly ready: boolean;
  /** Each a sentence, the most important first. */
  readonly problems: readonly string[];
}

/** The backend's readiness, for which an ADD waits first. */
export interface ReadinessSource extends Readiness {
  readonly health: Pick<RegistryHealth, "trouble">;
  /** Waits, for a bounded time, until the resources are known. Rejects with CniError 50 that names the missing ones. */
  synced(signal: AbortSignal): Promise<void>;
}

interface RunningAdd {
  readonly key: string;
  readonly containerId: string;
  readonly ending: AbortController;
}

export class IpamPlugin implements Plugin {
  readonly #deps: AddDeps;
  readonly #backend: ReadinessSource;
  /** By pod and NIC. */
  readonly #adding = new Map<string, RunningAdd>();

  constructor(deps: AddDeps, backend: ReadinessSource) {
    this.#deps = deps;
    this.#backend = backend;
  }

  async add(request: AttachRequest, signal: AbortSignal): Promise<Addition> {
    await this.#backend.synced(signal);
    requireReady(this.#backend);
    const running = this.#supersede(request);
    try {
      return await addAddresses(this.#deps, request, AbortSignal.any([signal, running.ending.signal]));
    } finally {
      if (this.#adding.get(running.key) === running) this.#adding.delete(running.key);
    }
  }

  /**
   * A pod's ADD for another sandbox ends an earlier one that is still under way: its runtime has restarted and has
   * given that sandbox up. If the earlier ADD ended last, the DEL of its sandbox would release the address of the
   * later one.
   */
  #supersede({ args, ifName, netConf, containerId }: AttachRequest): RunningAdd {
    const key = `${decodePodArgs(args).uid ?? containerId} ${ifName} ${netConf.name}`;
    const earlier = this.#adding.get(key);
    if (earlier !== undefined && earlier.containerId !== containerId)
      earlier.ending.abort(
        new CniError(ErrorCode.TryAgainLater, `Another sandbox of the pod has begun to attach interface "${ifName}"`),
      );
    const running = { key, containerId, ending: new AbortController() };
    this.#adding.set(key, running);
    return running;
  }

  check(request: AttachRequest): Promise<void> {
    return checkAddresses(this.#deps, request);
  }

  async del({ containerId, ifName, netns, netConf }: DetachRequest): Promise<readonly Allocation[]> {
    const { inventory, detection, fences } = this.#deps;
    detection.answered.delete({ containerId, ifName });
    // Without a readable name all that the container's interface has is released.
    const named = netConf.name === "" ? {} : { network: netConf.name };
    const own = await inventory.registry.release({ containerId, ifName, ...named });
    for (const row of own) fences?.released(row);
    return own.length > 0 || netns === undefined ? own : this.#releaseRecovered(netns, ifName);
  }

  async gc({ netConf }: NodeRequest): Promise<readonly Allocation[]> {
    if (netConf.validAttachments === undefined) return [];
    const { inventory, detection, clock, cluster } = this.#deps;
    const { registry } = inventory;
    const alive = new Set(netConf.validAttachments.map(({ containerId, ifName }) => `${containerId}/${ifName}`));
    const beforeMs = clock.nowMs();
    const released: Allocation[] = [];
    for await (const row of listRows(registry)) {
      const { state, containerId, ifName, network, sinceMs } = row;
      if (state !== "Bound" || network !== netConf.name || sinceMs >= beforeMs) continue;
      if (containerId === "" || containerId === UNKNOWN_CONTAINER || alive.has(`${containerId}/${ifName}`)) continue;
      // In a cluster the list is no proof (late-del).
      if (!(await (cluster?.isGone(row) ?? true)) || (await registry.collect(row)) === undefined) continue;
      detection.answered.delete(row);
      released.push(row);
    }
    return released;
  }

  async status(): Promise<string> {
    requireReady(this.#backend);
    requireRecording(this.#backend);
    return this.#backend.problems.join("; ");
  }

  /** The allocation that a recovery found on a NIC, without a container (docs/recovery.md). */
  #releaseRecovered(netns: string, ifName: string): Promise<readonly Allocation[]> {
    return this.#deps.inventory.registry.release({ containerId: containerOfNetns(netns), ifName });
  }
}

/**
 * Throws CniError 50 if no ADD can be served. An agent that is ready is not asked for its problems, which takes a
 * look at the definitions.
 */
export function requireReady(readiness: Readiness): void {
  if (readiness.ready) return;
  const { problems } = readiness;
  throw new CniError(ErrorCode.PluginNotAvailable, `Berth is not ready: ${problems[0] ?? "it is starting"}`, {
    details: problems.join("\n"),
  });
}

function requireRecording({ health: { trouble }, problems }: ReadinessSource): void {
  if (trouble === undefined) return;
  throw new CniError(ErrorCode.LimitedConnectivity, `Pods keep their network, new ones get no address: ${trouble}`, {
    details: problems.join("\n"),
  });
}

interface CheckDeps {
  readonly inventory: { readonly registry: Registry; readonly snapshot: Pick<Snapshot, "pools"> };
  readonly cluster?: Pick<ClusterIpam, "findLoss"> | undefined;
}

/** Throws CniError 3, 7, 104 or 106 with the first difference. */
export async function checkAddresses(
  { inventory: { registry, snapshot }, cluster }: CheckDeps,
  request: AttachRequest,
): Promise<void> {
  const { containerId, ifName } = request;
  const attachment = { containerId, ifName, network: request.netConf.name };
  const found = await registry.findAttachment(attachment);
  const held = found.filter(({ state }) => state === "Bound");
  if (held.length === 0) {
    throw new CniError(
      ErrorCode.UnknownContainer,
      `No address is recorded for interface "${ifName}" of container ${containerId}`,
    );
  }
  const loss = cluster?.findLoss(attachment);
  if (loss !== undefined) throw new CniError(ErrorCode.AddressConflict, loss);
  comparePrevResult(request, held);
  compareGateways(request, held, snapshot.pools);
  compareLink(request, held);
}

function comparePrevResult({ netConf, ifName }: AttachRequest, held: readonly Allocation[]): void {
  const { prevResult } = netConf;
  if (prevResult === undefined) {
    throw new CniError(ErrorCode.InvalidNetworkConfig, 'CHECK needs "prevResult", found nothing');
  }
  const given = prevResult.ips.map(({ address }) => address.ip);
  const lost = held.find(({ ip }) => !given.some((other) => equalIp(other, ip)));
  if (lost !== undefined) {
    const text = `"prevResult" lacks ${formatIp(lost.ip)}, which is recorded for interface "${ifName}"`;
    throw new CniError(ErrorCode.InvalidNetworkConfig, text);
  }
  const ours = (ip: Allocation["ip"]): boolean =>
    held.some((each) => prefixContains({ ip: each.ip, length: each.prefixLength }, ip));
  const foreign = given.find((ip) => ours(ip) && !held.some((each) => equalIp(each.ip, ip)));
  if (foreign !== undefined) {
    const text = `"prevResult" has ${formatIp(foreign)}, recorded for interface "${ifName}" is ${held.map(({ ip }) => formatIp(ip)).join(", ")}`;
    throw new CniError(ErrorCode.InvalidNetworkConfig, text);
  }
}

/**
 * If both the result and the pool have a gateway, it is the same. A result may lack the pool's (`cleangateway`), and
 * may have one where the pool has none: some main plugins become the gateway themselves.
 */
function compareGateways({ netConf }: AttachRequest, held: readonly Allocation[], pools: Snapshot["pools"]): void {
  for (const { address, gateway } of netConf.prevResult?.ips ?? []) {
    const pool = held.find(({ ip }) => equalIp(ip, address.ip))?.pool;
    const wanted = pool === undefined ? undefined : pools.get(pool)?.spec.gateway;
    if (gateway === undefined || wanted === undefined || equalIp(gateway, wanted)) continue;
    throw new CniError(
      ErrorCode.InvalidNetworkConfig,
      `"prevResult" has gateway ${formatIp(gateway)} for ${formatIp(address.ip)}, pool "${pool}" has ${formatIp(wanted)}; a new pod gets the pool's`,
    );
  }
}

function compareLink({ netns, ifName }: AttachRequest, held: readonly Allocation[]): void {
  const link = observeLink(netns, ifName);
  if (link === undefined) {
    refuseInterface(`Interface "${ifName}" is missing in ${netns}`);
  }
  const missing = held.find(({ ip }) => !link.addresses.some((address) => equalIp(address.ip, ip)));
  if (missing !== undefined) {
    const text = `Interface "${ifName}" in ${netns} lacks its address ${formatIp(missing.ip)}/${missing.prefixLength}`;
    refuseInterface(text);
  }
}
