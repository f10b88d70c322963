/**
 * Where the cluster's pod networks are told: by the network plugin that is there, else by what the cluster was set up with.
 */
import { agree, type Finding, firstOf, foundIn, unite } from "./finding.ts";
import type { Sightings } from "./sightings.ts";
import { joinPrefixes, readStatements } from "./statement.ts";

/** Of `podCIDRType`, without `none`. */
export type PodNetworkSource = "auto" | "cluster" | "calico" | "cilium";

export function findPodNetworks(source: PodNetworkSource, sightings: Sightings): Finding {
  switch (source) {
    case "cluster":
      return findOfCluster(sightings);
    case "calico":
      return findOfCalico(sightings);
    case "cilium":
      return findOfCilium(sightings);
    case "auto":
      return findOfWhatIsThere(sightings);
  }
}

/** A cluster with neither of them has what it was set up with. Both at once: nobody knows whose pods are meant. */
function findOfWhatIsThere(sightings: Sightings): Finding {
  const calico = findOfCalico(sightings);
  const cilium = findOfCilium(sightings);
  if (calico.kind === "absent" || cilium.kind === "absent") {
    const plugin = firstOf(calico, cilium);
    return plugin.kind === "absent" ? firstOf(plugin, findOfCluster(sightings)) : plugin;
  }
  if (calico.kind === "unread") return calico;
  if (cilium.kind === "unread") return cilium;
  const reason = `${sightings.calico.place} and ${sightings.cilium.place} are both there; podCIDRType can say which one counts`;
  return { kind: "wrong", reason };
}

/** Pools that are disabled count: pods keep the addresses that they have of them. */
function findOfCalico({ calico, calicoNative }: Sightings): Finding {
  return firstOf(
    foundIn(calico, (items) => unite(calico.place, items.flat())),
    foundIn(calicoNative, (items) => unite(calicoNative.place, items.flat())),
  );
}

function findOfCilium(sightings: Sightings): Finding {
  const { cilium, ciliumPools } = sightings;
  return foundIn(cilium, ([settings]) => {
    if (settings === undefined) return { kind: "absent", places: [cilium.place] };
    const { ipam, pools, families, faults } = settings;
    const [fault] = faults;
    if (fault !== undefined) return { kind: "wrong", reason: fault };
    const present = (finding: Finding): Finding => (finding.kind === "absent" ? nothingNamed(ipam, finding) : finding);
    switch (ipam) {
      case "":
      case "cluster-pool":
      case "cluster-pool-v2beta":
        return present(unite(`${cilium.place} (cluster-pool-ipv4-cidr, cluster-pool-ipv6-cidr)`, pools));
      case "kubernetes":
        return present(findOfCluster(sightings));
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
          reason: `${cilium.place}: with ipam ${JSON.stringify(ipam)} pods have no networks of their own; podCIDRType none collects nothing`,
        };
    }
  });
}

/** Cilium is there: what the cluster was set up with is not what its pods have. */
function nothingNamed(ipam: string, { places }: { readonly places: readonly string[] }): Finding {
  return { kind: "wrong", reason: `Cilium with ipam "${ipam}" names no network: nothing in ${places.join(", ")}` };
}

function findOfCluster({ kubeadm, controlPlane, nodes }: Sightings): Finding {
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
    findOfNodes(nodes),
  );
}

/** The last resort: a node that comes later may have a share that nobody has heard of yet. */
function findOfNodes(nodes: Sightings["nodes"]): Finding {
  const statements = nodes.flatMap(({ name, podCidrs }) => readStatements(`Node ${name}, spec.podCIDRs`, podCidrs));
  const networks = joinPrefixes(statements.flatMap((statement) => statement.networks));
  const all = { place: "the Nodes' own shares (spec.podCIDRs), since nothing tells the whole", networks, faults: [] };
  const faulty = statements.filter(({ faults }) => faults.length > 0);
  return unite("Nodes (spec.podCIDRs)", faulty.length > 0 ? faulty : networks.length === 0 ? [] : [all]);
}
