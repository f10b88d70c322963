/**
 * The NICs that a pod announces, and the network behind each (Kubernetes Network Custom Resource Definition De-facto
 * Standard, sections 4 and 5): the definitions in the node's CNI directory, and the NetworkAttachmentDefinitions of
 * the watch.
 */

import { basename } from "node:path";
import { decodeInnerNetwork, findCoordinatorSettings, findIpamConf } from "../../config/network-definition.ts";
import { definitionOf, META_NAMESPACE, type NetworkSelection, nicNameOf } from "../../config/network-selection.ts";
import type { PodSubject } from "../../ipam/model.ts";
import type { AnnouncedNic } from "../../ipam/plan-prefetch.ts";
import { tryOr } from "../../lib/try-or.ts";
import { type Definitions, ResolvedSettings } from "../request/definitions.ts";
import type { NicNetwork, NicReference, NicSettings } from "../request/nic-definition.ts";
import type { Network } from "./cached-definition.ts";
import type { ClusterResources } from "./resources.ts";

interface DefinitionSources {
  /** Networks of the node's CNI directory. */
  readonly node: Pick<Definitions, "networks" | "find" | "problems">;
  readonly resources: Pick<ClusterResources, "attachments" | "snapshot">;
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
    const definition = this.#sources.resources.attachments.get(`${namespace}/${name}`);
    if (definition?.kind === "file") return this.#sources.node.find(name);
    return definition?.kind === "network" ? definition.network : undefined;
  }

  /** Sentences without a full stop. */
  get problems(): readonly string[] {
    const texts = [...this.#sources.resources.attachments.values()].flatMap((definition) =>
      definition.kind === "invalid" ? [definition.reason] : [],
    );
    return [...this.#sources.node.problems, ...texts];
  }

  /** Returns the NIC as the pod's annotations announce it; undefined if they announce none that it could be. */
  #find({ ifName, network, pod }: NicReference): NicNetwork | undefined {
    const nics = pod === undefined ? [] : this.nicsOf(pod);
    const exact = nics.find((nic) => nic.ifName === ifName);
    if (exact !== undefined && (exact.network === network || exact.plugins.length === 0)) return exact;
    const [first, ...others] = nics.filter((nic) => nic.network === network);
    return others.every(({ attachment }) => attachment === first?.attachment) ? first : undefined;
  }

  /** An entry that the coordinator will refuse is none. Those of the node's networks are read with its files. */
  readonly definitionOf: NicSettings["definitionOf"] = (nic) => {
    const { network } = nic;
    const { attachment, plugins = [] } = this.#find(nic) ?? {};
    const own = attachment === undefined ? this.#sources.node.find(network) : undefined;
    const isRead = plugins.length === 0 || plugins === own?.plugins;
    const found = own?.coordinator ?? (isRead ? undefined : tryOr(() => findCoordinatorSettings(plugins), undefined));
    return {
      networkNames: attachment === undefined ? [network] : [network, attachment, attachment.replace(/^.*\//, "")],
      settings: this.#settings.of(found, this.#sources.resources.snapshot),
      isCoordinated: found !== undefined,
    };
  };

  /** In the order in which they are attached. */
  readonly nicsOf = ({ namespace, annotations }: PodSubject): readonly NicNetwork[] => {
    const { defaultNetwork, networks = [] } = annotations;
    const ifName = this.#sources.resources.snapshot.firstNic;
    const first =
      defaultNetwork === undefined
        ? nicOn(ifName, this.defaultNetwork())
        : this.#attach(ifName, defaultNetwork, this.metaNamespace);
    return [first, ...networks.map((each, index) => this.#attach(nicNameOf(each, index), each, namespace))];
  };

  readonly pluginsOf: NicSettings["pluginsOf"] = (network) => this.#sources.node.find(network)?.plugins;

  readonly isAdministratorsLog = (logFile: string): boolean => {
    const { node, resources } = this.#sources;
    const { home = "" } = resources.snapshot.vendorConf;
    const own = [...resources.attachments].flatMap(([key, each]) =>
      key.startsWith(`${home}/`) && each.kind === "network" ? [each.network] : [],
    );
    const networks = [...node.networks, ...own];
    const settings = networks.map(({ plugins }) => tryOr(() => findCoordinatorSettings(plugins), undefined));
    return settings.some((each) => each?.logOptions?.logFile === logFile);
  };

  /** A selection at fault names no definition, whatever Multus makes of it. */
  #attach(ifName: string, selection: NetworkSelection, home: string): NicNetwork {
    const { namespace = home, name, isAsking, fault } = selection;
    const network = fault === undefined ? this.attached(namespace, name) : undefined;
    const attachment = fault === undefined ? definitionOf(selection, home) : "";
    const nic = nicOn(ifName, network ?? { name, plugins: [] });
    return { ...nic, attachment, isAsking: isAsking || nic.isAsking };
  }

  /** Multus takes a definition's name, a network's name on the node, or a file. */
  #findDelegate(wanted: string): Network | undefined {
    const { node } = this.#sources;
    const byFile = node.networks.find(({ path }) => basename(path) === basename(wanted));
    if (wanted.includes("/")) return byFile;
    return this.attached(this.metaNamespace, wanted) ?? node.find(wanted) ?? byFile;
  }
}

/** Of a definition that is not known the name is empty. */
function nicOn(ifName: string, { name, plugins }: Network = { name: "", plugins: [] }): NicNetwork {
  return { ifName, network: name, plugins, isAsking: plugins.some(({ entry }) => asksByName(entry.args)) };
}

/** Returns the NIC as its ADD will ask for it: without `ipamConf` if that is not Berth's, or will be refused. */
export function announce({ ifName, network, plugins, isAsking = false }: NicNetwork): AnnouncedNic {
  return { ifName, network, ipamConf: tryOr(() => findIpamConf(plugins), undefined), isAsking };
}

/** `args.cni.ips` of a plugin. */
function asksByName(args: unknown): boolean {
  const cni = typeof args === "object" && args !== null && "cni" in args ? args.cni : undefined;
  return typeof cni === "object" && cni !== null && "ips" in cni;
}
