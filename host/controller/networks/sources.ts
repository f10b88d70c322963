/**
 * The sources of a cluster's networks: one watch for each, as narrow as the API server allows. A kind that is not there is looked for again.
 * Opened by keep-status.ts.
 * Effects: lists and watches.
 */
import type { KubeApi, KubeObject } from "../../kubernetes/kube-api.ts";
import { keyOf } from "../../kubernetes/object-key.ts";
import { Reflector, type ReflectorOptions } from "../../kubernetes/reflector.ts";
import type { Log } from "../../lib/log.ts";
import type { Cache } from "../types.ts";
import type { Seen } from "./finding.ts";
import type { Sightings } from "./sightings.ts";
import { readCalicoPool } from "./sources/calico-pool.ts";
import { readCiliumPool, readCiliumSettings } from "./sources/cilium.ts";
import { COMPONENT_LABEL, readControlPlanePod } from "./sources/control-plane-pod.ts";
import { readKubeadm } from "./sources/kubeadm.ts";
import { readServiceCidr } from "./sources/service-cidr.ts";

export interface SourcesOptions {
  readonly api: KubeApi;
  readonly nodes: Cache<Sightings["nodes"][number]>;
  readonly log: Log;
  readonly random: () => number;
  /** How often a kind that the server does not know is looked for again: milliseconds. Default: as the reflector has it. */
  readonly missingLookMs?: number | undefined;
  /** Something may be said now that was not. */
  readonly onChange: () => void;
}

export interface Sources {
  readonly sightings: Sightings;
  /** Whether each of them has been complete once. */
  readonly areRead: boolean;
  readonly problems: readonly string[];
  close(): Promise<void>;
}

interface Source<T> {
  readonly place: string;
  readonly reflector: Reflector<T>;
}

type AnyReflector = Pick<Reflector<unknown>, "isSynced" | "problems" | "close">;

/** Where kubeadm, Cilium and the control plane have their objects. */
const SYSTEM = "/api/v1/namespaces/kube-system";

/** Starts to follow at once. */
export function openSources({ api, nodes, log, random, missingLookMs, onChange }: SourcesOptions): Sources {
  type Own<T> = Pick<ReflectorOptions<T>, "path" | "fieldSelector" | "labelSelector" | "optional"> & {
    readonly place: string;
    readonly read: (object: KubeObject) => T;
  };
  const follow = <T>({ place, read, ...own }: Own<T>): Source<T> => {
    const told = { onChange, onSynced: onChange };
    const reflector = new Reflector<T>({
      api,
      log,
      random,
      missingLookMs,
      name: place,
      keyOf,
      decode: read,
      ...told,
      ...own,
    });
    reflector.start();
    return { place, reflector };
  };
  const configMap = <T>(name: string, read: (object: KubeObject) => T): Source<T> =>
    follow({
      ...{ place: `ConfigMap kube-system/${name}`, path: `${SYSTEM}/configmaps`, read },
      fieldSelector: `metadata.name=${name}`,
    });
  const kind = <T>(place: string, path: string, read: (object: KubeObject) => T): Source<T> =>
    follow({ place, path: `/apis/${path}`, optional: true, read });
  const sources = {
    serviceCidrs: kind("ServiceCIDR objects", "networking.k8s.io/v1/servicecidrs", readServiceCidr),
    kubeadm: configMap("kubeadm-config", readKubeadm),
    controlPlane: follow({
      ...{ place: "the control plane's pods", path: `${SYSTEM}/pods`, read: readControlPlanePod },
      labelSelector: `${COMPONENT_LABEL} in (kube-apiserver,kube-controller-manager)`,
    }),
    calico: kind("Calico's IPPools", "crd.projectcalico.org/v1/ippools", readCalicoPool),
    calicoNative: kind("Calico's IPPools (projectcalico.org/v3)", "projectcalico.org/v3/ippools", readCalicoPool),
    cilium: configMap("cilium-config", readCiliumSettings),
    ciliumPools: kind("CiliumPodIPPools", "cilium.io/v2alpha1/ciliumpodippools", readCiliumPool),
  };
  const all: readonly AnyReflector[] = Object.values(sources).map(({ reflector }) => reflector);
  const leave = nodes.subscribe((change) => {
    const now = change.kind === "set" ? change.value.podCidrs : [];
    if (now.join() !== (change.before?.podCidrs ?? []).join()) onChange();
  });
  return {
    get sightings() {
      const { serviceCidrs, kubeadm, controlPlane, calico, calicoNative, cilium, ciliumPools } = sources;
      return {
        serviceCidrs: seenOf(serviceCidrs),
        kubeadm: seenOf(kubeadm),
        controlPlane: seenOf(controlPlane),
        calico: seenOf(calico),
        calicoNative: seenOf(calicoNative),
        cilium: seenOf(cilium),
        ciliumPools: seenOf(ciliumPools),
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

function seenOf<T>({ place, reflector }: Source<T>): Seen<T> {
  const { items, isSynced, problems } = reflector;
  return { place, items: [...items.values()], isRead: isSynced, problem: problems[0] };
}
