/**
 * ADD and CHECK of `coordinator`: observe, plan, compare; then do it, or say what is missing.
 * Effects: changes both namespaces; probes on the NIC; announcements.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import type { AttachRequest } from "../../cni/request.ts";
import type { CniResult } from "../../cni/result.ts";
import type { CoordinatorConf } from "../../config/coordinator-settings.ts";
import { announce } from "../../coordinator/announce.ts";
import { formatAlias } from "../../coordinator/plan/alias.ts";
import { decideMode, type Mode } from "../../coordinator/plan/mode.ts";
import { nameVeth } from "../../coordinator/plan/names.ts";
import { planAttachment } from "../../coordinator/plan/plan-attachment.ts";
import type { RoutableAddresses } from "../../coordinator/plan/plan-guards.ts";
import { planMac } from "../../coordinator/plan/plan-mac.ts";
import { isNicTable, withoutStrangers } from "../../coordinator/plan/plan-nics.ts";
import type { Situation } from "../../coordinator/plan/situation.ts";
import { isOfCollection, isOfRouter, settledSince } from "../../coordinator/plan-check.ts";
import type { ProbeLink } from "../../coordinator/probe.ts";
import { announcedNics } from "../../ipam/announced-nics.ts";
import { type ApplyOptions, applyOperations, undoOperations } from "../../kernel/apply.ts";
import { IFA_F_TENTATIVE } from "../../kernel/netlink/address/constants.ts";
import { NetnsError, type NetnsIdentity } from "../../kernel/netns.ts";
import { type OpenNamespace, openPodNamespace } from "../../kernel/open-namespace.ts";
import type { Log } from "../../lib/log.ts";
import { equalIp, type Ip } from "../../net/ip.ts";
import type { Mac } from "../../net/mac.ts";
import { diffPlan } from "../../plan/diff.ts";
import { isOnNode, type Operation } from "../../plan/operation.ts";
import { formatOperation } from "../../plan/text.ts";
import { identifyRequest, type PodIdentity } from "../ipam/pod-identity.ts";
import type { Addition } from "../plugin.ts";
import type { AttachmentFacts } from "./attachments.ts";
import { type ClusterNetworks, requireServiceNetworks } from "./cluster-networks.ts";
import {
  addressesOf,
  type CoordinatorTools,
  knownAddresses,
  observeGateways,
  observeHost,
  observePod,
  requirePrevResult,
} from "./gather.ts";
import { detectOnNic, findProbeLink, type LateTools } from "./late-detection.ts";

export interface Attaching extends LateTools {
  readonly tools: CoordinatorTools;
  readonly conf: CoordinatorConf;
  readonly networks: ClusterNetworks;
  /** The plugin's own log, as the configuration asks for it. */
  readonly log: Log;
  readonly remember: (facts: AttachmentFacts) => void;
  /** Announces once the answer is on its way, unless the attachment is gone by then. */
  readonly keep: (announce: () => Disposable) => void;
}

interface Decision {
  readonly operations: readonly Operation[];
  readonly warnings: readonly string[];
  readonly situation: Situation;
  readonly mode: Mode;
  readonly identity: { readonly namespace: string; readonly pod: string };
}

/** What the registry says of a pod's NICs before anything is decided. */
interface Recorded {
  readonly pod: PodIdentity;
  readonly firstIsOurs: boolean;
  readonly routable: RoutableAddresses | undefined;
}

/** Whether Berth has given the pod's first NIC its address. Of that NIC itself nobody wants to know: see plan/mode.ts. */
async function isFirstOurs({ tools: { registry }, conf }: Attaching, request: AttachRequest): Promise<boolean> {
  const first = conf.podDefaultCniNic;
  if (conf.mode !== "auto" || request.ifName === first) return false;
  const found = await registry.findAttachment({ containerId: request.containerId, ifName: first });
  return found.some(({ state }) => state === "Bound");
}

/** Of the NIC: what Berth has allocated to it, and what the administrator allows besides. */
async function findRoutable(
  { tools: { registry, snapshot } }: Attaching,
  { containerId, ifName }: AttachRequest,
): Promise<RoutableAddresses> {
  const found = await registry.findAttachment({ containerId, ifName });
  const bound = found.filter(({ state }) => state === "Bound");
  return {
    allocated: bound.map(({ ip, prefixLength }) => ({ ip, length: prefixLength })),
    allowed: snapshot().vendorConf.hostRouteCIDR,
  };
}

/** A CHECK asks nobody: what the watch does not know of the pod is not held against it. */
async function findRecorded(attaching: Attaching, request: AttachRequest, signal?: AbortSignal): Promise<Recorded> {
  const { identifier, snapshot } = attaching.tools;
  const pod = signal ? await identifier.recognize(request, signal) : identifyRequest(request, snapshot());
  const firstIsOurs = await isFirstOurs(attaching, request);
  return { pod, firstIsOurs, routable: request.command === "ADD" ? await findRoutable(attaching, request) : undefined };
}

/** What is to be done for the request; undefined when the mode is `disable`. Synchronous but for the registry's answer before it. */
function decide(
  { tools, conf, networks }: Attaching,
  request: AttachRequest,
  pod: OpenNamespace,
  prevResult: CniResult,
  { pod: identity, firstIsOurs, routable }: Recorded,
): Decision | undefined {
  const { containerId, ifName, netConf } = request;
  const { owner, namespace, name, subject } = identity;
  const found = observePod(pod, ifName, conf.podDefaultCniNic);
  const observed = request.command === "CHECK" ? withoutStrangers(found, conf.podDefaultCniNic, ifName) : found;
  const mode = decideMode({ conf, ifName, network: netConf.name, pod: observed, isFirstOurs: firstIsOurs });
  if (mode === undefined) return undefined;
  const pair = nameVeth(containerId);
  const addresses = addressesOf(prevResult, ifName);
  const link = observed.links.find((each) => each.name === ifName);
  const asked: Situation = {
    conf,
    mode: mode.mode,
    ifName,
    defaultNic: subject?.annotations.defaultRouteNic ?? conf.podDefaultRouteNic,
    addresses,
    pair,
    alias: formatAlias({ owner, containerId, network: netConf.name, pod: name === "" ? "" : `${namespace}/${name}` }),
    owner,
    clusterTable: tools.snapshot().coordinator?.spec.hostRuleTable,
    gateways: observeGateways(tools.host),
    routable,
    mac: link && planMac(conf.podMACPrefix, link, addresses),
    observed: {
      pod: observed,
      host: observeHost(
        tools.host,
        pair,
        [conf.hostRuleTable],
        knownAddresses(addresses, observed),
        mode.mode === "underlay",
      ),
    },
  };
  const situation = request.command === "CHECK" ? settledSince(asked, networks.collected) : asked;
  const { plan, warnings } = planAttachment(situation);
  return {
    operations: diffPlan(situation.observed, plan),
    warnings: [...warnings, ...warnOfAbsentNic(asked, subject)],
    situation,
    mode,
    identity: { namespace, pod: name },
  };
}

/** The default route moves when the NIC comes; of one that nothing announces nobody else would ever say that it did not. */
function warnOfAbsentNic({ defaultNic, conf, observed }: Situation, subject: PodIdentity["subject"]): string[] {
  const known = [
    ...observed.pod.links.map(({ name }) => name),
    ...announcedNics(subject?.annotations ?? {}, conf.podDefaultCniNic),
  ];
  if (defaultNic === "" || known.includes(defaultNic)) return [];
  return [
    `Interface "${defaultNic}", which is to carry the default route, is not in the pod, and no network of its annotations has that name: ` +
      'the default route stays where it is until such an interface comes; correct "default-route-nic" or "podDefaultRouteNic"',
  ];
}

/** What the coordinator answers by itself, where it has nothing to do and nothing to pass on. */
const NO_RESULT: CniResult = { interfaces: [], ips: [], routes: [], dns: {} };

function withMac(result: CniResult, ifName: string, mac: Mac | undefined): CniResult {
  if (mac === undefined) return result;
  const interfaces = result.interfaces.map((each) =>
    each.name === ifName && each.sandbox !== undefined && each.sandbox !== "" ? { ...each, mac } : each,
  );
  return { ...result, interfaces };
}

/**
 * Neighbours may know the address by another MAC: the pod was on another node, or its prefix is new. Nobody waits for it.
 * What the kernel still asks about by itself is left to it.
 */
function announceSoon(
  { log, keep, isShared }: Attaching,
  { netns, ifName }: AttachRequest,
  link: ProbeLink | undefined,
  { addresses, observed }: Situation,
): void {
  if (link === undefined) return;
  const isSettled = (ip: Ip): boolean =>
    !observed.pod.addresses.some(({ prefix, flags }) => equalIp(prefix.ip, ip) && (flags & IFA_F_TENTATIVE) !== 0);
  const settled = addresses.filter((ip) => isSettled(ip) && isShared?.(ip) !== true);
  keep(() =>
    announce({ ...link, netnsPath: netns }, settled, (error) =>
      log.warn({ interface: ifName, err: error }, "Announcing failed"),
    ),
  );
}

/** Takes back what an ADD has done; without its pod what it has done on the node. */
async function takeBack(
  { tools: { host, remover }, log }: Attaching,
  pod: OpenNamespace | undefined,
  operations: readonly Operation[],
): Promise<void> {
  const some = pod === undefined ? operations.filter(isOnNode) : operations;
  const leftovers = await undoOperations(some, { pod: pod ?? host, host }, { remover });
  if (leftovers.length > 0) log.error({ leftovers }, "Could not be undone");
}

/** The namespace again, unless it is gone or its path leads to another one by now. */
function reopen(path: string, { device, inode }: NetnsIdentity): OpenNamespace | undefined {
  try {
    const pod = openPodNamespace(path);
    if (pod.identity.device === device && pod.identity.inode === inode) return pod;
    pod[Symbol.dispose]();
  } catch (error) {
    if (!(error instanceof NetnsError)) throw error;
  }
  return undefined;
}

/** When nobody heard the answer. */
async function takeBackLater(
  attaching: Attaching,
  path: string,
  identity: NetnsIdentity,
  operations: readonly Operation[],
): Promise<void> {
  using pod = reopen(path, identity);
  await takeBack(attaching, pod, operations);
}

function setsMac(operation: Operation, ifName: string): boolean {
  return operation.kind === "set-link" && operation.link === ifName && operation.to.mac !== undefined;
}

interface Asking {
  readonly decision: Decision;
  readonly prevResult: CniResult;
  readonly pod: OpenNamespace;
  readonly signal: AbortSignal;
  readonly doing: ApplyOptions;
}

/** Asks the segment, with the MAC address that the NIC is to have; gives what was done for that. */
async function ask(
  attaching: Attaching,
  request: AttachRequest,
  { decision, prevResult, pod, signal, doing }: Asking,
): Promise<readonly Operation[]> {
  const before = decision.operations.filter((operation) => setsMac(operation, request.ifName));
  await applyOperations(before, { pod, host: attaching.tools.host }, doing);
  try {
    await detectOnNic(attaching, request, { prevResult, pod, signal });
    signal.throwIfAborted();
  } catch (error) {
    await takeBack(attaching, pod, before);
    throw error;
  }
  return before;
}

/** Detection comes before anything is made: a conflict is told at once, and leaves nothing to take back. */
export async function attach(attaching: Attaching, request: AttachRequest, signal: AbortSignal): Promise<Addition> {
  const { tools, conf, log } = attaching;
  if (conf.mode === "disable") return { result: request.netConf.prevResult ?? NO_RESULT, undo: async () => {} };
  const prevResult = requirePrevResult(request);
  const nothing = { result: prevResult, undo: async () => {} };
  requireServiceNetworks(attaching.networks);
  const recorded = await findRecorded(attaching, request, signal);
  using pod = openPodNamespace(request.netns);
  const decision = decide(attaching, request, pod, prevResult, recorded);
  if (decision === undefined) return nothing;
  const { host, remover, faults } = tools;
  const doing: ApplyOptions = { remover, faults };
  const isAsked = conf.detectIPConflict || conf.detectGateway;
  const before = isAsked ? await ask(attaching, request, { decision, prevResult, pod, signal, doing }) : [];
  // Others have run meanwhile: what was decided before the question may not hold any more.
  const done = isAsked ? decide(attaching, request, pod, prevResult, recorded) : decision;
  if (done === undefined) return nothing;
  try {
    await applyOperations(done.operations, { pod, host }, doing);
  } catch (error) {
    await takeBack(attaching, pod, before);
    throw error;
  }
  const { warnings, situation, mode } = done;
  const operations = [...before, ...done.operations];
  const about = { container: request.containerId, interface: request.ifName, network: request.netConf.name };
  for (const operation of operations) log.debug({ ...about, operation: formatOperation(operation) }, "Done");
  for (const warning of warnings) log.warn(about, warning);
  announceSoon(attaching, request, findProbeLink(pod, request.ifName), situation);
  attaching.remember({
    ...done.identity,
    ifName: request.ifName,
    ...mode,
    networks: attaching.networks.origins,
    warnings,
  });
  log.info({ ...about, mode: mode.mode, reason: mode.reason, operations: operations.length }, "Attached");
  const { identity } = pod;
  const undo = (): Promise<void> => takeBackLater(attaching, request.netns, identity, operations);
  return { result: withMac(prevResult, request.ifName, situation.mac), undo };
}

/** Too much in a table of NICs: left by one that went without us, since its network has no coordinator. The next ADD clears it. */
function isRemnant(operation: Operation): boolean {
  if (operation.kind === "delete-route") return isNicTable(operation.route.table);
  return operation.kind === "delete-rule" && isNicTable(operation.rule.table);
}

/** Throws CniError 106 that lists what is missing or too much, in the words of `ip`. */
export async function checkAttachment(attaching: Attaching, request: AttachRequest): Promise<void> {
  const { conf } = attaching;
  if (conf.mode === "disable") return;
  const prevResult = requirePrevResult(request);
  const recorded = await findRecorded(attaching, request);
  using pod = openPodNamespace(request.netns);
  const decision = decide(attaching, request, pod, prevResult, recorded);
  const { collected } = attaching.networks;
  const isFault = (each: Operation): boolean =>
    !isRemnant(each) && !isOfRouter(each) && !isOfCollection(each, collected);
  const lines = decision?.operations.filter(isFault).map(formatOperation) ?? [];
  if (lines.length === 0) return;
  const more = lines.length > 1 ? ` and ${lines.length - 1} more` : "";
  throw new CniError(
    ErrorCode.InterfaceRefused,
    `Interface "${request.ifName}" is not as it was set up: it lacks "${lines[0] ?? ""}"${more}`,
    { details: lines.join("\n") },
  );
}
