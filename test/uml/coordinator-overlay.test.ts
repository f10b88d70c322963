/**
 * A second NIC on links that other kernels lack, under the whole chain: ifacer where it makes the link, the reference
 * plugin, Berth's addresses, the coordinator in mode overlay with detection. This kernel cannot have the table of an
 * underlay pod; see coordinator-underlay.test.ts.
 *
 *   pod net1 ── e0, e0.30 or b0.30 (e0, e1) ═══ e0, e1 ── br0, br0.30 other 10.66.0.0/24; l3: 10.67.0.0/24, by the node
 *   pod eth0 ── veth (another network plugin's)                             10.244.0.0/24
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeSysctl } from "../../host/kernel/sysctl.ts";
import { requireSuccess } from "../lab/cnitool.ts";
import { requireCommand } from "../lab/command.ts";
import { ipPool, vendorConf } from "../lab/manifests.ts";
import { LabPod, NetnsWorld } from "../lab/netns/world.ts";
import { addBridge, addVeth } from "../lab/netns.ts";
import { ping } from "../lab/traffic.ts";
import { ofRun } from "../world/long-cases.ts";
import { ipBatch } from "./ip-batch.ts";

const VLAN = 30;
const OTHER = "10.66.0.1";
const NODE = "10.66.0.2";
/** No machine has it. */
const ABSENT = "10.66.0.3";
const RIVAL = "10.66.0.200";
const SERVICE = "10.96.0.10";
const FIRST_NIC = "10.244.0.2";
const GATEWAY = "10.244.0.1";
const WIRES = ["e0", "e1"];
/** Detection waits for no answer longer than this: milliseconds, on a slow kernel. */
const PATIENT = { retry: 2, interval: "50ms", timeout: "2s", window: "500ms" };

const pool = (name: string, subnet: string, spec: object) =>
  [`${name}.yaml`, ipPool(name, subnet, { ...spec })] as const;
const CONFIG = {
  "conf.yaml": vendorConf({ enableIPv6: false, allocationCooldown: "1s" }),
  ...Object.fromEntries([
    pool("flat", "10.66.0.0/24", { ips: ["10.66.0.10-10.66.0.99"], gateway: OTHER }),
    // Without ARP any address does as a gateway.
    pool("routed", "10.67.0.0/24", {
      ips: ["10.67.0.10-10.67.0.99"],
      gateway: "10.67.0.1",
      routes: [{ dst: "10.66.0.0/24", gw: "10.67.0.1" }],
    }),
    pool("taken", "10.66.0.0/24", { ips: [RIVAL], gateway: OTHER }),
    pool("lost", "10.66.0.0/24", { ips: ["10.66.0.100-10.66.0.109"], gateway: ABSENT }),
  ]),
};

function makeWorld() {
  return NetnsWorld.build("uov", async (world) => {
    // cnitool remembers there; the guest's root is read-only.
    await requireCommand(["sh", "-ec", "mount -t tmpfs tmpfs /var/lib; mkdir /var/lib/cni"]);
    world.defer(() => requireCommand(["umount", "/var/lib"]));
    const [netns, other] = [await world.addNetns("node"), await world.addNetns("other")];
    for (const each of [netns, other]) writeSysctl(each.path, "ipv6/conf/default/disable_ipv6", "1");
    for (const name of WIRES) await addVeth({ netns, name }, { netns: other, name });
    await addBridge(other, "br0", WIRES);
    await other.ip(`link add link br0 name br0.${VLAN} type vlan id ${VLAN}`);
    await netns.ip("link set e0 up");
    writeSysctl(netns.path, "ipv4/ip_forward", "1");
    const node = await world.addNode(netns, CONFIG);
    return Object.assign(world, { netns, other, node });
  });
}

let world: Awaited<ReturnType<typeof makeWorld>>;

beforeAll(async () => {
  world = await makeWorld();
});

afterAll(() => world.delete());

interface Case {
  readonly name: string;
  /** Segment of the other machine. */
  readonly segment: "br0" | `br0.${typeof VLAN}`;
  /** Link that the node has its address on. */
  readonly master: string;
  readonly plugins: (pool: string) => object[];
  readonly hasArp: boolean;
  /** Much like another case: only the long tests run it. */
  readonly isLong?: boolean;
}

const ipam = (name: string) => ({ type: "berth", default_ipv4_ippool: [name] });
const ipvlan = (mode: string) => (name: string) => [{ type: "ipvlan", master: "e0", mode, ipam: ipam(name) }];
const onDevice = (master: string, ifacer: object) => (name: string) => [
  { type: "ifacer", vlanID: VLAN, ...ifacer },
  { type: "macvlan", master, mode: "bridge", ipam: ipam(name) },
];
const CASES: Case[] = [
  { name: "ipvlan l2", segment: "br0", master: "e0", plugins: ipvlan("l2"), hasArp: true },
  { name: "ipvlan l3", segment: "br0", master: "e0", plugins: ipvlan("l3"), hasArp: false, isLong: true },
  { name: "ipvlan l3s", segment: "br0", master: "e0", plugins: ipvlan("l3s"), hasArp: false, isLong: true },
  {
    name: "vlan",
    segment: `br0.${VLAN}`,
    master: "e0",
    plugins: (name) => [{ type: "vlan", master: "e0", vlanId: VLAN, ipam: ipam(name) }],
    hasArp: true,
    isLong: true,
  },
  {
    name: "macvlan on a VLAN",
    segment: `br0.${VLAN}`,
    master: `e0.${VLAN}`,
    plugins: onDevice(`e0.${VLAN}`, { interfaces: ["e0"] }),
    hasArp: true,
    isLong: true,
  },
  {
    name: "macvlan on a VLAN of a bond",
    segment: `br0.${VLAN}`,
    master: `b0.${VLAN}`,
    plugins: onDevice(`b0.${VLAN}`, { interfaces: WIRES, bond: { name: "b0", mode: 1, options: "miimon=50" } }),
    hasArp: true,
    isLong: true,
  },
];

/** A pod with the first NIC of another network plugin; the node's end has the gateway's address, as `ptp` makes it. */
async function addPod(name: string): Promise<LabPod> {
  const pod = new LabPod(world.node, await world.addNetns(name), { name: undefined, connectWait: "5" });
  const [{ netns }, end] = [pod, `veth-${name}`];
  await ipBatch(world.netns, [
    `link add ${end} type veth peer name eth0 netns ${netns.name}`,
    `addr add ${GATEWAY}/32 dev ${end}`,
    `link set ${end} up`,
    `route replace ${FIRST_NIC} dev ${end}`,
  ]);
  await ipBatch(netns, [`addr add ${FIRST_NIC}/24 dev eth0`, "link set eth0 up", `route add default via ${GATEWAY}`]);
  return pod;
}

describe.each(ofRun(CASES, ({ isLong }) => !isLong).map((each, index) => ({ ...each, index })))("$name", (each) => {
  const { index, segment, master, plugins, hasArp } = each;
  const network = `over${index}`;
  const call = async (verb: "add" | "check" | "del", pool: string, settings: object) => {
    const coordinator = { type: "coordinator", mode: "overlay", serviceCIDR: ["10.96.0.0/16"], serviceSnat: "off" };
    await world.define(network, [...plugins(pool), { ...coordinator, detectOptions: PATIENT, ...settings }], "1.1.0");
    return pod.call(verb, network, "net1");
  };
  let pod: LabPod;

  beforeAll(async () => {
    const { other, netns } = world;
    pod = await addPod(`p${index}`);
    const [first] = plugins("flat");
    if (master !== "e0")
      requireSuccess(await pod.run("ifacer", "ADD", { ifName: "net1", conf: { name: network, ...first } }), "ifacer");
    await netns.ip(`addr add ${NODE}/24 dev ${master}`);
    await ipBatch(other, [
      `addr add ${OTHER}/24 dev ${segment}`,
      `addr add ${RIVAL}/24 dev ${segment}`,
      `link set ${segment} up`,
      `route replace 10.67.0.0/24 via ${NODE}`,
    ]);
  });

  afterAll(async () => {
    const { other, netns } = world;
    await other.ip(`addr flush dev ${segment}`);
    await netns.ip(`addr flush dev ${master}`);
    await ipBatch(netns, [`link del veth-p${index}`, ...(master === "e0" ? [] : [`link del ${master}`])]);
  });

  it("reaches segment, node and services; CHECK passes; DEL leaves nothing", async () => {
    const [pool, settings] = [hasArp ? "flat" : "routed", { detectIPConflict: hasArp, detectGateway: hasArp }];
    const { other, netns: node } = world;
    const { ips } = requireSuccess(await call("add", pool, settings), "ADD");
    const [own = ""] = ips[0].address.split("/");
    requireSuccess(await call("check", pool, settings), "CHECK");
    for (const [from, to] of [
      [pod.netns, OTHER],
      [other, own],
      [pod.netns, NODE],
      [node, own],
    ] as const)
      expect(await ping(from, to, { count: 1 }), `${from.name} > ${to}`).toBe(true);
    expect(await pod.netns.ip(`route get ${SERVICE} from ${own}`)).toContain("dev eth0");
    requireSuccess(await call("del", pool, settings), "DEL");
    expect(await pod.netns.ip("rule")).not.toContain("proto 98");
    expect(await node.ip("route show table 500")).toBe("");
  });

  it(
    hasArp ? "detects a conflict, and a gateway that is not there" : "has no ARP, which detection says at once",
    async () => {
      const conflict = await call("add", "taken", { detectIPConflict: true });
      await call("del", "taken", {});
      const gateway = await call("add", hasArp ? "lost" : "routed", { detectGateway: true });
      await call("del", "lost", {});
      const [{ address: mac = "" } = {}] = await world.other.ipJson<{ address: string }>(`link show dev ${segment}`);
      const why =
        'Cannot probe on link "net1": it has no ARP (NOARP), as ipvlan in the modes l3 and l3s; set "detectIPConflict"';
      const wanted = hasArp
        ? [
            `Address ${RIVAL} of pool "taken" is in use by ${mac}`,
            `Gateway ${ABSENT} of interface "net1" did not answer`,
          ]
        : [why, why];
      expect([conflict, gateway].map(({ text, stderr }) => text + stderr)).toEqual(
        wanted.map((text) => expect.stringContaining(text)),
      );
    },
  );
});
