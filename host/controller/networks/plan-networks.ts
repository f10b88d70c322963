/**
 * Which sources tell the cluster's pod and service networks. Pod networks come from the installed network plugin,
 * else from the cluster's setup; service networks from ServiceCIDR objects, which Kubernetes 1.33 and newer have,
 * else from the setup as well.
 */
import { agree, firstOf, foundIn, type NetworkFinding, unite } from "./finding.ts";
import type { SourceStates } from "./sources.ts";
import { joinPrefixes, readStatements } from "./statement.ts";

/** The values of `podCIDRType` without `none`. */
type PodNetworkSource = "auto" | "cluster" | "calico" | "cilium";

export function findPodNetworks(source: PodNetworkSource, states: SourceStates): NetworkFinding {
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

/** Without either plugin, the cluster's setup counts. With both, it is unclear which one counts. */
function findAutomatically(states: SourceStates): NetworkFinding {
  const calico = findInCalico(states);
  const cilium = findInCilium(states);
  if (calico.kind === "absent" || cilium.kind === "absent") return firstOf(calico, cilium, findInCluster(states));
  if (calico.kind === "unread") return calico;
  if (cilium.kind === "unread") return cilium;
  const reason = `${states.calico.place} and ${states.cilium.place} are both installed; set podCIDRType to the one that counts`;
  return { kind: "wrong", reason };
}

/** Disabled pools count: pods keep the addresses that they have of them. */
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

/** The last resort: a node that joins later may have a range that is not known yet. */
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

export function findServiceNetworks({ serviceCidrs, kubeadm, controlPlane }: SourceStates): NetworkFinding {
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
