/**
 * Which gated pods are let through: those for which every NIC of Berth's has room in the pools that it selects, after
 * those let through before. What cannot be judged is let through, and its ADD says what is wrong.
 */
import { CniError } from "../../cni/error.ts";
import { decodeNamespaceAnnotations, decodePodAnnotations, type PodAnnotations } from "../../config/annotations.ts";
import { ConfigError } from "../../config/config-error.ts";
import type { IpamConf } from "../../config/ipam-conf.ts";
import { type LabelSelector, type Labels, matchLabels } from "../../config/label-selector.ts";
import { definitionOf, META_NAMESPACE, nicNameOf } from "../../config/network-selection.ts";
import type { VendorConf } from "../../config/vendor-conf.ts";
import { claimedWith } from "../../ipam/announced-nics.ts";
import type { FamilyDemand, NicDemand, Subject } from "../../ipam/model.ts";
import { noPoolMatches, poolsExhausted } from "../../ipam/refusal.ts";
import { findAddressOwner } from "../../ipam/retention.ts";
import { selectPools } from "../../ipam/selection.ts";
import type { IpPool } from "../../resources/ip-pool.ts";
import type { Workload } from "../../resources/member.ts";
import type { Namespace } from "../../resources/namespace.ts";
import type { GatedPod } from "./gated-pod.ts";

/** What is known of the cluster. */
export interface GatesView {
  readonly pools: ReadonlyMap<string, IpPool>;
  /** By name, why other existing pools cannot be used. */
  readonly refused: ReadonlyMap<string, string>;
  readonly namespaces: ReadonlyMap<string, Namespace>;
  readonly settings: VendorConf;
  readonly firstNic: string;
  /** Mode of the coordinator: who provides the first NIC. */
  readonly mode: string;
  /** Returns undefined for a definition that is not Berth's, or not known. */
  readonly network: (name: string) => { readonly name: string; readonly ipamConf: IpamConf } | undefined;
  readonly nodes: Iterable<NodeLabels>;
  /** Whether the member has a retained address. */
  readonly isKept: (workload: Workload) => boolean;
  /** Addresses of the pool that no allocation has, and no pod that was let through waits for. */
  readonly freeIn: (pool: string) => number;
}

interface NodeLabels {
  readonly name: string;
  readonly labels: Labels;
}

export type GateDecision =
  /** `pools`: of the addresses that it will take. */
  | { readonly kind: "open"; readonly pools: readonly string[] }
  | { readonly kind: "hold"; readonly reason: "NoRoom" | "NoPool" | "InvalidAnnotation"; readonly message: string };

const UNJUDGED: GateDecision = { kind: "open", pools: [] };

interface Nic extends Pick<Subject, "ifName" | "network" | "networkNames" | "ipamConf"> {}

/** Decides about one pod; what the pools of its decision have is less for the next. */
export function decideGate(pod: GatedPod, view: GatesView): GateDecision {
  if (pod.isReduced === true) return UNJUDGED;
  try {
    const annotations = decodePodAnnotations(pod.annotations, view.settings);
    const nics = isJudged(pod, annotations, view) ? nicsOf(pod, annotations, view) : [];
    if (nics.length === 0) return UNJUDGED;
    let worst: GateDecision = UNJUDGED;
    for (const node of placesOf(pod, view)) {
      const decision = decideOn(node, nics, { pod, annotations, view });
      if (decision.kind === "open") return decision;
      // Pools of other nodes say less than one that is full.
      if (worst.kind === "open" || decision.reason === "NoRoom") worst = decision;
    }
    return worst;
  } catch (error) {
    if (error instanceof ConfigError) return { kind: "hold", reason: "InvalidAnnotation", message: error.message };
    if (error instanceof CniError) return { kind: "hold", reason: "NoPool", message: error.message };
    throw error;
  }
}

/**
 * Not: a pod of Subnets, whose pool follows its workload; one that asks for addresses by name or by a claim; a virtual
 * machine; a member that has an address.
 */
function isJudged(
  pod: GatedPod,
  { subnet, subnets, networks }: PodAnnotations,
  { settings, isKept }: GatesView,
): boolean {
  if (settings.enableSubnet && (subnet !== undefined || subnets !== undefined)) return false;
  if (networks?.some(({ isAsking, claim }) => isAsking === true || claim !== undefined)) return false;
  const owner = findAddressOwner(pod, settings);
  return owner.kind === "none" || (owner.kind === "workload" && !isKept(owner.workload));
}

/**
 * The first NIC counts as Berth's unless a coordinator or a second network of Berth's tells that another provides it.
 */
function nicsOf(
  { namespace: home }: GatedPod,
  { networks = [], defaultNetwork }: PodAnnotations,
  view: GatesView,
): Nic[] {
  const served = (ifName: string, definition: string): Nic[] => {
    const found = view.network(definition);
    if (found === undefined) return [];
    const short = definition.slice(definition.indexOf("/") + 1);
    return [{ ifName, network: found.name, networkNames: [found.name, definition, short], ipamConf: found.ipamConf }];
  };
  const others = networks.flatMap((each, index) => served(nicNameOf(each, index), definitionOf(each, home)));
  if (defaultNetwork !== undefined)
    return [...served(view.firstNic, definitionOf(defaultNetwork, META_NAMESPACE)), ...others];
  const isFirst = view.mode === "underlay" || (view.mode !== "overlay" && others.length === 0);
  return isFirst ? [{ ifName: view.firstNic, network: "", ipamConf: { type: "berth" } }, ...others] : others;
}

/** One node of each kind that pools tell apart, of those that the pod selects; any if there are none. */
function* placesOf({ nodeSelector }: GatedPod, { pools, nodes }: GatesView): Generator<NodeLabels> {
  const bound = [...pools.values()].filter(({ spec }) => spec.nodeName.length > 0 || spec.nodeAffinity !== undefined);
  const selector: LabelSelector = { matchLabels: nodeSelector, matchExpressions: [] };
  const seen = new Set<string>();
  for (const { name, labels: own } of bound.length === 0 ? [] : nodes) {
    const labels = { "kubernetes.io/hostname": name, ...own };
    if (!matchLabels(selector, labels)) continue;
    const serving = bound.filter(({ spec: { nodeName, nodeAffinity } }) =>
      nodeName.length > 0 ? nodeName.includes(name) : nodeAffinity !== undefined && matchLabels(nodeAffinity, labels),
    );
    const kind = serving.map((pool) => pool.name).join();
    if (seen.has(kind)) continue;
    seen.add(kind);
    yield { name, labels };
  }
  if (seen.size === 0) yield { name: "", labels: nodeSelector };
}

interface PodContext {
  readonly pod: GatedPod;
  readonly annotations: PodAnnotations;
  readonly view: GatesView;
}

function decideOn(node: NodeLabels, nics: readonly Nic[], { pod, annotations, view }: PodContext): GateDecision {
  const { namespace, name, labels } = pod;
  const home = view.namespaces.get(namespace);
  const common = {
    node,
    pod: { namespace, name, labels, annotations },
    namespace: home && {
      labels: home.labels,
      annotations: decodeNamespaceAnnotations(home.annotations, view.settings),
    },
    firstNic: view.firstNic,
    vendorConf: view.settings,
  };
  const demands = new Map<string, NicDemand>();
  for (const nic of nics) {
    const isClaimed = claimedWith(nic.ifName, annotations, view.firstNic);
    for (const demand of selectPools({ ...common, ...nic }, view.pools, view.refused).nics)
      if (isClaimed(demand.ifName) && !demands.has(demand.ifName)) demands.set(demand.ifName, demand);
  }
  return take([...demands.values()], view.freeIn);
}

/** Takes an address of the first pool with room for each NIC and family. */
function take(nics: readonly NicDemand[], freeIn: GatesView["freeIn"]): GateDecision {
  const pools: string[] = [];
  for (const nic of nics)
    for (const demand of nic.families) {
      const found = usableOf(demand).find((name) => freeIn(name) > pools.filter((each) => each === name).length);
      if (found === undefined) return refuse(nics, nic, demand);
      pools.push(found);
    }
  return { kind: "open", pools };
}

function usableOf({ candidates }: FamilyDemand): string[] {
  return candidates.flatMap(({ name, refusal }) => (refusal === undefined ? [name] : []));
}

function refuse(nics: readonly NicDemand[], nic: NicDemand, demand: FamilyDemand): GateDecision {
  const usable = usableOf(demand);
  if (usable.length === 0) return { kind: "hold", reason: "NoPool", message: noPoolMatches(nics, nic, demand).message };
  const shortages = new Map(usable.map((name) => [name, "has no free address"]));
  return { kind: "hold", reason: "NoRoom", message: poolsExhausted(nics, nic, demand, shortages).message };
}
