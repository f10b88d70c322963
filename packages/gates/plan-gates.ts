/**
 * Decides which gated pods are let through: those for which every NIC of Berth's has room in the pools that may serve
 * it on any node, beyond the addresses that others are expected to take. A pod that cannot be judged is let through,
 * and its ADD names the problem.
 */
import { CniError } from "../../host/cni/error.ts";
import { decodePodAnnotations, type PodAnnotations } from "../../host/config/annotations.ts";
import { ConfigError } from "../../host/config/config-error.ts";
import type { IpamConf } from "../../host/config/ipam-conf.ts";
import { definitionOf, META_NAMESPACE, nicNameOf } from "../../host/config/network-selection.ts";
import type { VendorConf } from "../../host/config/vendor-conf.ts";
import { claimedWith } from "../../host/ipam/announced-nics.ts";
import type { FamilyDemand, NicDemand, Subject } from "../../host/ipam/model.ts";
import { noPoolMatches, poolsExhausted } from "../../host/ipam/refusal.ts";
import { findAddressOwner } from "../../host/ipam/retention.ts";
import { selectPools } from "../../host/ipam/selection.ts";
import { byName, compareText } from "../../host/lib/order.ts";
import type { Workload } from "../../host/resources/member.ts";
import type { Namespace } from "../../host/resources/namespace.ts";
import type { PoolsByName } from "../../host/resources/pools-by-name.ts";
import { isReservedFor, ownNames, type ReservedIp } from "../../host/resources/reserved-ip.ts";
import { type GatedPod, isComing } from "./gated-pod.ts";
import type { Promises } from "./promises.ts";

/** The facts about the cluster, as long as no pool, setting, namespace or network changes. */
export interface GatesView {
  readonly pools: PoolsByName;
  /** By name, why other existing pools cannot be used. */
  readonly refused: ReadonlyMap<string, string>;
  readonly reserved: readonly ReservedIp[];
  readonly namespaces: ReadonlyMap<string, Namespace>;
  readonly settings: VendorConf;
  readonly firstNic: string;
  /** Mode of the coordinator: it tells whose NIC is the first. */
  readonly mode: string;
  /** Returns undefined for a definition that is not Berth's, or not known. */
  readonly network: (name: string) => { readonly name: string; readonly ipamConf: IpamConf } | undefined;
  /** Whether an address waits for the member's next pod, now. */
  readonly isKept: (workload: Workload) => boolean;
  /** Addresses of the pool that no allocation has, now. */
  readonly freeIn: (pool: string) => number;
  /** Labels of pods that pools look at. */
  readonly labelKeys: readonly string[];
  readonly known: KnownDemands;
}

interface Hold {
  readonly kind: "hold";
  readonly reason: "NoRoom" | "NoPool" | "InvalidAnnotation";
  readonly message: string;
}

/** `pools`: of the addresses that the pod will take. */
export type GateDecision = { readonly kind: "open"; readonly pools: readonly string[] } | Hold;

const UNJUDGED: GateDecision = { kind: "open", pools: [] };

/** One address that a pod wants. */
interface Demand {
  /** Names of the pools that may serve it. */
  readonly pools: readonly string[];
  /** The answer to the pod while none of them has room. */
  readonly hold: Hold;
}

/** Largest memory of pods' wishes: characters, or pools by four. */
const MAX_KEPT_LENGTH = 8 * 1024 * 1024;

/** Demands of pods with the same annotations, in one view: selecting pools costs a hundred times the rest of a pass. */
export class KnownDemands {
  readonly #byText = new Map<string, readonly Demand[]>();
  #length = 0;

  of(text: string, select: () => readonly Demand[]): readonly Demand[] {
    const known = this.#byText.get(text);
    if (known !== undefined) return known;
    const demands = select();
    this.#length += demands.reduce((sum, { pools, hold }) => sum + 4 * pools.length + hold.message.length, text.length);
    if (this.#length > MAX_KEPT_LENGTH) {
      this.#byText.clear();
      this.#length = 0;
    }
    this.#byText.set(text, demands);
    return demands;
  }
}

/**
 * Returns the function that decides about each pod in a pass: an address that one will take is gone for those after it,
 * unless others hold the pod. `expected`: pools of the addresses that pods will take that were let through before.
 */
export function openPass(view: GatesView, promises: Promises, expected: readonly string[]) {
  /** By pool. */
  const left = new Map<string, number>();
  const held = new Map<readonly Demand[], Hold>();
  const leftIn = (pool: string): number => left.getOrInsertComputed(pool, () => view.freeIn(pool));
  const take = (pools: readonly string[]): void => {
    for (const each of pools) left.set(each, leftIn(each) - 1);
  };
  take(expected);
  return (pod: GatedPod): GateDecision => {
    if (promises.has(pod) || isUnjudged(pod, view)) return UNJUDGED;
    const demands = demandsOf(pod, view);
    const decision = held.get(demands) ?? findPools(demands, leftIn);
    if (decision.kind === "hold") held.set(demands, decision);
    else if (isComing(pod)) {
      take(decision.pools);
      promises.add(pod, decision.pools);
    }
    return decision;
  };
}

/** Finds the first pool with room for each address. */
function findPools(demands: readonly Demand[], leftIn: (pool: string) => number): GateDecision {
  const pools: string[] = [];
  for (const demand of demands) {
    const found = demand.pools.find((name) => leftIn(name) > pools.filter((each) => each === name).length);
    if (found === undefined) return demand.hold;
    pools.push(found);
  }
  return { kind: "open", pools };
}

/**
 * Returns the pods in the order in which they are decided about, without those that are being deleted: first those that
 * were let through, then the oldest of each namespace, then the next of each. `served`: by namespace, the higher the
 * later a pod of it was let through.
 */
export function inTurn(pods: Iterable<GatedPod>, served: ReadonlyMap<string, number>): GatedPod[] {
  const counts = new Map<string, number>();
  const turnOf = ({ namespace }: GatedPod): number => {
    counts.set(namespace, (counts.get(namespace) ?? 0) + 1);
    return counts.get(namespace) ?? 0;
  };
  // The API server tells the second in which a pod was made.
  return [...pods]
    .filter(({ deleting }) => !deleting)
    .sort((a, b) => compareText(a.created, b.created) || byName(a, b))
    .map((pod) => ({ pod, turn: turnOf(pod), served: served.get(pod.namespace) ?? 0 }))
    .sort((a, b) => Number(a.pod.hasGate) - Number(b.pod.hasGate) || a.turn - b.turn || a.served - b.served)
    .map(({ pod }) => pod);
}

/**
 * A pod of the node's network needs no address; a virtual machine's are those of another pod at times, and a member
 * may have an address, or a ReservedIP one for the pod. Of a pod that did not fit, nothing is known.
 */
function isUnjudged(pod: GatedPod, { settings, isKept, reserved }: GatesView): boolean {
  if (pod.isReduced === true || pod.hostNetwork) return true;
  const own = ownNames(pod.namespace, pod.name);
  if (reserved.some((each) => isReservedFor(each, own))) return true;
  const owner = findAddressOwner(pod, settings);
  return owner?.kind === "run" || (owner !== undefined && isKept(owner.workload));
}

/** Empty for a pod that is let through unseen. */
function demandsOf(pod: GatedPod, view: GatesView): readonly Demand[] {
  const labels = view.labelKeys.map((key) => pod.labels[key]);
  return view.known.of(pod.asks + JSON.stringify(labels), () => {
    try {
      const annotations = decodePodAnnotations(pod.annotations, view.settings);
      const nics = isAsking(pod, annotations, view.settings) ? [] : nicDemandsOf(pod, annotations, view);
      return nics.flatMap((nic) => nic.families.map((demand) => demandOf(nics, nic, demand)));
    } catch (error) {
      const reason = error instanceof ConfigError ? "InvalidAnnotation" : "NoPool";
      if (error instanceof ConfigError || error instanceof CniError)
        return [{ pools: [], hold: { kind: "hold", reason, message: error.message } }];
      throw error;
    }
  });
}

/** Whether it is a pod of Subnets, whose pool follows its workload, or asks for addresses by name or by a claim. */
function isAsking({ namespace, name }: GatedPod, annotations: PodAnnotations, { enableSubnet }: VendorConf): boolean {
  const { subnet, subnets, networks, ips } = annotations;
  if (enableSubnet && (subnet !== undefined || subnets !== undefined)) return true;
  if (ips instanceof Map ? ownNames(namespace, name).names.some((each) => ips.has(each)) : ips !== undefined)
    return true;
  return networks?.some(({ isAsking, claim }) => isAsking === true || claim !== undefined) === true;
}

interface Nic extends Pick<Subject, "ifName" | "network" | "networkNames" | "ipamConf"> {}

function nicDemandsOf(pod: GatedPod, annotations: PodAnnotations, view: GatesView): NicDemand[] {
  const { namespace, name, labels } = pod;
  const common = {
    node: undefined,
    pod: { namespace, name, labels, annotations },
    namespace: view.namespaces.get(namespace),
    firstNic: view.firstNic,
    vendorConf: view.settings,
  };
  const found = nicsOf(pod, annotations, view).flatMap((nic) => {
    const isClaimed = claimedWith(nic.ifName, annotations, view.firstNic);
    return selectPools({ ...common, ...nic }, view.pools, view.refused).nics.filter(({ ifName }) => isClaimed(ifName));
  });
  return found.filter((nic, at) => found.findIndex(({ ifName }) => ifName === nic.ifName) === at);
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

function demandOf(nics: readonly NicDemand[], nic: NicDemand, demand: FamilyDemand): Demand {
  const pools = demand.candidates.flatMap(({ name, refusal }) => (refusal === undefined ? [name] : []));
  const reasons = new Map(pools.map((name) => [name, "has no free address"]));
  const [reason, { message }] =
    pools.length === 0
      ? (["NoPool", noPoolMatches({ nics, nic, demand })] as const)
      : (["NoRoom", poolsExhausted({ nics, nic, demand, reasons })] as const);
  return { pools, hold: { kind: "hold", reason, message } };
}
