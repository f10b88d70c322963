/**
 * DEL and GC of `coordinator`: deletes the remains of an attachment in its pod and on the node, with however little
 * knowledge of it.
 * Effects: changes both namespaces.
 */
import type { DetachRequest, NodeRequest } from "../../cni/request.ts";
import type { CoordinatorConf } from "../../config/coordinator-settings.ts";
import { parseAlias } from "../../coordinator/plan/alias.ts";
import { BERTH_PROTOCOL, POD_VETH } from "../../coordinator/plan/constants.ts";
import { planReturn } from "../../coordinator/plan/former-mac.ts";
import { nameVeth } from "../../coordinator/plan/names.ts";
import { hostTablesOf, isRetired } from "../../coordinator/plan/own-objects.ts";
import { planDetachment } from "../../coordinator/plan/plan-detachment.ts";
import { ApplyError, applyOperations, undoOperations } from "../../kernel/apply.ts";
import { linkOf } from "../../kernel/netlink/link/link.ts";
import { findLinks } from "../../kernel/netlink/link/requests.ts";
import { observeNamespace } from "../../kernel/observe-namespace.ts";
import { linkStateOf } from "../../kernel/state-values.ts";
import type { Log } from "../../lib/log.ts";
import { equalIp, type Ip } from "../../net/ip.ts";
import { diffPlan } from "../../plan/diff.ts";
import { isOnNode, type Operation, type Veth } from "../../plan/operation.ts";
import { EMPTY_NAMESPACE, type NamespaceState } from "../../plan/state.ts";
import { formatOperation } from "../../plan/text.ts";
import { UNKNOWN_CONTAINER } from "../../registry/journal.ts";
import { listRows } from "../../registry/list-rows.ts";
import type { Attachment } from "../../registry/registry.ts";
import { cleanPod, findDetachedPod, findHostEnd, isOfKernel, observePod, openPod } from "./clean-pod.ts";
import type { NicRemover } from "./nic-remover.ts";
import { addressesOf, knownAddresses, observeHost } from "./observe.ts";
import type { CoordinatorDeps } from "./settings.ts";

/** The part of a DEL that is needed; an agent that fences an orphaned pod has no more. */
export interface DetachInput extends Attachment, Pick<DetachRequest, "netns"> {
  readonly netConf: Pick<DetachRequest["netConf"], "name" | "prevResult">;
}

/** Returns the attachment's addresses, by result and registry, without those of other attachments by now. */
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
 * Returns whether the namespace still is the attachment's: paths are reused. It has the attachment's pair, or else
 * its addresses, or rules for them if the link was deleted.
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

interface RetirementOptions {
  readonly log: Log;
  readonly logPlanned: (operation: Operation) => void;
  readonly nics: DetachedNics | undefined;
}

/** The parts that must be gone from a namespace that stays. */
interface DetachedNics {
  readonly remover: NicRemover;
  /** The NIC, too: no plugin needs it. */
  readonly areDispensable: boolean;
}

/**
 * Retires the pair of a pod's only NIC, which carries all of its state on the node, and cleans the pod's namespace.
 * With `nics`, those NICs are gone from it. Returns the pair's deletion; undefined if there is no pair, or more to do.
 * Throws ApplyError.
 */
async function retirePair(
  { host, remover, faults }: CoordinatorDeps,
  conf: CoordinatorConf,
  { containerId, ifName, netns }: DetachInput,
  { log, logPlanned, nics }: RetirementOptions,
): Promise<Operation | undefined> {
  const veth = nameVeth(containerId);
  const end = ifName === conf.podDefaultCniNic ? findHostEnd(host, veth) : undefined;
  if (end === undefined) return undefined;
  const pod = findDetachedPod(netns, conf.podDefaultCniNic);
  if (pod === "in use") return undefined;
  const deletion: Operation = { kind: "delete-veth", veth };
  logPlanned(deletion);
  try {
    faults("kernel.apply");
    const own = { containerId, netns: pod === "gone" ? pod : pod.identity };
    if (!(await remover.retire(end.index, own))) return undefined;
    if (pod !== "gone") {
      // First: without the pair nothing in the namespace says whose it is.
      using _ = await cleanPod(host, containerId, pod, log);
      await nics?.remover.remove(pod, veth, nics.areDispensable);
    }
    return deletion;
  } catch (error) {
    throw new ApplyError(deletion, formatOperation(deletion), error, []);
  }
}

/** Deletes everything that is left of the attachment, and waits until it is gone. Returns the operations. */
async function removeAll(
  deps: CoordinatorDeps,
  conf: CoordinatorConf,
  request: DetachInput,
  log: Log,
  logPlanned: (operation: Operation) => void,
): Promise<readonly Operation[]> {
  const { containerId, ifName } = request;
  const addresses = await findAddresses(deps, request);
  const pair = nameVeth(containerId);
  const { host, remover, faults } = deps;
  using pod = openPod(request.netns);
  const found = observePod(pod, log);
  const inside = isOfAttachment(found, pair, ifName, addresses) ? found : EMPTY_NAMESPACE;
  // The table may have changed since the ADD.
  const tables = hostTablesOf(host.mirror.read(), conf.hostRuleTable);
  const observed = {
    pod: inside,
    host: observeHost(host, { pair, tables, addresses: knownAddresses(addresses, inside), isUnderlay: false }),
  };
  const { plan } = planDetachment({ conf, ifName, network: request.netConf.name, addresses, pair, observed });
  const operations = diffPlan(observed, plan);
  operations.forEach(logPlanned);
  // Nothing is planned in a pod that does not exist, so its namespace is not used.
  const namespaces = { pod: pod ?? host, host };
  const apply = (some: readonly Operation[]): Promise<void> => applyOperations(some, namespaces, { remover, faults });
  await applyTolerantly(operations, apply, log);
  return operations;
}

/**
 * Gives the NIC its former MAC back, or the node's links theirs if the NIC has left the pod already. A refusal of the
 * kernel is logged: the record stays on the NIC, for the next DEL or GC. Returns the operations in the pod.
 */
async function returnMac(
  { host, faults }: CoordinatorDeps,
  { podMACPrefix }: CoordinatorConf,
  { containerId, ifName, netns }: DetachInput,
  log: Log,
  logPlanned: (operation: Operation) => void,
): Promise<readonly Operation[]> {
  try {
    using pod = openPod(netns);
    const links = pod === undefined ? [] : findLinks(pod.route, [ifName]).map(linkOf);
    const states = links.map((link) => linkStateOf(link, () => undefined));
    const own = planReturn("pod", states, { pair: nameVeth(containerId), ifName });
    const isLost = states.length === 0 && podMACPrefix !== "";
    const operations = isLost ? planReturn("host", observeNamespace(host, {}).links) : own;
    operations.forEach(logPlanned);
    await applyOperations(operations, { pod: pod ?? host, host }, { faults });
    return own;
  } catch (error) {
    if (!isOfKernel(error instanceof ApplyError ? error.cause : error)) throw error;
    log.warn({ err: error, interface: ifName }, "Giving a NIC its former MAC address back failed");
    return [];
  }
}

/**
 * Succeeds once nothing of the attachment is in use on the node. The pair of a pod's only NIC is down then, and
 * deleted soon; with `nics`, it is gone.
 */
export async function detach(
  deps: CoordinatorDeps,
  conf: CoordinatorConf,
  request: DetachInput,
  log: Log,
  nics?: DetachedNics,
): Promise<void> {
  const { containerId, ifName } = request;
  const about = { container: containerId, interface: ifName, network: request.netConf.name };
  const logPlanned = (operation: Operation): void =>
    log.debug({ ...about, operation: formatOperation(operation) }, "Planned");
  // A NIC that is deleted needs no address.
  const returned = nics?.areDispensable ? [] : await returnMac(deps, conf, request, log, logPlanned);
  try {
    const retired = await retirePair(deps, conf, request, { log, logPlanned, nics });
    const operations = retired === undefined ? await removeAll(deps, conf, request, log, logPlanned) : [retired];
    log.info({ ...about, operations: returned.length + operations.length }, "Detached");
  } catch (error) {
    using pod = openPod(request.netns);
    if (pod !== undefined) await undoOperations(returned, { pod, host: deps.host });
    throw error;
  }
}

/**
 * Deletes the pairs of this network's containers that the runtime does not know and that have no address in another
 * network, and gives NICs that are back their former MACs. In a cluster the runtime's list is no proof: the pair stays
 * until the address is released, also that of a pod whose container is not known (late-del). Returns the pairs' names.
 */
export async function collect(
  { host, remover, faults, registry, isCluster }: CoordinatorDeps,
  { netConf: { name, validAttachments } }: NodeRequest,
): Promise<string[]> {
  if (validAttachments === undefined) return [];
  const known = new Set<string>(validAttachments.map(({ containerId }) => containerId));
  for await (const { state, network, containerId, namespace, pod } of listRows(registry)) {
    if (state !== "Bound" || (network === name && !isCluster)) continue;
    known.add(containerId === UNKNOWN_CONTAINER ? `${namespace}/${pod}` : containerId);
  }
  const { links } = observeNamespace(host, {});
  const dead = links.filter(({ kind, alias, group }) => {
    const owner = kind === "veth" && !isRetired(group) ? parseAlias(alias) : undefined;
    return owner?.network === name && !known.has(owner.containerId) && !known.has(owner.pod);
  });
  for (const { index } of dead) await remover.removeLink(index);
  await applyOperations(planReturn("host", links), { pod: host, host }, { faults });
  return dead.map(({ name }) => name);
}
