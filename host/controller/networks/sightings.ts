/**
 * All that is known about a cluster's networks at one moment.
 * Gathered by sources.ts, read by the planners.
 */
import type { Family } from "../../net/ip.ts";
import type { Seen } from "./finding.ts";
import type { Statement } from "./statement.ts";

/** Empty lists: it says nothing. */
export interface KubeadmNetworks {
  readonly podSubnet: readonly Statement[];
  readonly serviceSubnet: readonly Statement[];
}

/** What a static pod of the control plane is started with. */
export interface ControlPlanePod {
  /** `kube-apiserver`, `kube-controller-manager` */
  readonly component: string;
  readonly clusterCidr: readonly Statement[];
  readonly serviceRange: readonly Statement[];
}

export interface CiliumSettings {
  /** `cluster-pool`, `kubernetes`, `multi-pool`, `eni`, …; "" when it does not say. */
  readonly ipam: string;
  /** That are not switched off. */
  readonly families: readonly Family[];
  /** Of the whole cluster, in the families that are on. */
  readonly pools: readonly Statement[];
  readonly faults: readonly string[];
}

export interface CiliumPoolStatement extends Statement {
  readonly family: Family;
}

export interface Sightings {
  readonly serviceCidrs: Seen<readonly Statement[]>;
  readonly kubeadm: Seen<KubeadmNetworks>;
  readonly controlPlane: Seen<ControlPlanePod>;
  /** `crd.projectcalico.org/v1` */
  readonly calico: Seen<readonly Statement[]>;
  /** `projectcalico.org/v3`, of Calico's own API server or without the other group. */
  readonly calicoNative: Seen<readonly Statement[]>;
  readonly cilium: Seen<CiliumSettings>;
  readonly ciliumPools: Seen<readonly CiliumPoolStatement[]>;
  readonly nodes: readonly { readonly name: string; readonly podCidrs: readonly string[] }[];
}
