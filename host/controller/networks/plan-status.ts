/** The status of the Coordinator, from its specification and the sources of the cluster's networks. */
import { INVALID } from "../../findings/conditions.ts";
import { formatPrefix, type Prefix, parsePrefixOrIp } from "../../net/prefix.ts";
import { type Decision, READY } from "../conditions/plan-conditions.ts";
import type { ControlledCoordinator } from "../objects.ts";
import { agree, firstOf, foundIn, type NetworkFinding, unite } from "./finding.ts";
import type { SourceStates } from "./sources.ts";
import { joinPrefixes, readStatements } from "./statement.ts";

/** Longest part of a Coordinator's `status.reason`, which has two: characters. */
export const MAX_FINDING_LENGTH = 480;

interface NetworksStatus {
  readonly phase: "Synced" | "NotReady";
  /** The source of each key; problems come first. */
  readonly reason: string;
  readonly overlayPodCIDR: readonly string[];
  readonly serviceCIDR: readonly string[];
}

export interface PlannedStatus {
  readonly networks: NetworksStatus;
  readonly ready: Decision;
}

type Key = "overlayPodCIDR" | "serviceCIDR";

interface Outcome {
  readonly key: Key;
  readonly isKnown: boolean;
  /** Its source cannot be read yet. */
  readonly isUnread?: boolean;
  readonly text: string;
  readonly networks: readonly string[];
}

/**
 * Returns undefined if a source has not answered yet, but may at any moment. While a source cannot be read, is
 * malformed or contradicts another one, the networks found earlier stay, and agents keep using them. They are removed
 * when all sources name none.
 */
export function planStatus(
  { value, fault, status }: ControlledCoordinator,
  states: SourceStates,
): PlannedStatus | undefined {
  const before = (key: Key): readonly string[] => knownBefore(status[key]);
  if (value === undefined) {
    const networks = { overlayPodCIDR: before("overlayPodCIDR"), serviceCIDR: before("serviceCIDR") };
    const reason = cut(`${INVALID}${fault ?? "unknown reason"}`);
    return notReady({ phase: "NotReady", reason, ...networks }, "InvalidSpecification");
  }
  const { spec } = value;
  const services =
    wanted("serviceCIDR", spec.serviceCIDR) ?? outcomeOf("serviceCIDR", findServiceNetworks(states), before);
  const pods =
    wanted("overlayPodCIDR", spec.overlayPodCIDR) ??
    (spec.podCIDRType === "none"
      ? { key: "overlayPodCIDR" as const, isKnown: true, text: "none, since podCIDRType is none", networks: [] }
      : outcomeOf("overlayPodCIDR", findPodNetworks(spec.podCIDRType, states), before));
  if (services === undefined || pods === undefined) return undefined;
  const both = [services, pods];
  const inOrder = [...both.filter(({ isKnown }) => !isKnown), ...both.filter(({ isKnown }) => isKnown)];
  const reason = inOrder.map(({ key, text }) => `${key}: ${cut(text)}`).join("; ");
  const networks = { reason, overlayPodCIDR: pods.networks, serviceCIDR: services.networks };
  const unknown = both.filter(({ isKnown }) => !isKnown);
  if (unknown.length === 0)
    return { networks: { phase: "Synced", ...networks }, ready: { ...READY, reason: "Synced", message: reason } };
  const isPassing = unknown.every(({ isUnread }) => isUnread);
  return notReady({ phase: "NotReady", ...networks }, isPassing ? "SourceUnread" : "NetworksUnknown", isPassing);
}

/** Returns the status with its condition; `reason` is one word. */
export function notReady(networks: NetworksStatus, reason: string, isPassing = false): PlannedStatus {
  return { networks, ready: { type: "Ready", isTrue: false, reason, message: networks.reason, isPassing } };
}

/** The specification wins; an empty list does not count. */
function wanted(key: Key, networks: readonly Prefix[] = []): Outcome | undefined {
  if (networks.length === 0) return undefined;
  return { key, isKnown: true, text: "as the specification says", networks: networks.map(formatPrefix) };
}

function outcomeOf(key: Key, finding: NetworkFinding, before: (key: Key) => readonly string[]): Outcome | undefined {
  switch (finding.kind) {
    case "found":
      return { key, isKnown: true, text: `of ${finding.place}`, networks: finding.networks.map(formatPrefix) };
    case "absent":
      return { key, isKnown: false, text: `nothing in ${finding.places.join(", ")}`, networks: [] };
    case "wrong":
      return { key, isKnown: false, text: finding.reason, networks: before(key) };
    case "unread": {
      if (finding.problem === undefined) return undefined;
      const text = `${finding.place} cannot be read: ${finding.problem}`;
      return { key, isKnown: false, isUnread: true, text, networks: before(key) };
    }
  }
}

/** The status may have been edited by hand: it counts only if all of it is valid. */
function knownBefore(value: unknown): readonly string[] {
  if (!Array.isArray(value)) return [];
  return value.every((text) => typeof text === "string" && parsePrefixOrIp(text) !== undefined) ? value : [];
}

function cut(text: string): string {
  // The API server would replace half a surrogate pair.
  const whole = text.toWellFormed();
  return whole.length > MAX_FINDING_LENGTH ? `${whole.slice(0, MAX_FINDING_LENGTH - 1)}…`.toWellFormed() : whole;
}

/** Returns whether the object has this status already. */
export function isStatus({ status }: ControlledCoordinator, planned: NetworksStatus): boolean {
  return Object.entries(planned).every(([key, value]) => JSON.stringify(status[key]) === JSON.stringify(value));
}

/** The values of `podCIDRType` without `none`. */
type PodNetworkSource = "auto" | "cluster" | "calico" | "cilium";

function findPodNetworks(source: PodNetworkSource, states: SourceStates): NetworkFinding {
  switch (source) {
    case "cluster":
      return findInCluster(states);
    case "calico":
      return findInCalico(states);
    case "cilium":
      return findInCilium(states);
    case "auto":
      return findAutomatically(states);
  }
}

/** Without either plugin, the cluster's setup counts. With both, the source is unclear. */
function findAutomatically(states: SourceStates): NetworkFinding {
  const calico = findInCalico(states);
  const cilium = findInCilium(states);
  if (calico.kind === "absent" || cilium.kind === "absent") return firstOf(calico, cilium, findInCluster(states));
  if (calico.kind === "unread") return calico;
  if (cilium.kind === "unread") return cilium;
  const reason = `${states.calico.place} and ${states.cilium.place} are both installed; set podCIDRType to the one that counts`;
  return { kind: "wrong", reason };
}

/** Disabled pools count: pods keep their addresses. */
function findInCalico({ calico, calicoNative }: SourceStates): NetworkFinding {
  return firstOf(
    foundIn(calico, (items) => unite(calico.place, items.flat())),
    foundIn(calicoNative, (items) => unite(calicoNative.place, items.flat())),
  );
}

function findInCilium(states: SourceStates): NetworkFinding {
  const { cilium, ciliumPools } = states;
  return foundIn(cilium, ([settings]) => {
    if (settings === undefined) return { kind: "absent", places: [cilium.place] };
    const { ipam, pools, families, faults } = settings;
    const [fault] = faults;
    if (fault !== undefined) return { kind: "wrong", reason: fault };
    const present = (finding: NetworkFinding): NetworkFinding =>
      finding.kind === "absent" ? nothingNamed(ipam, finding) : finding;
    switch (ipam) {
      case "":
      case "cluster-pool":
      case "cluster-pool-v2beta":
        return present(unite(`${cilium.place} (cluster-pool-ipv4-cidr, cluster-pool-ipv6-cidr)`, pools));
      case "kubernetes":
        return present(findInCluster(states));
      case "multi-pool":
        return present(
          foundIn(ciliumPools, (all) =>
            unite(
              ciliumPools.place,
              all.flat().filter(({ family }) => families.includes(family)),
            ),
          ),
        );
      default:
        return {
          kind: "wrong",
          reason: `${cilium.place}: with ipam ${JSON.stringify(ipam)} pods have no networks of their own; set podCIDRType to none`,
        };
    }
  });
}

/** Cilium is installed, so the cluster's setup does not describe its pods. */
function nothingNamed(ipam: string, { places }: { readonly places: readonly string[] }): NetworkFinding {
  return { kind: "wrong", reason: `Cilium with ipam "${ipam}" names no network: nothing in ${places.join(", ")}` };
}

function findInCluster({ kubeadm, controlPlane, nodes }: SourceStates): NetworkFinding {
  return firstOf(
    foundIn(kubeadm, (items) =>
      unite(
        `${kubeadm.place} (networking.podSubnet)`,
        items.flatMap(({ podSubnet }) => podSubnet),
      ),
    ),
    foundIn(controlPlane, (pods) =>
      agree(
        "pods of kube-controller-manager (--cluster-cidr)",
        pods
          .filter(({ component }) => component === "kube-controller-manager")
          .flatMap(({ clusterCidr }) => clusterCidr),
      ),
    ),
    findInNodes(nodes),
  );
}

/** The last resort: a node that joins later may have an unknown range. */
function findInNodes(nodes: SourceStates["nodes"]): NetworkFinding {
  const statements = nodes.flatMap(({ name, podCidrs }) => readStatements(`Node ${name}, spec.podCIDRs`, podCidrs));
  const networks = joinPrefixes(statements.flatMap((statement) => statement.networks));
  const all = {
    place: "the Nodes' own shares (spec.podCIDRs), since no source names the cluster's network",
    networks,
    faults: [],
  };
  const faulty = statements.filter(({ faults }) => faults.length > 0);
  return unite("Nodes (spec.podCIDRs)", faulty.length > 0 ? faulty : [all]);
}

function findServiceNetworks({ serviceCidrs, kubeadm, controlPlane }: SourceStates): NetworkFinding {
  return firstOf(
    foundIn(serviceCidrs, (items) => unite(serviceCidrs.place, items.flat())),
    foundIn(kubeadm, (items) =>
      unite(
        `${kubeadm.place} (networking.serviceSubnet)`,
        items.flatMap(({ serviceSubnet }) => serviceSubnet),
      ),
    ),
    ...["kube-apiserver", "kube-controller-manager"].map((component) =>
      foundIn(controlPlane, (pods) =>
        agree(
          `pods of ${component} (--service-cluster-ip-range)`,
          pods.filter((pod) => pod.component === component).flatMap(({ serviceRange }) => serviceRange),
        ),
      ),
    ),
  );
}
