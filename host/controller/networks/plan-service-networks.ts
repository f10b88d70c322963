/**
 * Where the cluster's service networks are told. ServiceCIDR objects are the truth where there are any (Kubernetes 1.33 and newer); what
 * the cluster was set up with comes after them.
 */
import { agree, type Finding, firstOf, foundIn, unite } from "./finding.ts";
import type { Sightings } from "./sightings.ts";

export function findServiceNetworks({ serviceCidrs, kubeadm, controlPlane }: Sightings): Finding {
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
