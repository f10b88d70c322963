/**
 * Random clusters for `explain`: pools, namespaces, networks and pods of one node, with addresses that are in use,
 * cool, are retained, or belong to another node. Each has a question, whose answer must be that of the ADD.
 */

import { openClusterIdentifier } from "../../../host/agent/cluster/identity.ts";
import { ClusterDefinitions } from "../../../host/agent/cluster/networks.ts";
import { AnsweredAttachments } from "../../../host/agent/detection/answered-attachments.ts";
import type { AddDeps } from "../../../host/agent/ipam/add.ts";
import { IpamPlugin } from "../../../host/agent/ipam/plugin.ts";
import { explainPod, type Question } from "../../../host/agent/operate/explain-pod.ts";
import { toCniError } from "../../../host/agent/server/answer.ts";
import { decodeRequest } from "../../../host/cni/request.ts";
import { decodeNetworkList } from "../../../host/config/network-definition.ts";
import { formatIp } from "../../../host/net/ip.ts";
import type { ExplanationRecord } from "../../../host/records/explanation-record.ts";
import { KubernetesRegistry } from "../../../host/registry/kubernetes/kubernetes-registry.ts";
import { ALLOCATIONS, MemoryApiServer } from "../../fakes/memory-api-server.ts";
import { TestClock } from "../../world/clock.ts";
import { clusterIpam } from "../../world/cluster-ipam.ts";
import { type ClusterNode, openClusterNode, openNode, type TestNode } from "../../world/node.ts";
import type { Seeded } from "../../world/seeded.ts";
import { decodedSnapshot, ipPool, vendorConf } from "../../world/subjects.ts";
import { mac } from "../../world/values.ts";

type AnyNode = TestNode | ClusterNode;

/** An ADD's answer: `eth0 10.6.0.7 blue`, or `eth0 101 text`. */
export type Answer = string;

const NAMESPACES = ["shop", "bank"];
const PODS = ["web-0", "web-1", "db-0", "db-1", "job"];
const NETWORKS = ["lan", "dmz", "wan"];
const NIC = { index: 1, mac: mac("0a:00:00:00:00:01"), flags: 0, up: true, addresses: [] };

export class ExplainWorld {
  readonly node: AnyNode;
  readonly #other: AnyNode | undefined;
  readonly #random: Seeded;
  readonly #server: MemoryApiServer;
  readonly #deps: AddDeps;
  #networks: ReturnType<typeof decodeNetworkList>[] = [];
  /** By `namespace/name`. */
  #uids = new Map<string, string>();
  #containers = 0;

  static async open(random: Seeded): Promise<ExplainWorld> {
    const server = new MemoryApiServer({ isOpen: true });
    const clock = new TestClock({ isHasty: true });
    if (random.chance(0.4)) return new ExplainWorld(random, server, await openNode({ server, clock }));
    const [node, other] = [
      await openClusterNode({ server, clock }),
      await openClusterNode({ server, clock, name: "n2" }),
    ];
    return new ExplainWorld(random, server, node, other);
  }

  private constructor(random: Seeded, server: MemoryApiServer, node: AnyNode, other?: AnyNode) {
    this.node = node;
    this.#other = other;
    this.#random = random;
    this.#server = server;
    this.#deps = this.#depsOf(node);
  }

  async close(): Promise<void> {
    await this.node.close();
    await this.#other?.close();
  }

  #depsOf(node: AnyNode): AddDeps {
    const networks = new ClusterDefinitions({
      node: { find: () => undefined, problems: [], networks: [] },
      resources: {
        attachments: new Map(),
        get snapshot() {
          return node.snapshot;
        },
      },
    });
    Object.defineProperty(networks, "pluginsOf", { value: (name: string) => this.#find(name)?.plugins });
    Object.defineProperty(networks, "attached", { value: (_: string, name: string) => this.#find(name) });
    Object.defineProperty(networks, "defaultNetwork", { value: () => this.#networks[0] });
    const base = node.ipam({ networks });
    const silent = { ...base.detection, answered: new AnsweredAttachments(), ...SILENT };
    const { registry } = node;
    if (!(registry instanceof KubernetesRegistry)) return { ...base, detection: silent };
    const identifier = openClusterIdentifier({ api: node.api, resources: node });
    const cluster = clusterIpam({
      records: registry,
      evictPredecessor: (former) => registry.collect(former),
      foreseeEviction: async (former) => ({ ...former, state: "Cooling" }),
    });
    return { ...base, identifier, detection: silent, cluster };
  }

  #find(name: string) {
    return this.#networks.find((network) => network.name === name);
  }

  /** Other pools, namespaces, networks and pods, or changed ones; addresses stay where they are. */
  async change(): Promise<void> {
    const random = this.#random;
    this.#networks = NETWORKS.map((name) => decodeNetworkList(JSON.stringify(networkOf(random, name)), name));
    const uids = new Map<string, string>();
    const pods = NAMESPACES.flatMap((namespace) =>
      PODS.filter(() => random.chance(0.9)).map((name) => {
        const key = `${namespace}/${name}`;
        // Sometimes a new pod of the name.
        const uid = random.chance(0.6) ? this.#uids.get(key) : undefined;
        uids.set(key, uid ?? `uid-${key.replace("/", "-")}-${++this.#containers}`);
        return podOf(random, { namespace, name, uid: uids.get(key) ?? "" });
      }),
    );
    for (const key of this.#uids.keys()) {
      const [namespace, name = ""] = key.split("/");
      if (!uids.has(key)) this.#server.remove(name, `/api/v1/namespaces/${namespace}/pods`);
    }
    this.#uids = uids;
    for (const pod of pods) {
      const { namespace, name } = pod.metadata;
      this.#server.put(`/api/v1/namespaces/${namespace}/pods`, name, pod);
    }
    const snapshot = decodedSnapshot(
      vendorConf(settingsOf(random)),
      ...NAMESPACES.map((name) => namespaceOf(random, name)),
      ...poolsOf(random),
      ...pods,
    );
    for (const node of [this.node, this.#other]) node?.follow(snapshot);
    await this.node.inventory.loaded();
    await this.#other?.inventory.loaded();
  }

  /** ADDs and DELs of other pods, here and on the other node, and time. */
  async live(): Promise<void> {
    const random = this.#random;
    for (let step = random.below(7); step > 0; step--) {
      const isOther = this.#other !== undefined && random.chance(0.4);
      const node = isOther ? (this.#other as AnyNode) : this.node;
      const kind = random.below(5);
      if (kind === 4) await node.pass(random.pick([100, 1_500, 3_000, 20_000, 90_000]));
      else if (kind === 3) await this.#release(node);
      else await this.#addSomewhere(node);
    }
    // The maintenance of each second.
    for (const each of [this.node, this.#other]) await each?.pass(0);
  }

  async #release(node: AnyNode): Promise<void> {
    const rows = (await node.registry.list(undefined, 1_000)).filter(({ state }) => state === "Bound");
    if (rows.length === 0) return;
    const { containerId, ifName } = this.#random.pick(rows);
    await node.registry.release({ containerId, ifName });
    await node.pass(0);
  }

  async #addSomewhere(node: AnyNode): Promise<void> {
    const [key] = this.#pickPod();
    const deps = node === this.node ? this.#deps : this.#depsOf(node);
    // A pod of the other node has another name, so that each pod is on one node.
    await this.#add(deps, key, this.#random.pick(["eth0", "net1"]));
  }

  #pickPod(): [key: string, uid: string | undefined] {
    const key = `${this.#random.pick(NAMESPACES)}/${this.#random.pick(PODS)}`;
    return [key, this.#uids.get(key)];
  }

  /** Returns a question and, if the pod exists, all of its NICs that the answer must be about. */
  question(): Question {
    const [key] = this.#pickPod();
    const [namespace = "", pod = ""] = key.split("/");
    const random = this.#random;
    return { namespace, pod, ifName: random.chance(0.5) ? random.pick(["eth0", "net1", "net2"]) : undefined };
  }

  explain(question: Question): Promise<ExplanationRecord> {
    return explainPod({ ipam: this.#deps, backend: READY, toCniError }, question);
  }

  /** The real ADDs of the same NICs, in the same order. */
  async addAll({ namespace, pod }: Question, { nics }: ExplanationRecord): Promise<Answer[]> {
    const answers: Answer[] = [];
    for (const nic of nics) {
      if (nic.outcome === "foreign") answers.push(`${nic.interface} foreign`);
      else answers.push(await this.#add(this.#deps, `${namespace}/${pod}`, nic.interface));
    }
    return answers;
  }

  /** As a runtime does it that reads the network's definition. */
  async #add(deps: AddDeps, key: string, ifName: string): Promise<Answer> {
    const [namespace = "", name = ""] = key.split("/");
    const uid = this.#uids.get(key);
    const subject = deps.inventory.snapshot.pods.get(key);
    const isUnknown = subject === undefined && deps.cluster !== undefined;
    const listed = isUnknown ? undefined : this.#nameOf(subject?.annotations["k8s.v1.cni.cncf.io/networks"], ifName);
    const network = this.#find(listed ?? "");
    const plugin = Object(network?.plugins[0]?.entry);
    if (subject !== undefined && network !== undefined && plugin.ipam.type !== "berth") return `${ifName} foreign`;
    const args = [`K8S_POD_NAMESPACE=${namespace}`, `K8S_POD_NAME=${name}`, ...(uid ? [`K8S_POD_UID=${uid}`] : [])];
    const containerId = `c${++this.#containers}`;
    const headers = {
      "cni-command": "ADD",
      "cni-containerid": deps === this.#deps && uid === undefined ? "explain" : containerId,
      "cni-netns": "/run/netns/x",
      "cni-ifname": ifName,
      "cni-path": "/bin",
      "cni-args": args.join(";"),
    };
    const conf = { ...(network === undefined ? { type: "", ipam: { type: "berth" } } : plugin), cniVersion: "1.0.0" };
    try {
      const request = decodeRequest("berth", headers, JSON.stringify({ ...conf, name: listed ?? "unknown" }));
      if (request?.command !== "ADD") throw new Error("no ADD");
      const ready = { synced: async () => {}, ...READY };
      await new IpamPlugin(deps, ready).add(request, new AbortController().signal);
      const attachment = { containerId: request.containerId, ifName, network: request.netConf.name };
      const held = await deps.inventory.registry.findAttachment(attachment);
      // Other pods that nothing is known of are of other containers.
      if (request.containerId === "explain") await deps.inventory.registry.release({ containerId: "explain", ifName });
      const bound = held.filter(({ state }) => state === "Bound");
      return answerOf(
        ifName,
        bound.map((row) => ({ ...row, address: formatIp(row.ip) })),
      );
    } catch (error) {
      const { code, message } = toCniError(error);
      return `${ifName} ${code} ${message}`;
    }
  }

  /** eth0 has the node's first network, the others those of the pod's list; there may be no definition of them. */
  #nameOf(list: string | undefined, ifName: string): string | undefined {
    if (ifName === "eth0") return this.#networks[0]?.name;
    const entries = (list ?? "").split(",").filter((entry) => entry !== "");
    const entry = entries.find((each, at) => (each.split("@")[1] ?? `net${at + 1}`) === ifName);
    return entry?.split("@")[0]?.split("/").at(-1);
  }

  #counts(): unknown {
    const { poolCache, snapshot } = this.node;
    return [...snapshot.pools.keys()].map((name) => [name, poolCache.counts(name)]);
  }

  /** Everything that an explanation must not change. */
  async state(): Promise<unknown> {
    const { node } = this;
    const nodes = [node, this.#other].filter((each) => each !== undefined);
    return {
      objects: [...this.#server.collection(ALLOCATIONS).values()],
      rows: await Promise.all(nodes.map(({ registry }) => registry.list(undefined, 10_000))),
      // In a cluster an explanation lists the pools' addresses, and the cache may learn of some.
      pools: this.#deps.cluster === undefined ? this.#counts() : [],
      takeOvers: [...node.poolCache.takeOvers],
      clock: node.clock.ms,
      lines: node.lines.length,
    };
  }
}

export function explainedAnswers({ nics }: ExplanationRecord): Answer[] {
  return nics.map(({ interface: ifName, outcome, code, message, addresses }) => {
    if (outcome === "foreign") return `${ifName} foreign`;
    return outcome === "refused" ? `${ifName} ${code} ${message}` : answerOf(ifName, addresses);
  });
}

function answerOf(ifName: string, held: readonly { readonly address: string; readonly pool: string }[]): Answer {
  return [ifName, ...held.map(({ address, pool }) => `${address} ${pool}`).sort()].join(" ");
}

const READY = { ready: true, problems: [], health: { trouble: undefined } };

const SILENT = {
  detect: async () => undefined,
  withQuietLink: ({ netnsPath, ifName }: { netnsPath: string; ifName: string }, work: (link: never) => unknown) =>
    work({ netnsPath, name: ifName, ...NIC } as never),
  links: {
    observe: () => NIC,
    withdraw: () => undefined,
    findParentName: () => "",
    findAskingLink: (nic: unknown) => nic,
  },
} as unknown as Partial<AddDeps["detection"]>;

const POOL_NAMES = ["blue", "red", "green", "six", "wide", "lab"];

function poolsOf(random: Seeded): object[] {
  return POOL_NAMES.filter(() => random.chance(0.8)).map((name, index) => {
    const isSix = name === "six";
    const third = name === "red" && random.chance(0.5) ? 0 : index;
    const subnet = isSix ? "fd00:6::/120" : `10.6.${third}.0/24`;
    const first = 1 + random.below(4);
    const last = first + random.pick([0, 1, 2, 4, 9]);
    const ips = [isSix ? `fd00:6::${first}-fd00:6::${last}` : `10.6.${third}.${first}-10.6.${third}.${last}`];
    const maybe = <T>(chance: number, key: string, value: T): object => (random.chance(chance) ? { [key]: value } : {});
    return ipPool(name, subnet, {
      ips,
      ...maybe(0.45, "default", true),
      ...maybe(0.08, "disable", true),
      ...maybe(0.15, "namespaceName", [random.pick(NAMESPACES)]),
      ...maybe(0.12, "podAffinity", { matchLabels: { app: random.pick(["web", "db"]) } }),
      ...maybe(0.12, "multusName", [random.pick([...NETWORKS, "shop/lan"])]),
      ...maybe(0.1, "nodeName", [random.pick(["n1", "n2"])]),
      ...maybe(0.3, "selection", "ascending"),
      ...maybe(0.2, "gateway", isSix ? "fd00:6::1" : `10.6.${third}.1`),
      ...maybe(0.3, "cooldown", random.pick(["0s", "1s", "10s", "60s"])),
      ...(name === "lab" ? { addressSpace: "lab" } : {}),
    });
  });
}

function namesOf(random: Seeded): string[] {
  const names = [...POOL_NAMES, ...POOL_NAMES, "none", "re*", "*", "[bg]*", ...(random.chance(0.1) ? ["x*"] : [])];
  return Array.from({ length: 1 + random.below(3) }, () => random.pick(names));
}

function familiesOf(random: Seeded): object {
  return {
    ipv4: namesOf(random),
    ...(random.chance(0.4) ? { ipv6: random.pick([["six"], ["six", "none"], ["*"]]) } : {}),
  };
}

function networkOf(random: Seeded, name: string): object {
  const pools = random.chance(0.4)
    ? { default_ipv4_ippool: namesOf(random), ...(random.chance(0.3) ? { default_ipv6_ippool: ["six"] } : {}) }
    : {};
  const type = random.chance(0.08) ? "host-local" : "berth";
  const ipam = { type, ...pools, ...(random.chance(0.03) ? { default_ipv4_ippool: 7 } : {}) };
  return { cniVersion: "1.0.0", name, plugins: [{ type: random.pick(["macvlan", "ipvlan", "ptp"]), ipam }] };
}

function namespaceOf(random: Seeded, name: string): object {
  const key = "ipam.vendor.io/default-ipv4-ippool";
  const annotations = random.chance(0.3) ? { [key]: JSON.stringify(namesOf(random)) } : {};
  return { apiVersion: "v1", kind: "Namespace", metadata: { name, annotations, labels: { team: name } } };
}

function settingsOf(random: Seeded): string {
  const lines = [`enableIPv6: ${random.chance(0.4)}`, `allocationCooldown: ${random.pick(["0s", "5s", "60s"])}`];
  if (random.chance(0.1)) lines.push(`maxAddressesPerPod: ${1 + random.below(3)}`);
  if (random.chance(0.3)) lines.push("allowSingleFamily: true");
  return lines.join("\n");
}

function podOf(random: Seeded, { namespace, name, uid }: { namespace: string; name: string; uid: string }) {
  const annotations: Record<string, string> = {};
  const kind = random.below(16);
  if (kind < 3) annotations["ipam.vendor.io/ippool"] = JSON.stringify(familiesOf(random));
  else if (kind < 5) {
    const names = random.pick([["eth0"], ["eth0", "net1"], ["net1"], ["eth0", "net2"]]);
    const isNamed = random.chance(0.7);
    annotations["ipam.vendor.io/ippools"] = JSON.stringify(
      names.map((each) => ({ ...(isNamed ? { interface: each } : {}), ...familiesOf(random) })),
    );
  } else if (kind === 5)
    annotations["ipam.vendor.io/ippool"] = random.pick(["{", '{"ipv4": []}', '{"ipv4": ["blue"], "x": 1}']);
  else if (kind === 6) annotations["ipam.vendor.io/subnet"] = JSON.stringify({ ipv4: ["a"] });
  if (random.chance(0.4))
    annotations["k8s.v1.cni.cncf.io/networks"] = random.pick([
      "lan",
      "dmz",
      "lan,wan",
      "dmz@net2",
      "nowhere",
      "shop/lan",
    ]);
  if (random.chance(0.1))
    annotations["ipam.vendor.io/routes"] = JSON.stringify([
      { dst: "10.9.0.0/16", gw: random.pick(["10.6.0.254", "10.7.0.1"]) },
    ]);
  const set = name.startsWith("db-")
    ? {
        ownerReferences: [
          { apiVersion: "apps/v1", kind: "StatefulSet", name: "db", uid: `set-${namespace}`, controller: true },
        ],
      }
    : {};
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { namespace, name, uid, annotations, labels: { app: random.pick(["web", "db"]) }, ...set },
    spec: { nodeName: "n1" },
    status: random.chance(0.05) ? { phase: "Succeeded" } : {},
  };
}
