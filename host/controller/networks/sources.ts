/** Watches the sources of a cluster's networks, each as narrowly as the API server allows. A kind that is not installed is looked for again. */

import type { KubeApi, KubeObject } from "../../kubernetes/kube-api.ts";
import { keyOf } from "../../kubernetes/object-key.ts";
import { CONFIG_MAPS, collectionPath, PODS, type Resource } from "../../kubernetes/paths.ts";
import { Reflector, type ReflectorOptions } from "../../kubernetes/reflector.ts";
import type { Log } from "../../lib/log.ts";
import type { Family } from "../../net/ip.ts";
import type { Cache } from "../types.ts";
import type { SourceState } from "./finding.ts";
import {
  COMPONENT_LABEL,
  readCalicoPool,
  readCiliumPool,
  readCiliumSettings,
  readControlPlanePod,
  readKubeadm,
  readServiceCidr,
} from "./read-sources.ts";
import type { Statement } from "./statement.ts";

/** Empty lists: kubeadm-config does not name any. */
export interface KubeadmNetworks {
  readonly podSubnet: readonly Statement[];
  readonly serviceSubnet: readonly Statement[];
}

/** The command line of a static pod of the control plane. */
export interface ControlPlanePod {
  /** `kube-apiserver`, `kube-controller-manager` */
  readonly component: string;
  readonly clusterCidr: readonly Statement[];
  readonly serviceRange: readonly Statement[];
}

export interface CiliumSettings {
  /** `cluster-pool`, `kubernetes`, `multi-pool`, `eni`, …; "" if it is not set. */
  readonly ipam: string;
  /** The enabled families. */
  readonly families: readonly Family[];
  /** Of the whole cluster, in the enabled families. */
  readonly pools: readonly Statement[];
  readonly faults: readonly string[];
}

export interface CiliumPoolStatement extends Statement {
  readonly family: Family;
}

export interface SourceStates {
  readonly serviceCidrs: SourceState<readonly Statement[]>;
  readonly kubeadm: SourceState<KubeadmNetworks>;
  readonly controlPlane: SourceState<ControlPlanePod>;
  /** `crd.projectcalico.org/v1` */
  readonly calico: SourceState<readonly Statement[]>;
  /** `projectcalico.org/v3`: of Calico's own API server, or without the other group. */
  readonly calicoNative: SourceState<readonly Statement[]>;
  readonly cilium: SourceState<CiliumSettings>;
  readonly ciliumPools: SourceState<readonly CiliumPoolStatement[]>;
  readonly nodes: readonly { readonly name: string; readonly podCidrs: readonly string[] }[];
}

export interface SourcesOptions {
  readonly api: KubeApi;
  readonly nodes: Cache<SourceStates["nodes"][number]>;
  readonly log: Log;
  readonly random: () => number;
  /** How often a kind that the server does not know is looked for again: milliseconds. Default: the reflector's. */
  readonly missingKindRetryMs?: number | undefined;
  /** Called when the findings may have changed. */
  readonly onChange: () => void;
}

export interface Sources {
  readonly states: SourceStates;
  /** Whether each source has been complete once. */
  readonly areRead: boolean;
  readonly problems: readonly string[];
  close(): Promise<void>;
}

interface Source<T> {
  readonly place: string;
  readonly reflector: Reflector<T>;
}

type AnyReflector = Pick<Reflector<unknown>, "isSynced" | "problems" | "close">;

/** The namespace of the objects of kubeadm, Cilium and the control plane. */
const SYSTEM = "kube-system";

/** Starts to watch at once. */
export function openSources({ api, nodes, log, random, missingKindRetryMs, onChange }: SourcesOptions): Sources {
  type Own<T> = Pick<ReflectorOptions<T>, "path" | "fieldSelector" | "labelSelector" | "optional"> & {
    readonly place: string;
    readonly read: (object: KubeObject) => T;
  };
  const follow = <T>({ place, read, ...own }: Own<T>): Source<T> => {
    const known = { onChange, onSynced: onChange };
    const reflector = new Reflector<T>({
      api,
      log,
      random,
      missingKindRetryMs,
      name: place,
      keyOf,
      decode: read,
      ...known,
      ...own,
    });
    reflector.start();
    return { place, reflector };
  };
  const configMap = <T>(name: string, read: (object: KubeObject) => T): Source<T> =>
    follow({
      place: `ConfigMap kube-system/${name}`,
      path: collectionPath(CONFIG_MAPS, SYSTEM),
      read,
      fieldSelector: `metadata.name=${name}`,
    });
  const kind = <T>(place: string, resource: Resource, read: (object: KubeObject) => T): Source<T> =>
    follow({ place, path: collectionPath(resource), optional: true, read });
  const sources = {
    serviceCidrs: kind(
      "ServiceCIDR objects",
      { apiVersion: "networking.k8s.io/v1", plural: "servicecidrs" },
      readServiceCidr,
    ),
    kubeadm: configMap("kubeadm-config", readKubeadm),
    controlPlane: follow({
      place: "the control plane's pods",
      path: collectionPath(PODS, SYSTEM),
      read: readControlPlanePod,
      labelSelector: `${COMPONENT_LABEL} in (kube-apiserver,kube-controller-manager)`,
    }),
    calico: kind("Calico's IPPools", { apiVersion: "crd.projectcalico.org/v1", plural: "ippools" }, readCalicoPool),
    calicoNative: kind(
      "Calico's IPPools (projectcalico.org/v3)",
      { apiVersion: "projectcalico.org/v3", plural: "ippools" },
      readCalicoPool,
    ),
    cilium: configMap("cilium-config", readCiliumSettings),
    ciliumPools: kind(
      "CiliumPodIPPools",
      { apiVersion: "cilium.io/v2alpha1", plural: "ciliumpodippools" },
      readCiliumPool,
    ),
  };
  const all: readonly AnyReflector[] = Object.values(sources).map(({ reflector }) => reflector);
  const leave = nodes.subscribe((change) => {
    const now = change.kind === "set" ? change.value.podCidrs : [];
    if (now.join() !== (change.before?.podCidrs ?? []).join()) onChange();
  });
  return {
    get states() {
      const { serviceCidrs, kubeadm, controlPlane, calico, calicoNative, cilium, ciliumPools } = sources;
      return {
        serviceCidrs: stateOf(serviceCidrs),
        kubeadm: stateOf(kubeadm),
        controlPlane: stateOf(controlPlane),
        calico: stateOf(calico),
        calicoNative: stateOf(calicoNative),
        cilium: stateOf(cilium),
        ciliumPools: stateOf(ciliumPools),
        nodes: [...nodes.items.values()],
      };
    },
    get areRead() {
      return all.every(({ isSynced }) => isSynced);
    },
    get problems() {
      return all.flatMap(({ problems }) => problems);
    },
    close: async () => {
      leave();
      await Promise.all(all.map((reflector) => reflector.close()));
    },
  };
}

function stateOf<T>({ place, reflector }: Source<T>): SourceState<T> {
  const { items, isSynced, problems } = reflector;
  return { place, items: [...items.values()], isRead: isSynced, problem: problems[0] };
}
