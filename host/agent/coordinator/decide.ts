/**
 * Observes the pod and its node, and decides about one of the pod's NICs: for ADD, CHECK and repairs.
 * Effects: reads of both namespaces.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type AttachRequest, requestedMac } from "../../cni/request.ts";
import type { CniResult } from "../../cni/result.ts";
import type { CoordinatorConf } from "../../config/coordinator-settings.ts";
import { findMac, losesMainRoutes, type PlacedEntry, takesMac } from "../../config/network-definition.ts";
import type { Announcement } from "../../coordinator/announcer.ts";
import { formatAlias } from "../../coordinator/plan/alias.ts";
import { hasFormerMac, recordFormerMac } from "../../coordinator/plan/former-mac.ts";
import { decideMode, type Mode } from "../../coordinator/plan/mode.ts";
import { isNoNic, nameVeth } from "../../coordinator/plan/names.ts";
import { hostTablesOf, includesIp } from "../../coordinator/plan/own-objects.ts";
import { planAttachment } from "../../coordinator/plan/plan-attachment.ts";
import type { AttachedNic, PlanInput, RoutableAddresses } from "../../coordinator/plan/plan-input.ts";
import { planMac } from "../../coordinator/plan/plan-mac.ts";
import { withoutForeignRoutes } from "../../coordinator/plan/plan-nics.ts";
import { ignoreLaterChanges } from "../../coordinator/plan-check.ts";
import { announcedNics } from "../../ipam/announced-nics.ts";
import { findNamed } from "../../ipam/requested-ips.ts";
import { readFirstLinkNames } from "../../kernel/link-names.ts";
import { IFA_F_DADFAILED, IFA_F_TENTATIVE } from "../../kernel/netlink/address/constants.ts";
import { findLinkName } from "../../kernel/netlink/link/requests.ts";
import type { OpenNamespace } from "../../kernel/open-namespace.ts";
import type { Log } from "../../lib/log.ts";
import type { Ip } from "../../net/ip.ts";
import type { Mac } from "../../net/mac.ts";
import { diffPlan } from "../../plan/diff.ts";
import type { Operation } from "../../plan/operation.ts";
import type { LinkState, NamespaceState } from "../../plan/state.ts";
import type { Allocation, Attachment } from "../../registry/registry.ts";
import { ownNames } from "../../resources/reserved-ip.ts";
import { identifyRequest, type PodIdentity } from "../ipam/pod-identity.ts";
import { pluginsOfNic } from "../request/nic-definition.ts";
import type { AttachmentFacts } from "./attachments.ts";
import type { LateDetectionDeps } from "./late-detection.ts";
import { addressesOf, knownAddresses, observeHost, observePod } from "./observe.ts";
import type { ClusterNetworks, CoordinatorDeps } from "./settings.ts";

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

export interface Decision {
  readonly operations: readonly Operation[];
  readonly warnings: readonly string[];
  readonly input: PlanInput;
  readonly mode: Mode;
  readonly identity: { readonly namespace: string; readonly pod: string };
}

/** Returns the MAC that the pod requests for the NIC, and the words. Throws CniError 7 for a malformed one. */
function findRequestedMac(
  { deps }: AttachContext,
  request: AttachRequest,
  link: LinkState,
  plugins: readonly PlacedEntry[],
  named: Mac | undefined,
): { readonly mac: Mac; readonly by: string } | undefined {
  const { requested, found } = deps.answered.macOf(request) ?? {};
  const own = requestedMac(request) ?? requested ?? named;
  if (own !== undefined) return { mac: own, by: "the pod" };
  const defined = findMac(plugins);
  if (defined !== undefined) return { mac: defined.mac, by: `the plugin "${defined.type}" of the network` };
  const pair = nameVeth(request.containerId);
  const isSet = found !== undefined && link.mac !== found && !hasFormerMac(link, { pair, ifName: request.ifName });
  return isSet && link.mac !== undefined ? { mac: link.mac, by: "a plugin before the coordinator" } : undefined;
}

/**
 * Returns the MAC address that podMACPrefix, or the pod's own request, demands for the NIC. A later plugin may have
 * set another one: CHECK demands the `reported` one of the chain's result; without it nothing, unless the coordinator
 * has certainly set the present one.
 */
function demandMac(
  context: AttachContext,
  request: AttachRequest,
  link: LinkState,
  { addresses, subject, named, reported }: MacQuestion,
): { readonly mac?: Mac | undefined; readonly warnings: readonly string[] } {
  const { conf, deps } = context;
  const { podMACPrefix: prefix } = conf;
  const { command, ifName, containerId, netConf } = request;
  if (prefix === "" && named === undefined) return { warnings: [] };
  if (reported !== undefined) return { mac: reported, warnings: [] };
  const plugins = pluginsOfNic(deps.definitions, { ifName, network: netConf.name, pod: subject });
  if (command === "CHECK") {
    const isOurs = hasFormerMac(link, { pair: nameVeth(containerId), ifName });
    const isJudged = isOurs && findMac(plugins) === undefined && !takesMac(plugins);
    return {
      mac: isJudged ? planMac(prefix, link, addresses, requestedMac(request) ?? named) : undefined,
      warnings: [],
    };
  }
  const requested = findRequestedMac(context, request, link, plugins, named);
  const mac = planMac(prefix, link, addresses, requested?.mac);
  if (requested === undefined || prefix === "") return { mac, warnings: [] };
  const text = `podMACPrefix "${prefix}" is not applied to interface "${ifName}": ${requested.by} requests the MAC address ${requested.mac}`;
  return { mac, warnings: [text] };
}

interface MacQuestion {
  readonly addresses: readonly Ip[];
  readonly subject: PodIdentity["subject"];
  /** By the annotation `ips`. */
  readonly named: Mac | undefined;
  readonly reported: Mac | undefined;
}

/**
 * Returns the changes that the request needs; undefined in mode `disable`. Synchronous, so that nothing changes
 * between observing and applying.
 */
export function decide(
  context: AttachContext,
  request: AttachRequest,
  pod: OpenNamespace,
  prevResult: CniResult,
  facts: RegistryFacts,
  reportedMac?: Mac,
): Decision | undefined {
  const { deps, conf, networks } = context;
  const { containerId, ifName, netConf } = request;
  const { owner, namespace, name, subject, workload } = facts.pod;
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
  const own = ownNames(namespace, name, workload?.member);
  const entries = findNamed(subject?.annotations.ips, { own, ifName, firstNic: first });
  const named = entries.find(({ mac }) => mac !== undefined)?.mac;
  const demand = link && demandMac(context, request, link, { addresses, subject, named, reported: reportedMac });
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
    gateways: deps.host.mirror.read().gateways,
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

/** Returns the name of the pod's link with this alternative name; the name itself if it is a link's, or free. */
function linkNameIn({ route }: OpenNamespace, { links }: NamespaceState, name: string): string {
  const isKnown = name === "" || links.some((link) => link.name === name);
  return isKnown ? name : (findLinkName(route, name) ?? name);
}

/**
 * Time for which an ADD waits until the kernel has probed the NIC's IPv6 addresses: milliseconds. Most main plugins
 * have done so.
 */
const MAX_DUPLICATE_DETECTION_MS = 5_000;

/** Interval at which an ADD looks whether the kernel has probed the addresses: milliseconds. */
const LOOK_MS = 20;

function isProbing({ ifName, addresses, observed }: PlanInput): boolean {
  return observed.pod.addresses.some(
    ({ link, prefix, flags }) =>
      link === ifName &&
      (flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)) === IFA_F_TENTATIVE &&
      includesIp(addresses, prefix.ip),
  );
}

/**
 * Decides once the kernel has probed the NIC's addresses, or takes too long: it refuses routes from an address that
 * it is probing.
 */
export async function decideWhenProbed(
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

/**
 * The default route moves when its NIC is attached. If no annotation announces that NIC, nothing else would report
 * that it never came.
 */
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

/** Facts about the pod and its NICs that are read before anything is decided. */
interface RegistryFacts {
  readonly pod: PodIdentity;
  readonly isFirstNicBerth: boolean;
  readonly routable: RoutableAddresses | undefined;
  readonly attached: readonly AttachedNic[];
}

/** Returns the plugins of the request's network. */
export function findPlugins(
  { definitions }: Pick<CoordinatorDeps, "definitions">,
  { netConf: { name: network }, ifName }: AttachRequest,
  { subject }: PodIdentity,
): readonly PlacedEntry[] {
  return pluginsOfNic(definitions, { ifName, network, pod: subject });
}

/** The registry's addresses of one NIC of the pod. */
interface BoundNic {
  readonly ifName: string;
  readonly rows: readonly Allocation[];
}

async function findBound({ registry }: Pick<CoordinatorDeps, "registry">, nic: Attachment): Promise<BoundNic> {
  const found = await registry.findAttachment(nic);
  return { ifName: nic.ifName, rows: found.filter(({ state }) => state === "Bound") };
}

/**
 * Returns the pod, and the addresses that Berth allocated to the NIC. CHECK passes no signal: it does not ask the API
 * server, and does not fail for pods unknown to the watch.
 */
export function readOwnFacts(
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

/** Returns the addresses that Berth allocated to the NIC, and networks that the administrator allows besides. */
export function routableOf({ deps }: Pick<AttachContext, "deps">, { rows }: BoundNic): RoutableAddresses {
  return {
    allocated: rows.map(({ ip, prefixLength }) => ({ ip, length: prefixLength })),
    allowed: deps.snapshot().vendorConf.hostRouteCIDR,
  };
}

/** Adds the known facts about the pod's other NICs; a pod with one NIC costs no question. */
export async function readRegistryFacts(
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
    if (row === undefined) return [];
    const nic = { ifName: name, network: row.network, pod: pod.subject };
    const { isCoordinated, settings } = deps.definitions.definitionOf(nic);
    if (!isCoordinated || settings.mode === "disable") return [];
    return [{ ifName: name, addresses: rows.map(({ ip }) => ip), conf: settings }];
  };
  return {
    pod,
    isFirstNicBerth: others.some((nic) => nic.ifName === conf.podDefaultCniNic && nic.rows.length > 0),
    routable: command === "ADD" ? routableOf({ deps }, own) : undefined,
    attached: [{ ifName, addresses: own.rows.map(({ ip }) => ip), conf }, ...others.flatMap(attachedOf)],
  };
}
