/**
 * DEL and GC of `coordinator`: deletes what an attachment has left in its pod and on the node, however little is still known of
 * it.
 * Effects: changes both namespaces.
 */
import type { DetachRequest, NodeRequest } from "../../cni/request.ts";
import type { CoordinatorConf } from "../../config/coordinator-settings.ts";
import { parseAlias } from "../../coordinator/plan/alias.ts";
import { BERTH_PROTOCOL, POD_VETH } from "../../coordinator/plan/constants.ts";
import { nameVeth } from "../../coordinator/plan/names.ts";
import { hostTablesOf } from "../../coordinator/plan/own-objects.ts";
import { planDetachment } from "../../coordinator/plan/plan-detachment.ts";
import { ApplyError, applyOperations } from "../../kernel/apply.ts";
import { NetlinkError } from "../../kernel/netlink/error.ts";
import { isOwnNetns, NetnsError } from "../../kernel/netns.ts";
import { observeNamespace } from "../../kernel/observe-namespace.ts";
import { type OpenNamespace, openPodNamespace } from "../../kernel/open-namespace.ts";
import { SysctlError } from "../../kernel/sysctl.ts";
import type { Log } from "../../lib/log.ts";
import { equalIp, type Ip } from "../../net/ip.ts";
import { diffPlan } from "../../plan/diff.ts";
import { isOnNode, type Operation, type Veth } from "../../plan/operation.ts";
import { EMPTY_NAMESPACE, type NamespaceState } from "../../plan/state.ts";
import { formatOperation } from "../../plan/text.ts";
import type { Attachment } from "../../registry/registry.ts";
import { addressesOf, knownAddresses, observeHost, observePod } from "./observe.ts";
import type { CoordinatorDeps } from "./settings.ts";

/** Returns undefined if the namespace no longer exists, or is the node's own, which contains nothing of a pod. */
function openPod(netns: string | undefined): OpenNamespace | undefined {
  if (netns === undefined) return undefined;
  try {
    return isOwnNetns(netns) ? undefined : openPodNamespace(netns);
  } catch (error) {
    if (error instanceof NetnsError) return undefined;
    throw error;
  }
}

/** The part of a DEL that is needed; an agent that fences an orphaned pod has no more. */
export interface DetachInput extends Attachment, Pick<DetachRequest, "netns"> {
  readonly netConf: Pick<DetachRequest["netConf"], "name" | "prevResult">;
}

/** Returns the attachment's addresses, from the result and the registry, without those that another attachment has by now. */
async function findAddresses({ registry }: CoordinatorDeps, request: DetachInput): Promise<Ip[]> {
  const { containerId, ifName, netConf } = request;
  const recorded = await registry.findAttachment({ containerId, ifName });
  const reported = netConf.prevResult === undefined ? [] : addressesOf(netConf.prevResult, ifName);
  const ips = [
    ...recorded.map(({ ip }) => ip),
    ...reported.filter((ip) => !recorded.some((each) => equalIp(each.ip, ip))),
  ];
  const holders = await Promise.all(ips.map((ip) => registry.findAddress("", ip)));
  return ips.filter((_, index) => {
    const holder = holders[index];
    return holder?.state !== "Bound" || holder.containerId === containerId || holder.containerId === "";
  });
}

/**
 * Returns whether the namespace still is the attachment's: paths are reused. It has the attachment's pair, or else its addresses,
 * or rules for them if the link was deleted.
 */
function isOfAttachment(pod: NamespaceState, pair: Veth, ifName: string, ips: readonly Ip[]): boolean {
  const end = pod.links.find(({ name }) => name === POD_VETH);
  if (end !== undefined) return end.mac === pair.pod.mac;
  const isOurs = (ip: Ip): boolean => ips.some((own) => equalIp(own, ip));
  return (
    pod.addresses.some(({ link, prefix }) => link === ifName && isOurs(prefix.ip)) ||
    pod.rules.some(({ protocol, from }) => protocol === BERTH_PROTOCOL && from !== undefined && isOurs(from.ip))
  );
}

/**
 * Returns whether the kernel refused. In a pod this is caused by the pod's own changes to its namespace, which must not block its
 * deletion.
 */
const isOfKernel = (error: unknown): boolean => error instanceof NetlinkError || error instanceof SysctlError;

/** Observes the pod; returns undefined if the kernel refuses. */
function observeInside(
  pod: OpenNamespace,
  observe: (pod: OpenNamespace) => NamespaceState,
  log: Log,
): NamespaceState | undefined {
  try {
    return observe(pod);
  } catch (error) {
    if (!isOfKernel(error)) throw error;
    log.warn(
      { err: error },
      "Observing the pod's network namespace failed; its contents are deleted with the namespace",
    );
    return undefined;
  }
}

/** Applies all operations, or only those on the node if the kernel refuses one in the pod. */
async function applyTolerantly(
  operations: readonly Operation[],
  apply: (operations: readonly Operation[]) => Promise<void>,
  log: Log,
): Promise<void> {
  try {
    await apply(operations);
  } catch (error) {
    if (!(error instanceof ApplyError) || isOnNode(error.operation) || !isOfKernel(error.cause)) throw error;
    log.warn(
      { err: error },
      "Cleaning up the pod's network namespace failed; its contents are deleted with the namespace",
    );
    await apply(operations.filter(isOnNode));
  }
}

/** Succeeds once nothing of the attachment is left on the node. */
export async function detach(
  deps: CoordinatorDeps,
  conf: CoordinatorConf,
  request: DetachInput,
  log: Log,
): Promise<void> {
  const { containerId, ifName } = request;
  const addresses = await findAddresses(deps, request);
  const pair = nameVeth(containerId);
  const { host, remover, faults } = deps;
  using pod = openPod(request.netns);
  const first = conf.podDefaultCniNic;
  const found = (pod && observeInside(pod, (open) => observePod(open, ifName, first), log)) ?? EMPTY_NAMESPACE;
  const inside = isOfAttachment(found, pair, ifName, addresses) ? found : EMPTY_NAMESPACE;
  // The table may have changed since the ADD.
  const tables = hostTablesOf(host.mirror.read(), conf.hostRuleTable);
  const observed = {
    pod: inside,
    host: observeHost(host, { pair, tables, addresses: knownAddresses(addresses, inside), isUnderlay: false }),
  };
  const { plan } = planDetachment({ conf, ifName, addresses, pair, observed });
  const operations = diffPlan(observed, plan);
  const about = { container: containerId, interface: ifName, network: request.netConf.name };
  for (const operation of operations) log.debug({ ...about, operation: formatOperation(operation) }, "Planned");
  // Nothing is planned in a pod that does not exist, so its namespace is not used.
  const namespaces = { pod: pod ?? host, host };
  const apply = (some: readonly Operation[]): Promise<void> => applyOperations(some, namespaces, { remover, faults });
  await applyTolerantly(operations, apply, log);
  log.info({ ...about, operations: operations.length }, "Detached");
}

/** Deletes the pairs of this network's containers that the runtime does not know. Returns their names. */
export async function collect({ host, remover }: CoordinatorDeps, { netConf }: NodeRequest): Promise<string[]> {
  const { validAttachments } = netConf;
  if (validAttachments === undefined) return [];
  const known = new Set<string>(validAttachments.map(({ containerId }) => containerId));
  const { links } = observeNamespace(host, {});
  const dead = links.filter(({ kind, alias }) => {
    const owner = kind === "veth" ? parseAlias(alias) : undefined;
    return owner?.network === netConf.name && !known.has(owner.containerId);
  });
  for (const { index } of dead) await remover.removeLink(index);
  return dead.map(({ name }) => name);
}
