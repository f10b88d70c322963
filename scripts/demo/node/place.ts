/**
 * The place of the node's story: a node in a namespace with an agent, its network, pods, and the runtime's calls with
 * the reference plugins of Debian's package.
 *
 *   node: eth0 ── segment 0 ── router ── outside      the pods' macvlan NICs are on eth0 and eth1;
 *         eth1 ── segment 1 ──┘                       pods0 10.10.0.1 is the node's own bridge for pods
 *
 * Effects: namespaces, an agent, a port on loopback; removed by the stack that the place is opened with.
 */
import { rm } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { segmentAddress, segmentSubnet } from "../../../test/lab/addressing.ts";
import type { Agent } from "../../../test/lab/agent.ts";
import { berthBin, type PluginOutcome, requireSuccess } from "../../../test/lab/cnitool.ts";
import { ipPool, macvlan, manifest, podManifest, vendorConf } from "../../../test/lab/manifests.ts";
import type { Fabric } from "../../../test/lab/netns/fabric.ts";
import { addressesOf, type LabPod, NetnsWorld } from "../../../test/lab/netns/world.ts";
import type { Netns } from "../../../test/lab/netns.ts";
import { hasPackage } from "../../setup/paths.mjs";
import { addressesOn, type Narrator } from "../engine.ts";

const lan = { subnet: segmentSubnet(0, 4), gateway: segmentAddress(0, 1, 4) };

/** Pools of the data-centre's network, of its storage network, and of a bridge in the node. */
export const pools = {
  blue: { subnet: "10.10.0.0/24", ips: ["10.10.0.10-10.10.0.250"], gateway: "10.10.0.1" },
  "lan-v4": { ...lan, ips: ["10.60.0.50-10.60.0.99"] },
  "lan-v6": { subnet: segmentSubnet(0, 6), ips: ["fd00:60::5000-fd00:60::ffff"], gateway: segmentAddress(0, 1, 6) },
  storage: { subnet: segmentSubnet(1, 4), ips: ["10.71.0.50-10.71.0.99"], gateway: segmentAddress(1, 1, 4) },
  tiny: { subnet: "10.10.0.0/24", ips: ["10.10.0.5"], gateway: "10.10.0.1" },
  desk: { ...lan, ips: ["10.60.0.120-10.60.0.129"], selection: "ascending" },
} as const;

/** In pool blue, for the pod till-0. */
export const KEPT = "10.10.0.200";

/** A released address rests for two seconds, so that the story need not wait for the default 30. */
const settings = vendorConf({ allowSingleFamily: true, allocationCooldown: "2s" });
const services = { type: "coordinator", serviceCIDR: ["10.96.0.0/16", "fd00:96::/112"] };
const detecting = { ...services, detectIPConflict: true };

/** Plugins of each network, in the order in which the runtime calls them; `eth0` and `eth1` are the node's own NICs. */
const networks = {
  bridge: [{ type: "bridge", bridge: "pods0", isGateway: true, ipam: { type: "berth" } }],
  lan: [macvlan("eth0")],
  "lan-services": [macvlan("eth0"), services],
  storage: [macvlan("eth1"), services],
  "lan-asks": [macvlan("eth0"), detecting],
  "lan-asks-next": [macvlan("eth0"), { ...detecting, detectOptions: { onConflict: "next" } }],
} as const;

type Network = keyof typeof networks;

/** No other network of the machine has such a name. */
const nameOf = (network: string): string => `demo${process.pid}-${network}`;

export interface Place {
  readonly agent: Agent;
  readonly fabric: Fabric;
  readonly node: Netns;
  /** URL of the agent's address map for a browser on this machine; undefined without that package. */
  readonly mapUrl: string | undefined;
  readonly pods: Map<string, Pod>;
  readonly world: NetnsWorld;
}

export const hasMap = hasPackage("map");

export async function open(stack: AsyncDisposableStack): Promise<Place> {
  const world = stack.use(new NetnsWorld("demo"));
  const fabric = await world.addFabric();
  const mapSocket = join(tmpdir(), `berth-demo-${process.pid}.sock`);
  stack.defer(() => rm(mapSocket, { force: true }));
  const texts = Object.entries(pools).map(([name, { subnet, ...spec }]) => ipPool(name, subnet, spec));
  texts.push(manifest("ReservedIP", "till", { ips: [KEPT], owner: { namespace: "shop", name: "till-0" } }));
  const config = { "pools.yaml": texts.join("---\n"), "settings.yaml": settings };
  const args = hasMap ? ["--map-listen", `unix:${mapSocket}`] : [];
  const { agent } = await world.addNode(fabric.node1, config, { args });
  // The agent reads there which plugins follow a main plugin.
  for (const [name, plugins] of Object.entries(networks)) await world.define(nameOf(name), plugins);
  const mapUrl = hasMap ? await openMapWindow(mapSocket) : undefined;
  return { agent, fabric, node: fabric.node1, mapUrl, pods: new Map(), world };
}

/** A pod with its wish in Berth's annotations; no NIC yet. */
export async function createPod(place: Place, name: string, wish: Record<string, unknown>): Promise<Pod> {
  const { agent, node: netns } = place;
  await agent.write(`pod-${name}.yaml`, podManifest("shop", name, wish));
  // The plugins wait for an agent as long as they do by default.
  const lab = await place.world.addPod({ netns, agent }, name, { connectWait: "20" });
  const pod = new Pod(name, lab, JSON.stringify(wish));
  place.pods.set(name, pod);
  return pod;
}

export class Pod {
  readonly name: string;
  readonly lab: LabPod;
  readonly #wish: string;
  /** Network by name of the NIC, in the order of the ADDs. */
  readonly nics = new Map<string, Network>();

  constructor(name: string, lab: LabPod, wish: string) {
    this.name = name;
    this.lab = lab;
    this.#wish = wish;
  }

  get netns(): Netns {
    return this.lab.netns;
  }

  /** Without prefix length, as the plugins' results said. */
  get addresses(): string[] {
    return [...this.nics.keys()].flatMap((ifName) => addressesOf(this.lab.resultOf(ifName) ?? NOTHING)).sort();
  }

  /**
   * The runtime's ADD or DEL of one NIC. Each plugin gets the previous one's answer, the first that refuses is the
   * last, and DEL goes backwards. Never throws for their answers.
   */
  async call(command: "ADD" | "DEL", network: Network, ifName = "eth0"): Promise<PluginOutcome> {
    const plugins: readonly { readonly type: string }[] = networks[network];
    const isAdd = command === "ADD";
    let outcome: PluginOutcome = { exitCode: 0, stdout: undefined, text: "", stderr: "" };
    for (const plugin of isAdd ? plugins : plugins.toReversed()) {
      const prevResult = isAdd ? outcome.stdout : this.lab.resultOf(ifName);
      const conf = { ...plugin, cniVersion: "1.0.0", name: nameOf(network) };
      const cniPath = [berthBin, "/usr/lib/cni"];
      outcome = await this.lab.run(plugin.type, command, { ifName, prevResult, cniPath, conf });
      if (outcome.exitCode !== 0) return outcome;
    }
    if (isAdd) this.lab.adopt(ifName, outcome.stdout);
    if (isAdd) this.nics.set(ifName, network);
    return outcome;
  }

  /** ADD; then the plugin's result, the kernel, the agent's records and the pod's wish agree. */
  async attach(narrator: Narrator, network: Network, ifName = "eth0"): Promise<void> {
    const outcome = await this.call("ADD", network, ifName);
    const given = addressesOf(requireSuccess(outcome, `ADD of ${this.name}`)).sort();
    const isOwn = (each: AddressRecord): boolean => each.pod === this.name && each.interface === ifName;
    const records = (await recordsOf(this.lab.node)).filter(isOwn);
    const present = await addressesOn(this.netns, ifName, given.length);
    const recorded = records.map(({ address }) => address).sort();
    const isWanted = records.length > 0 && records.every(({ pool }) => this.#wish.includes(`"${pool}"`));
    const isSo = isWanted && present.join() === given.join() && recorded.join() === given.join();
    const from = records.map(({ pool }) => pool).join(" and ");
    narrator.claim(`${this.name} has its address of ${from}`, isSo, `${ifName} ${present.join(", ")}`);
  }

  /** DEL of all NICs, the last first as runtimes do; the namespace goes with it. Throws when one fails. */
  async end({ agent, pods }: Place): Promise<void> {
    for (const [ifName, network] of [...this.nics].reverse()) {
      const { exitCode, text } = await this.call("DEL", network, ifName);
      if (exitCode !== 0) throw new Error(`DEL of ${ifName} of ${this.name} failed: ${text}`);
    }
    await this.netns.delete();
    pods.delete(this.name);
    await agent.remove(`pod-${this.name}.yaml`);
  }
}

const NOTHING = { ips: [], interfaces: [] };

/** Throws when it does not live. */
export function podOf(place: Place, name: string): Pod {
  const pod = place.pods.get(name);
  if (pod === undefined) throw new Error(`There is no pod ${name}`);
  return pod;
}

interface AddressRecord {
  readonly address: string;
  readonly pool: string;
  readonly state: string;
  readonly pod: string;
  readonly interface: string;
}

export function recordsOf({ agent }: Pick<Place, "agent">): Promise<AddressRecord[]> {
  return agent.get("/v1/allocations");
}

/** The bound addresses in the registry are those of the pods that live, no more and no less. */
export async function claimRecords(place: Place, narrator: Narrator, what: string): Promise<void> {
  const bound = (await recordsOf(place)).filter(({ state }) => state === "Bound");
  const recorded = bound.map(({ pod, address }) => `${pod} ${address}`).sort();
  const pods = [...place.pods.values()];
  const carried = pods.flatMap(({ name, addresses }) => addresses.map((address) => `${name} ${address}`)).sort();
  narrator.claim(what, recorded.join() === carried.join(), `${recorded.length} addresses of ${pods.length} pods`);
}

/** Returns the number of addresses of all pools that are in use, or rest after a release. */
export async function countUsed({ agent }: Place): Promise<number> {
  const all: readonly { readonly used: string }[] = await agent.get("/v1/pools");
  return all.reduce((sum, { used }) => sum + Number(used), 0);
}

/** Prints pools and pods with their addresses, as the agent reports them. */
export async function showAll(place: Place, narrator: Narrator): Promise<void> {
  const all: readonly Record<string, unknown>[] = await place.agent.get("/v1/pools");
  const rows = all.map((pool) => ["name", "subnet", "total", "used", "free"].map((key) => String(pool[key])));
  narrator.table("POOL SUBNET TOTAL USED FREE", rows);
  const records = (await recordsOf(place)).map((each) => {
    return [each.pod, each.interface, each.address, each.pool, each.state];
  });
  if (records.length > 0) narrator.table("POD NIC ADDRESS POOL STATE", records.sort());
  else narrator.lines(["", "No pod has an address."]);
}

/** Returns where a browser on this machine finds the page: port 9476, as docs/map.md has it, or any other. */
async function openMapWindow(socketPath: string): Promise<string> {
  const server = createServer((browser) => {
    pipeline(browser.unref(), connect(socketPath).unref(), browser).catch(() => {});
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const listen = (port: number) => server.listen(port, "127.0.0.1", resolve).unref();
  server.once("error", () => server.once("error", reject) && listen(0));
  listen(9_476);
  await promise;
  const address = server.address();
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
}
