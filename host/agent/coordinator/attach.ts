/**
 * ADD and CHECK of `coordinator`: observe, plan and diff; then apply the difference, or report it.
 * Effects: changes both namespaces; probes on the NIC; announcements.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { CniError, ErrorCode } from "../../cni/error.ts";
import { type AttachRequest, requestedMac } from "../../cni/request.ts";
import type { CniResult } from "../../cni/result.ts";
import type { CoordinatorConf } from "../../config/coordinator-settings.ts";
import {
  findMac,
  isNicDispensable,
  losesMainRoutes,
  type PlacedEntry,
  takesMac,
} from "../../config/network-definition.ts";
import type { Announcement } from "../../coordinator/announcer.ts";
import { isRoutable, type RoutableAddresses } from "../../coordinator/plan/address-policy.ts";
import { formatAlias } from "../../coordinator/plan/alias.ts";
import { hasFormerMac, recordFormerMac } from "../../coordinator/plan/former-mac.ts";
import { decideMode, type Mode } from "../../coordinator/plan/mode.ts";
import { nameVeth } from "../../coordinator/plan/names.ts";
import { selectNodeRepairs } from "../../coordinator/plan/node-repairs.ts";
import { hostTablesOf, includesIp } from "../../coordinator/plan/own-objects.ts";
import { findOverridingFilter, type Override, planAttachment } from "../../coordinator/plan/plan-attachment.ts";
import type { PlanInput } from "../../coordinator/plan/plan-input.ts";
import { planMac } from "../../coordinator/plan/plan-mac.ts";
import { withoutForeignRoutes } from "../../coordinator/plan/plan-nics.ts";
import type { AttachedNic } from "../../coordinator/plan/plan-sources.ts";
import { ignoreLaterChanges, isDifference } from "../../coordinator/plan-check.ts";
import { announcedNics } from "../../ipam/announced-nics.ts";
import { type ApplyOptions, applyOperations, undoOperations } from "../../kernel/apply.ts";
import { readFirstLinkNames } from "../../kernel/link-names.ts";
import { IFA_F_DADFAILED, IFA_F_TENTATIVE } from "../../kernel/netlink/address/constants.ts";
import { findLinkName } from "../../kernel/netlink/link/requests.ts";
import { NetnsError, type NetnsIdentity } from "../../kernel/netns.ts";
import { observeNamespace } from "../../kernel/observe-namespace.ts";
import { type OpenNamespace, openPodNamespace } from "../../kernel/open-namespace.ts";
import type { Log } from "../../lib/log.ts";
import { equalIp, formatIp, type Ip } from "../../net/ip.ts";
import { type Mac, parseMac } from "../../net/mac.ts";
import { diffPlan } from "../../plan/diff.ts";
import { isOnNode, type Operation } from "../../plan/operation.ts";
import type { LinkState, NamespaceState } from "../../plan/state.ts";
import { formatOperation } from "../../plan/text.ts";
import type { Allocation, Attachment } from "../../registry/registry.ts";
import { identifyRequest, type PodIdentity } from "../ipam/pod-identity.ts";
import { pluginsOfNic } from "../nic-definition.ts";
import type { Addition } from "../plugin.ts";
import type { AttachmentFacts } from "./attachments.ts";
import { isNoNic } from "./clean-pod.ts";
import { detectOnNic, type LateDetectionDeps } from "./late-detection.ts";
import { addressesOf, knownAddresses, observeGateways, observeHost, observePod, requirePrevResult } from "./observe.ts";
import { isRetired } from "./pair-remover.ts";
import { type ClusterNetworks, type CoordinatorDeps, requireServiceNetworks } from "./settings.ts";

export interface AttachContext {
  readonly deps: CoordinatorDeps & LateDetectionDeps;
  readonly conf: CoordinatorConf;
  readonly networks: ClusterNetworks;
  /** The plugin's own log, as the configuration asks for it. */
  readonly log: Log;
  readonly remember: (facts: AttachmentFacts) => void;
  /** Announces some time after the answer has been sent, unless the attachment is deleted before that. */
  readonly announceLater: (announcement: Announcement) => void;
}

interface Decision {
  readonly operations: readonly Operation[];
  readonly warnings: readonly string[];
  readonly input: PlanInput;
  readonly mode: Mode;
  readonly identity: { readonly namespace: string; readonly pod: string };
}

/** What is known of the pod and its NICs before anything is decided. */
interface RegistryFacts {
  readonly pod: PodIdentity;
  readonly isFirstNicBerth: boolean;
  readonly routable: RoutableAddresses | undefined;
  readonly attached: readonly AttachedNic[];
}

/** Returns the plugins of the request's network. */
function findPlugins(
  { definitions }: Pick<CoordinatorDeps, "definitions">,
  { netConf: { name: network }, ifName }: AttachRequest,
  { subject }: PodIdentity,
): readonly PlacedEntry[] {
  return pluginsOfNic(definitions, { ifName, network, pod: subject });
}

/** What the registry has bound to one NIC of the pod. */
interface BoundNic {
  readonly ifName: string;
  readonly rows: readonly Allocation[];
}

async function findBound({ registry }: Pick<CoordinatorDeps, "registry">, nic: Attachment): Promise<BoundNic> {
  const found = await registry.findAttachment(nic);
  return { ifName: nic.ifName, rows: found.filter(({ state }) => state === "Bound") };
}

/** Returns the pod, and what Berth allocated to the NIC. CHECK passes no signal: it does not ask the API server, and does not fail for what the watch does not know of the pod. */
function readOwnFacts(
  { deps }: AttachContext,
  request: AttachRequest,
  signal?: AbortSignal,
): Promise<[PodIdentity, BoundNic]> {
  const { containerId, ifName } = request;
  const answer = request.command === "ADD" ? deps.answered.takeAnswer({ containerId, ifName }) : undefined;
  const rows = answer?.filter(({ state }) => state === "Bound");
  return Promise.all([
    signal ? deps.identifier.recognize(request, signal) : identifyRequest(request, deps.snapshot()),
    rows ? { ifName, rows } : findBound(deps, { containerId, ifName }),
  ]);
}

/** Returns what Berth allocated to the NIC, and what the administrator allows besides. */
function routableOf({ deps }: Pick<AttachContext, "deps">, { rows }: BoundNic): RoutableAddresses {
  return {
    allocated: rows.map(({ ip, prefixLength }) => ({ ip, length: prefixLength })),
    allowed: deps.snapshot().vendorConf.hostRouteCIDR,
  };
}

/** Adds what is known of the pod's other NICs; a pod with one NIC costs no question. */
async function readRegistryFacts(
  { deps, conf }: AttachContext,
  { command, containerId, ifName }: AttachRequest,
  netns: OpenNamespace,
  [pod, own]: readonly [PodIdentity, BoundNic],
): Promise<RegistryFacts> {
  const names = readFirstLinkNames(netns).filter((name) => name !== ifName && !isNoNic(name));
  const others = await Promise.all(names.map((name) => findBound(deps, { containerId, ifName: name })));
  /** Nothing for a NIC whose network has no coordinator. */
  const attachedOf = ({ ifName: name, rows }: BoundNic): AttachedNic[] => {
    const [row] = rows;
    const nic = row && { ifName: name, network: row.network, pod: pod.subject };
    if (nic === undefined || !deps.definitions.isCoordinated(nic)) return [];
    const settings = deps.definitions.settingsFor(nic);
    if (settings.mode === "disable") return [];
    return [{ ifName: name, addresses: rows.map(({ ip }) => ip), conf: settings }];
  };
  return {
    pod,
    isFirstNicBerth: others.some((nic) => nic.ifName === conf.podDefaultCniNic && nic.rows.length > 0),
    routable: command === "ADD" ? routableOf({ deps }, own) : undefined,
    attached: [{ ifName, addresses: own.rows.map(({ ip }) => ip), conf }, ...others.flatMap(attachedOf)],
  };
}

/** Returns the MAC address that the pod requests for the NIC, and in which words. Throws CniError 7 for a malformed one. */
function findRequestedMac(
  { deps }: AttachContext,
  request: AttachRequest,
  link: LinkState,
  plugins: readonly PlacedEntry[],
): { readonly mac: Mac; readonly by: string } | undefined {
  const { requested, found } = deps.answered.macOf(request) ?? {};
  const own = requestedMac(request) ?? requested;
  if (own !== undefined) return { mac: own, by: "the pod" };
  const defined = findMac(plugins);
  if (defined !== undefined) return { mac: defined.mac, by: `the plugin "${defined.type}" of the network` };
  const pair = nameVeth(request.containerId);
  const isSet = found !== undefined && link.mac !== found && !hasFormerMac(link, { pair, ifName: request.ifName });
  return isSet && link.mac !== undefined ? { mac: link.mac, by: "a plugin before the coordinator" } : undefined;
}

/**
 * Returns the MAC address that podMACPrefix, or the pod's own request, demands for the NIC. A later plugin may have set another one: CHECK
 * demands the `reported` one of the chain's result; without it nothing, unless the coordinator has certainly set the present one.
 */
function demandMac(
  context: AttachContext,
  request: AttachRequest,
  link: LinkState,
  { addresses, subject, reported }: MacQuestion,
): { readonly mac?: Mac | undefined; readonly warnings: readonly string[] } {
  const { conf, deps } = context;
  const { podMACPrefix: prefix } = conf;
  const { command, ifName, containerId, netConf } = request;
  if (prefix === "") return { warnings: [] };
  if (reported !== undefined) return { mac: reported, warnings: [] };
  const plugins = pluginsOfNic(deps.definitions, { ifName, network: netConf.name, pod: subject });
  if (command === "CHECK") {
    const isOurs = hasFormerMac(link, { pair: nameVeth(containerId), ifName });
    const isJudged = isOurs && findMac(plugins) === undefined && !takesMac(plugins);
    return { mac: isJudged ? planMac(prefix, link, addresses) : undefined, warnings: [] };
  }
  const requested = findRequestedMac(context, request, link, plugins);
  const mac = planMac(prefix, link, addresses, requested?.mac);
  if (requested === undefined) return { mac, warnings: [] };
  const text = `podMACPrefix "${prefix}" is not applied to interface "${ifName}": ${requested.by} requests the MAC address ${requested.mac}`;
  return { mac, warnings: [text] };
}

interface MacQuestion {
  readonly addresses: readonly Ip[];
  readonly subject: PodIdentity["subject"];
  readonly reported: Mac | undefined;
}

/** Returns the changes that the request needs; undefined in mode `disable`. Synchronous, so that nothing changes between observing and applying. */
function decide(
  context: AttachContext,
  request: AttachRequest,
  pod: OpenNamespace,
  prevResult: CniResult,
  facts: RegistryFacts,
  reportedMac?: Mac,
): Decision | undefined {
  const { deps, conf, networks } = context;
  const { containerId, ifName, netConf } = request;
  const { owner, namespace, name, subject } = facts.pod;
  const found = observePod(pod, ifName, conf.podDefaultCniNic);
  const observed = request.command === "CHECK" ? withoutForeignRoutes(found, conf.podDefaultCniNic, ifName) : found;
  const network = netConf.name;
  const first = conf.podDefaultCniNic;
  const mode = decideMode({ conf, ifName, network, pod: observed, isFirstNicBerth: facts.isFirstNicBerth });
  if (mode === undefined) return undefined;
  const pair = nameVeth(containerId);
  const addresses = addressesOf(prevResult, ifName);
  const known = knownAddresses(addresses, observed);
  const link = observed.links.find((each) => each.name === ifName);
  const demand = link && demandMac(context, request, link, { addresses, subject, reported: reportedMac });
  const current: PlanInput = {
    conf,
    mode: mode.mode,
    ifName,
    defaultNic: linkNameIn(pod, observed, subject?.annotations.defaultRouteNic ?? conf.podDefaultRouteNic),
    addresses,
    pair,
    alias: formatAlias({ owner, containerId, network, pod: name === "" ? "" : `${namespace}/${name}` }),
    owner,
    clusterTable: deps.snapshot().coordinator?.spec.hostRuleTable,
    gateways: observeGateways(deps.host),
    routable: facts.routable,
    mac: demand?.mac,
    attached: facts.attached,
    losesMainRoutes: request.command === "ADD" && losesMainRoutes(findPlugins(deps, request, facts.pod)),
    observed: {
      pod: observed,
      host: observeHost(deps.host, {
        pair,
        // other NICs of the pod may have theirs
        tables: hostTablesOf(deps.host.mirror.read(), conf.hostRuleTable),
        addresses: known,
        isUnderlay: mode.mode === "underlay",
        link: mode.mode === "overlay" ? observed.links.find(({ name }) => name === first)?.parent : undefined,
      }),
    },
  };
  const input = request.command === "CHECK" ? ignoreLaterChanges(current, networks.collected) : current;
  const { plan, warnings } = planAttachment(input);
  const operations = diffPlan(input.observed, plan);
  const isAdd = request.command === "ADD";
  return {
    operations: isAdd && link !== undefined ? recordFormerMac(operations, link, { pair, ifName }) : operations,
    warnings: [...(demand?.warnings ?? []), ...warnings, ...warnAboutAbsentNic(current, subject)],
    input,
    mode,
    identity: { namespace, pod: name },
  };
}

/** Returns the name of the pod's link that has this alternative name; the name itself if it is a link's own, or none's yet. */
function linkNameIn({ route }: OpenNamespace, { links }: NamespaceState, name: string): string {
  const isKnown = name === "" || links.some((link) => link.name === name);
  return isKnown ? name : (findLinkName(route, name) ?? name);
}

/** How long an ADD waits until the kernel has probed the NIC's IPv6 addresses: milliseconds. Most main plugins have done so. @limit */
export const MAX_DUPLICATE_DETECTION_MS = 5_000;

/** How often an ADD looks whether the kernel has probed the addresses: milliseconds. */
const LOOK_MS = 20;

function isProbing({ ifName, addresses, observed }: PlanInput): boolean {
  return observed.pod.addresses.some(
    ({ link, prefix, flags }) =>
      link === ifName &&
      (flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)) === IFA_F_TENTATIVE &&
      includesIp(addresses, prefix.ip),
  );
}

/** Decides once the kernel has probed the NIC's addresses, or takes too long: it refuses routes from an address that it is probing. */
async function decideWhenProbed(
  signal: AbortSignal,
  ...situation: Parameters<typeof decide>
): Promise<Decision | undefined> {
  const endMs = performance.now() + MAX_DUPLICATE_DETECTION_MS;
  for (;;) {
    const decision = decide(...situation);
    if (decision === undefined || !isProbing(decision.input) || performance.now() > endMs) return decision;
    await sleep(LOOK_MS, undefined, { signal });
  }
}

/** The default route moves when its NIC is attached. If no annotation announces that NIC, nothing else would report that it never came. */
function warnAboutAbsentNic({ defaultNic, conf, observed }: PlanInput, subject: PodIdentity["subject"]): string[] {
  const known = [
    ...observed.pod.links.map(({ name }) => name),
    ...announcedNics(subject?.annotations ?? {}, conf.podDefaultCniNic),
  ];
  if (defaultNic === "" || known.includes(defaultNic)) return [];
  return [
    `Interface "${defaultNic}", which is to carry the default route, is not in the pod, and no network of its annotations has that name: ` +
      'the default route is left unchanged until such an interface is attached; correct "default-route-nic" or "podDefaultRouteNic"',
  ];
}

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
 * Announces the NIC's addresses without delaying the answer: neighbours may have cached another MAC, since the pod was on another node or
 * its MAC prefix is new. Addresses that the kernel is still probing are left to the kernel.
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

/** Undoes what an ADD has done; if the pod is gone, only what it has done on the node. */
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

/** Undoes an ADD whose caller has hung up before the answer. */
async function undoLater(
  context: AttachContext,
  path: string,
  identity: NetnsIdentity,
  operations: readonly Operation[],
): Promise<void> {
  using pod = reopen(path, identity);
  await undoChanges(context, pod, operations);
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

/** Returns whether the NIC is the pod's first, and no plugin of its network needs it in its DEL. */
function findsNicDispensable({ deps, conf }: AttachContext, request: AttachRequest, pod: PodIdentity): boolean {
  return request.ifName === conf.podDefaultCniNic && isNicDispensable(findPlugins(deps, request, pod));
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
  const decision = await decideWhenProbed(signal, context, request, pod, prevResult, facts);
  if (decision === undefined) return unchanged;
  const { host, remover, faults } = deps;
  const applyOptions: ApplyOptions = { remover, faults };
  const detects = conf.detectIPConflict || conf.detectGateway;
  const before = detects
    ? await detectBeforeChanges(context, request, { decision, prevResult, pod, signal, applyOptions })
    : [];
  // Other requests ran while this one was probing, so the first decision may be outdated.
  const done = detects ? decide(context, request, pod, prevResult, facts) : decision;
  if (done === undefined) return unchanged;
  try {
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
  const isDispensable = findsNicDispensable(context, request, facts.pod);
  context.remember({ ...done.identity, ifName, ...mode, networks, warnings, isNicDispensable: isDispensable });
  setImmediate(() => {
    if (log.isLevelEnabled("debug")) log.debug({ ...about, operations: operations.map(formatOperation) }, "Applied");
    for (const warning of warnings) log.warn(about, warning);
    log.info({ ...about, mode: mode.mode, reason: mode.reason, operations: operations.length }, "Attached");
  });
  const { identity } = pod;
  const undo = (): Promise<void> => undoLater(context, request.netns, identity, operations);
  return { result: withMac(prevResult, ifName, input.mac), undo };
}

/**
 * Restores on the node what the ADD left there, and returns the operations that did it. Nothing is restored in mode `disable`; if the NIC is
 * not there with its addresses, or they are no longer allocated: the attachment has ended; if the pair is gone: the node alone cannot restore it. Throws CniError 106 if the attachment conflicts with
 * what exists, ApplyError if the kernel refuses.
 */
export async function restoreNodeSide(context: AttachContext, request: AttachRequest): Promise<readonly Operation[]> {
  const { conf, deps } = context;
  if (conf.mode === "disable") return [];
  const prevResult = requirePrevResult(request);
  const own = await readOwnFacts(context, request);
  const routable = routableOf(context, own[1]);
  using pod = openPodNamespace(request.netns);
  const addresses = addressesOf(prevResult, request.ifName);
  if (!addresses.every((ip) => isRoutable(ip, routable)) || !hasAddresses(pod, request, addresses)) return [];
  const facts = await readRegistryFacts(context, request, pod, own);
  const decision = decide(context, request, pod, prevResult, { ...facts, routable });
  // Between the DEL of the coordinator and that of the IPAM plugin the address is still allocated.
  if (decision?.input.observed.host.links.some(({ group }) => isRetired(group)) === true) return [];
  const operations = selectNodeRepairs(differencesOf(context, request, decision));
  const { host, faults } = deps;
  if (operations.length > 0) await applyOperations(operations, { pod, host }, { faults });
  return operations;
}

/** Returns the operations that restore what ADD left, without later changes. */
function differencesOf(
  { networks: { collected } }: AttachContext,
  request: AttachRequest,
  decision: Decision | undefined,
): Operation[] {
  const { ips, routes } = requirePrevResult(request);
  const routers = [...ips.map(({ gateway }) => gateway), ...routes.map(({ gw }) => gw)];
  const nic = { ifName: request.ifName, routers: routers.filter((ip) => ip !== undefined), collected };
  return decision?.operations.filter((each) => isDifference(each, nic)) ?? [];
}

/** Whether the namespace is still the one of the ADD: its path may lead to another pod by now. */
function hasAddresses(pod: OpenNamespace, { ifName }: AttachRequest, addresses: readonly Ip[]): boolean {
  const found = observeNamespace(pod, { addresses: true }).addresses.filter(({ link }) => link === ifName);
  return addresses.every((ip) => found.some(({ prefix }) => equalIp(prefix.ip, ip)));
}

/** How an attachment differs from what its ADD left. */
export interface Comparison {
  /** What would restore it. */
  readonly operations: readonly Operation[];
  /** A setting of the node that no operation may change. */
  readonly override?: Override | undefined;
}

/**
 * Returns no difference in mode `disable`. `reportedMac` is the NIC's MAC in the result of the whole chain, if that is known. Throws CniError 106 if the
 * attachment conflicts with what exists.
 */
export async function compareAttachment(
  context: AttachContext,
  request: AttachRequest,
  reportedMac?: Mac,
): Promise<Comparison> {
  const { conf } = context;
  if (conf.mode === "disable") return { operations: [] };
  const prevResult = requirePrevResult(request);
  const own = await readOwnFacts(context, request);
  using pod = openPodNamespace(request.netns);
  const facts = await readRegistryFacts(context, request, pod, own);
  const decision = decide(context, request, pod, prevResult, facts, reportedMac);
  if (decision === undefined) return { operations: [] };
  return { operations: differencesOf(context, request, decision), override: findOverridingFilter(decision.input) };
}

/**
 * Applies what {@link compareAttachment} would return, and returns it. Nothing is changed in a namespace whose interface lacks an address of the attachment:
 * another pod may have the path by now. Rejects as it does, with ApplyError if the kernel refuses, and with CniError 106 for such a namespace.
 */
export async function repairAttachment(context: AttachContext, request: AttachRequest): Promise<readonly Operation[]> {
  const { conf, deps, log } = context;
  if (conf.mode === "disable") return [];
  const prevResult = requirePrevResult(request);
  const own = await readOwnFacts(context, request);
  using pod = openPodNamespace(request.netns);
  const facts = await readRegistryFacts(context, request, pod, own);
  const decision = decide(context, request, pod, prevResult, facts);
  const operations = differencesOf(context, request, decision);
  if (decision === undefined || operations.length === 0) return [];
  requireOwnNamespace(request, decision.input);
  await applyOperations(operations, { pod, host: deps.host }, { remover: deps.remover, faults: deps.faults });
  const about = { container: request.containerId, interface: request.ifName, network: request.netConf.name };
  log.info({ ...about, operations: operations.map(formatOperation) }, "Repaired");
  return operations;
}

function requireOwnNamespace({ netns, ifName }: AttachRequest, { addresses, observed }: PlanInput): void {
  const present = observed.pod.addresses.filter(({ link }) => link === ifName).map(({ prefix }) => prefix.ip);
  const missing = addresses.find((ip) => !present.some((each) => equalIp(each, ip)));
  if (missing === undefined && addresses.length > 0) return;
  const what = missing === undefined ? "an address of the attachment" : formatIp(missing);
  throw new CniError(
    ErrorCode.InterfaceRefused,
    `Interface "${ifName}" in ${netns} does not have ${what}, so another pod may have that namespace by now, and nothing was changed; restart the pod`,
  );
}

function macOf({ netConf: { prevResult }, ifName }: AttachRequest): Mac | undefined {
  const nic = prevResult?.interfaces.find(({ name, sandbox = "" }) => name === ifName && sandbox !== "");
  return parseMac(nic?.mac ?? "");
}

/** Throws CniError 106 that lists the differences in the words of `ip`. */
export async function checkAttachment(context: AttachContext, request: AttachRequest): Promise<void> {
  const { operations } = await compareAttachment(context, request, macOf(request));
  const lines = operations.map(formatOperation);
  if (lines.length === 0) return;
  const more = lines.length > 1 ? ` and ${lines.length - 1} more` : "";
  throw new CniError(
    ErrorCode.InterfaceRefused,
    `Interface "${request.ifName}" is not as ADD left it; restoring it requires "${lines[0] ?? ""}"${more}`,
    { details: lines.join("\n") },
  );
}
