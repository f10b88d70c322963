/**
 * ADD of `coordinator`: decides, applies the difference, and undoes it if the caller has hung up.
 * Effects: changes both namespaces; probes on the NIC; announcements.
 */
import type { AttachRequest } from "../../cni/request.ts";
import type { CniResult } from "../../cni/result.ts";
import { isNicDispensable } from "../../config/network-definition.ts";
import { planUnlearning } from "../../coordinator/plan/learned-state.ts";
import type { PlanInput } from "../../coordinator/plan/plan-input.ts";
import { type ApplyOptions, applyOperations, undoOperations } from "../../kernel/apply.ts";
import { applyOperation, type ListedState } from "../../kernel/apply-operation.ts";
import { IFA_F_TENTATIVE } from "../../kernel/netlink/address/constants.ts";
import { identityOf, isSameNetns, NetnsError, type NetnsIdentity } from "../../kernel/netns.ts";
import { observeNamespace } from "../../kernel/observe-namespace.ts";
import { type OpenNamespace, openPodNamespace } from "../../kernel/open-namespace.ts";
import { readSysctls, writeSysctls } from "../../kernel/sysctl.ts";
import { equalIp, type Ip } from "../../net/ip.ts";
import type { Mac } from "../../net/mac.ts";
import { isOnNode, type Operation } from "../../plan/operation.ts";
import { formatOperation } from "../../plan/text.ts";
import type { Addition } from "../request/plugin.ts";
import {
  type AttachContext,
  type Decision,
  decide,
  decideWhenProbed,
  findPlugins,
  readOwnFacts,
  readRegistryFacts,
} from "./decide.ts";
import { detectOnNic } from "./late-detection.ts";
import { addressesOf, requirePrevResult } from "./observe.ts";
import { requireServiceNetworks } from "./settings.ts";

/** The result of mode `disable` if there is no previous result to pass on. */
const NO_RESULT: CniResult = { interfaces: [], ips: [], routes: [], dns: {} };

function withMac(result: CniResult, ifName: string, mac: Mac | undefined): CniResult {
  if (mac === undefined) return result;
  const interfaces = result.interfaces.map((each) =>
    each.name === ifName && each.sandbox !== undefined && each.sandbox !== "" ? { ...each, mac } : each,
  );
  return { ...result, interfaces };
}

/**
 * Announces the NIC's addresses without delaying the answer: neighbours may have cached another MAC, since the pod
 * was on another node or its MAC prefix is new. Addresses that the kernel is still probing are left to the kernel.
 */
function announceAddresses(
  { deps, log, announceLater }: AttachContext,
  request: AttachRequest,
  { addresses, observed, mac: changed }: PlanInput,
): void {
  const { netns, ifName } = request;
  const link = observed.pod.links.find(({ name }) => name === ifName);
  const mac = changed ?? link?.mac;
  if (link === undefined || mac === undefined) return;
  const isTentative = (ip: Ip): boolean =>
    observed.pod.addresses.some(({ prefix, flags }) => equalIp(prefix.ip, ip) && (flags & IFA_F_TENTATIVE) !== 0);
  announceLater({
    link: { netnsPath: netns, index: link.index, name: ifName, mac, kind: link.kind || undefined },
    addresses: addresses.filter((ip) => !isTentative(ip) && !deps.answered.isShared(request, ip)),
    onError: (error) => log.warn({ interface: ifName, err: error }, "Announcing the addresses of an interface failed"),
  });
}

/** Undoes an ADD's changes; if the pod is gone, only those on the node. */
async function undoChanges(
  { deps: { host, remover }, log }: AttachContext,
  pod: OpenNamespace | undefined,
  operations: readonly Operation[],
): Promise<void> {
  const some = pod === undefined ? operations.filter(isOnNode) : operations;
  const leftovers = await undoOperations(some, { pod: pod ?? host, host }, { remover });
  if (leftovers.length > 0) log.error({ leftovers }, "Undoing an ADD failed; some changes remain");
}

/** Returns the namespace opened again; undefined if it is gone, or if its path names another one by now. */
function reopen(path: string, identity: NetnsIdentity): OpenNamespace | undefined {
  try {
    const pod = openPodNamespace(path);
    if (isSameNetns(identityOf(pod), identity)) return pod;
    pod[Symbol.dispose]();
  } catch (error) {
    if (!(error instanceof NetnsError)) throw error;
  }
  return undefined;
}

/** Returns whether the operation changes the NIC's MAC, or the record of it. */
function setsMac(operation: Operation, ifName: string): boolean {
  if (operation.kind === "add-alt-name" || operation.kind === "delete-alt-name") return true;
  return operation.kind === "set-link" && operation.link === ifName && operation.to.mac !== undefined;
}

interface DetectionInput {
  readonly decision: Decision;
  readonly prevResult: CniResult;
  readonly pod: OpenNamespace;
  readonly signal: AbortSignal;
  readonly applyOptions: ApplyOptions;
}

/** Probes with the MAC address that the NIC is going to have. Returns the operations applied for that. */
async function detectBeforeChanges(
  context: AttachContext,
  request: AttachRequest,
  { decision, prevResult, pod, signal, applyOptions }: DetectionInput,
): Promise<readonly Operation[]> {
  const { deps, conf } = context;
  const macChanges = decision.operations.filter((operation) => setsMac(operation, request.ifName));
  await applyOperations(macChanges, { pod, host: deps.host }, applyOptions);
  try {
    await detectOnNic(deps, request, { conf, prevResult, pod, signal });
    signal.throwIfAborted();
  } catch (error) {
    await undoChanges(context, pod, macChanges);
    throw error;
  }
  return macChanges;
}

/**
 * From now on routers of the segment give the NIC nothing, and it loses their addresses and routes. No undo gives those
 * back: they would have no lifetime then. Returns the other changes, which an undo takes back.
 */
function keepOutRouters(pod: OpenNamespace, ifName: string, given: readonly Ip[]): Operation[] {
  const ofFamily = (family: string): string => `${family}/conf/${ifName}/accept_redirects`;
  const keys = ["ipv4/conf/all/accept_redirects", ...["ipv4", "ipv6"].map(ofFamily), `ipv6/conf/${ifName}/accept_ra`];
  const open = [...readSysctls(pod, keys)].filter(([, value]) => value !== "0");
  writeSysctls(pod, new Map(open.map(([key]) => [key, "0"])));
  const found = observeNamespace(pod, { addresses: true, routeTables: "not local" });
  const listed: ListedState = new Map();
  for (const operation of planUnlearning(found, ifName, given)) applyOperation(operation, { pod, host: pod }, listed);
  return open.map(([key, from]) => ({ kind: "set-sysctl", place: "pod", key, from, to: "0" }));
}

/** Detection comes before all other changes: a conflict is reported at once and leaves nothing to undo. */
export async function attach(context: AttachContext, request: AttachRequest, signal: AbortSignal): Promise<Addition> {
  const { deps, conf, log } = context;
  if (conf.mode === "disable") return { result: request.netConf.prevResult ?? NO_RESULT, undo: async () => {} };
  const prevResult = requirePrevResult(request);
  const unchanged = { result: prevResult, undo: async () => {} };
  requireServiceNetworks(context.networks);
  const reading = readOwnFacts(context, request, signal);
  reading.catch(() => {}); // awaited below, unless the namespace is gone
  using pod = openPodNamespace(request.netns);
  const facts = await readRegistryFacts(context, request, pod, await reading);
  const before = conf.acceptRA ? [] : keepOutRouters(pod, request.ifName, addressesOf(prevResult, request.ifName));
  const { host, remover, faults } = deps;
  const applyOptions: ApplyOptions = { remover, faults };
  let done: Decision;
  try {
    let decision = await decideWhenProbed(signal, context, request, pod, prevResult, facts);
    if (decision !== undefined && (conf.detectIPConflict || conf.detectGateway)) {
      before.push(
        ...(await detectBeforeChanges(context, request, { decision, prevResult, pod, signal, applyOptions })),
      );
      // Other requests ran while this one was probing, so the first decision may be outdated.
      decision = decide(context, request, pod, prevResult, facts);
    }
    if (decision === undefined) return unchanged;
    done = decision;
    await applyOperations(done.operations, { pod, host }, applyOptions);
  } catch (error) {
    await undoChanges(context, pod, before);
    throw error;
  }
  const { warnings, input, mode } = done;
  const operations = [...before, ...done.operations];
  const about = { container: request.containerId, interface: request.ifName, network: request.netConf.name };
  announceAddresses(context, request, input);
  const { ifName } = request;
  const { origins: networks } = context.networks;
  // It is the pod's first, and no plugin of its network needs it in its DEL.
  const isDispensable =
    request.ifName === context.conf.podDefaultCniNic && isNicDispensable(findPlugins(context.deps, request, facts.pod));
  context.remember({ ...done.identity, ifName, ...mode, networks, warnings, isNicDispensable: isDispensable });
  setImmediate(() => {
    if (log.isLevelEnabled("debug")) log.debug({ ...about, operations: operations.map(formatOperation) }, "Applied");
    for (const warning of warnings) log.warn(about, warning);
    log.info({ ...about, mode: mode.mode, reason: mode.reason, operations: operations.length }, "Attached");
  });
  const { device, inode } = pod;
  const identity = { device, inode, cookie: request.netnsCookie };
  const undo = async (): Promise<void> => {
    using reopened = reopen(request.netns, identity);
    await undoChanges(context, reopened, operations);
  };
  return { result: withMac(prevResult, ifName, input.mac), undo };
}
