/**
 * The NICs that a pod announces: the first one, and those of its list of networks, each with its network
 * (Kubernetes Network Custom Resource Definition De-facto Standard, sections 4 and 5).
 * Effects: reads the node's CNI directory.
 */
import type { PodAnnotations } from "../../config/annotations.ts";
import type { IpamConf } from "../../config/ipam-conf.ts";
import { findIpamConf, type PlacedEntry } from "../../config/network-definition.ts";
import type { NetworkSelection } from "../../config/network-selection.ts";
import type { AnnouncedNic } from "../../ipam/plan-prefetch.ts";
import type { Snapshot } from "../../resources/snapshot.ts";
import { firstNicOf } from "../ipam/subject.ts";
import type { ClusterDefinitions, Network } from "./networks.ts";

export interface NicPlan extends AnnouncedNic {
  /** `namespace/name` of the NetworkAttachmentDefinition; undefined: a definition of the node itself. */
  readonly attachment: string | undefined;
  /** Of the network's definition; none when no definition is known. */
  readonly plugins: readonly PlacedEntry[];
}

/** In the order in which they are attached. */
export function describeNics(
  pod: { readonly namespace: string; readonly annotations: PodAnnotations },
  snapshot: Pick<Snapshot, "coordinator">,
  definitions: Pick<ClusterDefinitions, "attached" | "defaultNetwork" | "metaNamespace">,
): NicPlan[] {
  const { defaultNetwork, networks = [] } = pod.annotations;
  const ifName = firstNicOf(snapshot);
  const attach = (selection: NetworkSelection, home: string, nic: string): NicPlan => {
    const { namespace = home, name, isAsking = false } = selection;
    return planOf(nic, definitions.attached(namespace, name), { attachment: `${namespace}/${name}`, name, isAsking });
  };
  const first =
    defaultNetwork === undefined
      ? planOf(ifName, definitions.defaultNetwork(), { attachment: undefined, name: "", isAsking: false })
      : attach(defaultNetwork, definitions.metaNamespace, ifName);
  const others = networks.map((each, index) => attach(each, pod.namespace, each.interface ?? `net${index + 1}`));
  return [first, ...others];
}

interface Announced {
  readonly attachment: string | undefined;
  readonly name: string;
  readonly isAsking: boolean;
}

function planOf(ifName: string, network: Network | undefined, { attachment, name, isAsking }: Announced): NicPlan {
  const { plugins = [] } = network ?? {};
  return {
    ...{ ifName, attachment, plugins },
    network: network?.name ?? name,
    ipamConf: ipamOf(plugins),
    isAsking: isAsking || plugins.some(({ entry }) => asksByName(entry.args)),
  };
}

/** Without Berth, or with an object that the ADD will refuse, there is nothing to claim ahead. */
function ipamOf(plugins: readonly PlacedEntry[]): IpamConf | undefined {
  try {
    return findIpamConf(plugins);
  } catch {
    return undefined;
  }
}

/** `args.cni.ips` of a plugin. */
function asksByName(args: unknown): boolean {
  const cni = typeof args === "object" && args !== null && "cni" in args ? args.cni : undefined;
  return typeof cni === "object" && cni !== null && "ips" in cni;
}
