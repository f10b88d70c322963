/** Distributions of Kubernetes whose runtimes have directories of their own. */

/** The directories of a runtime on its node. */
export interface CniDirectories {
  readonly confDirectory: string;
  readonly binDirectory: string;
}

/** By the name that the chart's value `platform` has; `mark` is on their nodes alone. */
export const PLATFORMS: Readonly<Record<string, CniDirectories & { readonly mark: string }>> = {
  k3s: {
    mark: "/var/lib/rancher/k3s",
    confDirectory: "/var/lib/rancher/k3s/agent/etc/cni/net.d",
    binDirectory: "/var/lib/rancher/k3s/data/cni",
  },
  openshift: {
    mark: "/etc/kubernetes/cni/net.d",
    confDirectory: "/etc/kubernetes/cni/net.d",
    binDirectory: "/var/lib/cni/bin",
  },
  microk8s: {
    mark: "/var/snap/microk8s/current",
    confDirectory: "/var/snap/microk8s/current/args/cni-network",
    binDirectory: "/var/snap/microk8s/current/opt/cni/bin",
  },
};
