/**
 * The NICs that a pod announces, and the network behind each (Kubernetes Network Custom Resource Definition De-facto
 * Standard, sections 4 and 5): the definitions in the node's CNI directory, and the NetworkAttachmentDefinitions of
 * the watch.
 */

import { basename } from "node:path";
import type { PodAnnotations } from "../../config/annotations.ts";
import type { CoordinatorSettings } from "../../config/coordinator-settings.ts";
import type { IpamConf } from "../../config/ipam-conf.ts";
import {
  decodeInnerNetwork,
  findCoordinatorSettings,
  findIpamConf,
  type PlacedEntry,
} from "../../config/network-definition.ts";
import { definitionOf, META_NAMESPACE, type NetworkSelection, nicNameOf } from "../../config/network-selection.ts";
import type { AnnouncedNic } from "../../ipam/plan-prefetch.ts";
import { tryOr } from "../../lib/try-or.ts";
import { firstNicOf } from "../../resources/coordinator.ts";
import type { Snapshot } from "../../resources/snapshot.ts";
import { type Definitions, ResolvedSettings } from "../request/definitions.ts";
import type { NicReference, NicSettings } from "../request/nic-definition.ts";
import type { CachedDefinition, Network } from "./cached-definition.ts";

interface DefinitionSources {
  /** Networks of the node's CNI directory. */
  readonly node: Pick<Definitions, "networks" | "settingsOf" | "problems">;
  /** By `namespace/name`. */
  readonly attachments: () => ReadonlyMap<string, CachedDefinition>;
  readonly snapshot: () => Snapshot;
}

/** Multus, which calls the plugins of other networks in its place, under the names it is installed by. */
const META_PLUGIN = /^multus(?:-shim|-cni)?$/;

export class ClusterDefinitions implements NicSettings {
  readonly #sources: DefinitionSources;
  readonly #settings = new ResolvedSettings();

  constructor(sources: DefinitionSources) {
    this.#sources = sources;
  }

  /** Returns the network of a pod's first NIC unless the pod names another; undefined if the node has no valid one. */
  defaultNetwork(): Network | undefined {
    const [first] = this.#sources.node.networks;
    const meta = first?.plugins[0];
    if (first === undefined || meta === undefined || !META_PLUGIN.test(meta.entry.type)) return first;
    const { delegates, clusterNetwork } = meta.entry;
    if (Array.isArray(delegates) && delegates.length > 0) {
      return tryOr(() => decodeInnerNetwork(delegates[0], first.name, `${meta.place}, delegates[0]`), undefined);
    }
    return typeof clusterNetwork === "string" ? this.#findDelegate(clusterNetwork) : undefined;
  }

  /** Returns the namespace in which a `v1.multus-cni.io/default-network` without one is looked for. */
  get metaNamespace(): string {
    const meta = this.#sources.node.networks[0]?.plugins[0]?.entry;
    return typeof meta?.multusNamespace === "string" ? meta.multusNamespace : META_NAMESPACE;
  }

  /** Returns the network of a NetworkAttachmentDefinition; undefined if there is none or it is invalid. */
  attached(namespace: string, name: string): Network | undefined {
    const definition = this.#sources.attachments().get(`${namespace}/${name}`);
    if (definition?.kind === "file") return this.#sources.node.networks.find((network) => network.name === name);
    return definition?.kind === "network" ? definition.network : undefined;
  }

  /** Sentences without a full stop. */
  get problems(): readonly string[] {
    const texts = [...this.#sources.attachments().values()].flatMap((definition) =>
      definition.kind === "invalid" ? [definition.reason] : [],
    );
    return [...this.#sources.node.problems, ...texts];
  }

  /** Returns the NIC as the pod's annotations announce it; undefined if they announce none that it could be. */
  planOf({ ifName, network, pod }: NicReference): NicPlan | undefined {
    if (pod === undefined) return undefined;
    const plans = describeNics(pod, this.#sources.snapshot(), this);
    const exact = plans.find((plan) => plan.ifName === ifName);
    if (exact !== undefined && (exact.network === network || exact.plugins.length === 0)) return exact;
    const [first, ...others] = plans.filter((plan) => plan.network === network);
    return others.every(({ attachment }) => attachment === first?.attachment) ? first : undefined;
  }

  readonly networkNames = (nic: NicReference): readonly string[] => {
    const attachment = this.planOf(nic)?.attachment;
    return attachment === undefined ? [nic.network] : [nic.network, attachment, attachment.replace(/^.*\//, "")];
  };

  readonly nicsOf: NicSettings["nicsOf"] = (pod) => describeNics(pod, this.#sources.snapshot(), this);

  readonly pluginsOf: NicSettings["pluginsOf"] = (network) =>
    this.#sources.node.networks.find(({ name }) => name === network)?.plugins;

  readonly settingsFor: NicSettings["settingsFor"] = (nic) =>
    this.#settings.of(this.#coordinatorOf(nic), this.#sources.snapshot());

  readonly isCoordinated: NicSettings["isCoordinated"] = (nic) => this.#coordinatorOf(nic) !== undefined;

  readonly isAdministratorsLog = (logFile: string): boolean => {
    const { node, attachments, snapshot } = this.#sources;
    const { home = "" } = snapshot().vendorConf;
    const own = [...attachments()].flatMap(([key, each]) =>
      key.startsWith(`${home}/`) && each.kind === "network" ? [each.network] : [],
    );
    const networks = [...node.networks, ...own];
    const settings = networks.map(({ plugins }) => tryOr(() => findCoordinatorSettings(plugins), undefined));
    return settings.some((each) => each?.logOptions?.logFile === logFile);
  };

  /** Undefined for an entry that the coordinator will refuse. */
  #coordinatorOf(nic: NicReference): CoordinatorSettings | undefined {
    const plan = this.planOf(nic);
    if (plan === undefined || plan.attachment === undefined) {
      const own = this.#sources.node.settingsOf(nic.network);
      if (own !== undefined || plan === undefined) return own;
    }
    return tryOr(() => findCoordinatorSettings(plan.plugins), undefined);
  }

  /** Multus takes a definition's name, a network's name on the node, or a file. */
  #findDelegate(wanted: string): Network | undefined {
    const { networks } = this.#sources.node;
    const byFile = networks.find(({ path }) => basename(path) === basename(wanted));
    if (wanted.includes("/")) return byFile;
    return this.attached(this.metaNamespace, wanted) ?? networks.find(({ name }) => name === wanted) ?? byFile;
  }
}

interface NicPlan extends AnnouncedNic {
  /** `namespace/name` of the NetworkAttachmentDefinition; undefined for a definition of the node. */
  readonly attachment: string | undefined;
  /** Plugins of the network's definition; empty if no definition is known. */
  readonly plugins: readonly PlacedEntry[];
}

/** Returns the NICs in the order in which they are attached. */
export function describeNics(
  pod: { readonly namespace: string; readonly annotations: PodAnnotations },
  snapshot: Pick<Snapshot, "coordinator">,
  definitions: Pick<ClusterDefinitions, "attached" | "defaultNetwork" | "metaNamespace">,
): NicPlan[] {
  const { defaultNetwork, networks = [] } = pod.annotations;
  const ifName = firstNicOf(snapshot.coordinator);
  const attach = (selection: NetworkSelection, home: string, nic: string): NicPlan => {
    const { namespace = home, name, isAsking = false, fault } = selection;
    // No definition has this name, whatever Multus makes of it.
    if (fault !== undefined) return planOf(nic, undefined, { attachment: "", name, isAsking });
    return planOf(nic, definitions.attached(namespace, name), {
      attachment: definitionOf(selection, home),
      name,
      isAsking,
    });
  };
  const first =
    defaultNetwork === undefined
      ? planOf(ifName, definitions.defaultNetwork(), { attachment: undefined, name: "", isAsking: false })
      : attach(defaultNetwork, definitions.metaNamespace, ifName);
  const others = networks.map((each, index) => attach(each, pod.namespace, nicNameOf(each, index)));
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
    ifName,
    attachment,
    plugins,
    network: network?.name ?? name,
    ipamConf: ipamOf(plugins),
    isAsking: isAsking || plugins.some(({ entry }) => asksByName(entry.args)),
  };
}

/** Undefined without Berth, and with an `ipam` object that the ADD will refuse. */
function ipamOf(plugins: readonly PlacedEntry[]): IpamConf | undefined {
  return tryOr(() => findIpamConf(plugins), undefined);
}

/** `args.cni.ips` of a plugin. */
function asksByName(args: unknown): boolean {
  const cni = typeof args === "object" && args !== null && "cni" in args ? args.cni : undefined;
  return typeof cni === "object" && cni !== null && "ips" in cni;
}
