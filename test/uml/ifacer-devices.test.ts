/** Devices that the ifacer makes on a kernel that has VLAN devices and bonds, and those that it leaves alone. */

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { toCniError } from "../../host/agent/server/answer.ts";
import { ofRun } from "../world/long-cases.ts";
import { type IfacerNode, makeIfacerNode } from "./ifacer-node.ts";

let node: IfacerNode;

beforeAll(() => {
  node = makeIfacerNode("uid", ["m0", "m1", "m2"]);
});

afterAll(() => node.delete());
beforeEach(() => node.reset());

const link = (name: string) => node.json(`link show ${name}`)[0];
const isUp = (...names: string[]) =>
  node
    .json("link show up")
    .filter(({ ifname }) => names.includes(ifname))
    .map(({ ifname }) => ifname)
    .sort();
const names = () =>
  node
    .json("link show")
    .map(({ ifname }) => ifname)
    .filter((name) => name !== "lo" && !/^m[0-9]$/.test(name));
/** Options in the kernel's own files. */
const options = (bond: string, ...names: string[]) =>
  node.file(...names.map((name) => `/sys/class/net/${bond}/bonding/${name}`)).split("\n");
const bondOf = (options: string, mode: unknown = 1) => ({
  interfaces: ["m0", "m1"],
  bond: { name: "b0", mode, options },
});

/** An ADD that succeeds; another one then has nothing to do, and CHECK is content. */
async function add(conf: object) {
  const { result } = await node.add(conf);
  await node.check(conf);
  const done = node.log.filter(({ msg }) => msg === "Device set up").length;
  expect((await node.add(conf)).result).toEqual(result);
  expect(node.log.filter(({ msg }) => msg === "Device set up")).toHaveLength(done);
  return result;
}

/** The ADD is refused with this code, and nothing has changed. */
async function refuse(conf: object, code: number, text: string | RegExp) {
  const before = node.observe();
  const error = await node.add(conf).then(() => expect.unreachable(), toCniError);
  expect(error).toMatchObject({ code, message: expect.stringMatching(text) });
  expect(node.observe()).toEqual(before);
}

describe("a VLAN device", () => {
  it("on its master, which is set up when it is down", async () => {
    node.ip("link set m0 down");
    const result = await add({ interfaces: ["m0"], vlanID: 100 });
    expect(result).toEqual({ interfaces: [{ name: "m0.100", mac: link("m0").address }], ips: [], routes: [] });
    expect(link("m0.100")).toMatchObject({
      link: "m0",
      linkinfo: { info_kind: "vlan", info_data: { id: 100, protocol: "802.1Q" } },
    });
    expect(node.file("/proc/net/vlan/m0.100")).toContain("Device: m0");
    expect(isUp("m0", "m0.100")).toEqual(["m0", "m0.100"]);
  });

  it("with the highest id, and the same id on two masters", async () => {
    await add({ interfaces: ["m0"], vlanID: 4094 });
    await add({ interfaces: ["m1"], vlanID: 4094 });
    expect(names()).toEqual(["m0.4094", "m1.4094"]);
  });

  it("is none for id 0 and for no id", async () => {
    const mac = link("m0").address;
    for (const conf of [{ interfaces: ["m0"], vlanID: 0 }, { interfaces: ["m0"] }]) {
      expect(await add(conf)).toMatchObject({ interfaces: [{ name: "m0", mac }] });
    }
    expect(names()).toEqual([]);
  });

  it("that is there and down is set up, and stays the same device", async () => {
    node.ip("link add link m0 name m0.7 type vlan id 7");
    const { ifindex } = link("m0.7");
    await expect(node.check({ interfaces: ["m0"], vlanID: 7 })).rejects.toThrow("ip link set m0.7 up");
    await add({ interfaces: ["m0"], vlanID: 7 });
    expect(link("m0.7")).toMatchObject({ ifindex, flags: expect.arrayContaining(["UP"]) });
  });

  it("on a master that is named by an alternative name has that in its own", async () => {
    node.ip("link property add dev m0 altname other");
    const { interfaces } = await add({ interfaces: ["other"], vlanID: 100 });
    expect(interfaces).toEqual([{ name: "other.100", mac: link("m0").address }]);
    expect(link("other.100").link).toBe("m0");
    expect(await add({ interfaces: ["other"] })).toMatchObject({ interfaces: [{ name: "m0" }] });
    await refuse({ interfaces: ["m0"], vlanID: 100 }, 106, 'already exists as device "other.100", want it as "m0.100"');
  });

  it("whose name is an alternative name of such a device is that device", async () => {
    node.ip("link add link m0 name trunk7 type vlan id 7");
    node.ip("link property add dev trunk7 altname m0.7");
    expect(await add({ interfaces: ["m0"], vlanID: 7 })).toMatchObject({ interfaces: [{ name: "trunk7" }] });
    node.ip("link property add dev m2 altname other");
    await refuse(
      { interfaces: ["m1"], bond: { name: "other" } },
      106,
      '"m2" already exists and is of kind veth, not a bond',
    );
  });

  it("with another protocol is refused and not touched", async () => {
    node.ip("link add link m0 name m0.7 type vlan protocol 802.1ad id 7");
    await refuse({ interfaces: ["m0"], vlanID: 7 }, 106, "already exists and is 802.1ad, want 802.1Q");
  });
});

describe("a bond", () => {
  const modes = ["balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb"];
  const ofModes = modes.map((name, mode) => [mode, name] as const);
  it.each(ofRun(ofModes, ([mode]) => mode === 1 || mode === 4))("of mode %i (%s)", async (mode, name) => {
    await add(bondOf("miimon=100", mode % 2 === 0 ? mode : name));
    expect(options("b0", "mode", "slaves")).toEqual([`${name} ${mode}`, "m0 m1"]);
    expect(node.file("/proc/net/bonding/b0")).toContain("MII Polling Interval (ms): 100");
    expect(isUp("b0", "m0", "m1")).toEqual(["b0", "m0", "m1"]);
  });

  it("has the default name, the kernel's mode, and the written options", async () => {
    await add({ interfaces: ["m0"], vlanID: 9, bond: {} });
    expect(names()).toEqual(["vendor_bond0", "vendor_bond0.9"]);
    expect(options("vendor_bond0", "mode")).toEqual(["balance-rr 0"]);
    expect(link("vendor_bond0.9")).toMatchObject({ link: "vendor_bond0", flags: expect.arrayContaining(["UP"]) });
  });

  it("has members and a primary by alternative names", async () => {
    node.ip("link property add dev m0 altname other");
    await add({ interfaces: ["other", "m1"], bond: { name: "b0", mode: 1, options: "miimon=100;primary=other" } });
    expect(options("b0", "slaves", "primary")).toEqual(["m0 m1", "m0"]);
    await refuse(
      { interfaces: ["other", "m0"], bond: { name: "b1" } },
      106,
      '"other" and "m0" of "interfaces" are names of one interface, "m0"',
    );
  });

  it("has options of every type, read back from the kernel's own files", async () => {
    await add(
      bondOf(
        " lacp_rate = fast; xmit_hash_policy=layer3+4;min_links=0 ;ad_actor_system=02:00:00:00:00:07;updelay=250;",
        4,
      ),
    );
    const read = options("b0", "lacp_rate", "xmit_hash_policy", "min_links", "ad_actor_system", "miimon", "updelay");
    expect(read).toEqual(["fast 1", "layer3+4 1", "0", "02:00:00:00:00:07", "100", "200"]);
    node.reset();
    await add(
      bondOf(
        "arp_interval=100;arp_ip_target=10.0.0.1, 10.0.0.2;arp_validate=all;fail_over_mac=1;primary=m1;num_grat_arp=0",
      ),
    );
    const names = ["arp_interval", "arp_ip_target", "arp_validate", "fail_over_mac", "primary", "num_grat_arp"];
    expect(options("b0", ...names)).toEqual(["100", "10.0.0.1 10.0.0.2", "all 3", "active 1", "m1", "0"]);
  });

  it("takes the MTU that its members have", async () => {
    node.ip("link set m0 mtu 9000");
    node.ip("link set m1 mtu 4000");
    await add({ ...bondOf(""), vlanID: 5 });
    expect(["b0", "b0.5", "m0", "m1"].map((name) => link(name).mtu)).toEqual([4000, 4000, 4000, 4000]);
    node.reset();
    for (const member of ["m0", "m1"]) node.ip(`link set ${member} mtu 1500`);
  });

  it("that is there gets the members that it lacks, and is set up", async () => {
    await add({ ...bondOf("miimon=100"), interfaces: ["m0"] });
    const { ifindex } = link("b0");
    node.ip("link set b0 down");
    await expect(node.check(bondOf("miimon=100"))).rejects.toThrow("restoring it requires");
    await add(bondOf("miimon=100"));
    expect(link("b0")).toMatchObject({ ifindex, flags: expect.arrayContaining(["UP"]) });
    expect(options("b0", "slaves")).toEqual(["m0 m1"]);
  });

  it("that exists keeps its options, and the log names the differences", async () => {
    await add(bondOf("miimon=100"));
    await add(bondOf("miimon=200;resend_igmp=1;primary=m1"));
    expect(options("b0", "miimon", "primary")).toEqual(["100"]);
    expect(node.log.filter(({ level }) => level === 40).map(({ msg }) => msg)).toEqual(
      expect.arrayContaining([
        'Bond "b0" has miimon 100, the definition wants 200; left unchanged because other pods use the bond',
        'Bond "b0" has primary unset, the definition wants m1; left unchanged because other pods use the bond',
      ]),
    );
  });

  it("that came with the kernel's module is configured as a new one would be", async () => {
    node.ip("link add bond0 type bond");
    await add({
      interfaces: ["m0", "m1"],
      bond: { name: "bond0", mode: 4, options: "miimon=50;updelay=100;lacp_rate=1" },
    });
    expect(options("bond0", "mode", "miimon", "updelay", "lacp_rate")).toEqual(["802.3ad 4", "50", "100", "fast 1"]);
  });

  it("keeps a member that the definition does not name, and gets its own, but for one without a device", async () => {
    await add({ ...bondOf(""), interfaces: ["m0", "m2"] });
    await add({ ...bondOf(""), interfaces: ["m0", "m1", "m9"] });
    for (const member of ["m0", "m1", "m2"]) expect(node.ip(`-o link show ${member}`)).toContain("master b0");
  });

  it("of another mode is refused and not touched", async () => {
    node.ip("link add b0 type bond mode 4");
    await refuse(bondOf(""), 106, /in mode 4 .802.3ad., want mode 1 .active-backup./);
  });
});

it.each<[what: string, made: string[], conf: object, text: string]>([
  [
    "of another bond",
    ["link add b1 type bond", "link set m1 down", "link set m1 master b1"],
    bondOf(""),
    'is already a member of the bond "b1"',
  ],
  ["under a VLAN device", ["link add link m1 name m1.5 type vlan id 5"], bondOf(""), 'carries the device "m1.5"'],
  [
    "with an IPv4 address",
    ["addr add 10.9.0.1/24 dev m1"],
    bondOf(""),
    "has address 10.9.0.1/24 dev m1 and route 10.9.0.0/24",
  ],
  ["with an IPv6 address", ["addr add fd09::1/64 dev m1 nodad"], bondOf(""), "has address fd09::1/64 dev m1"],
  ["with the default route", ["route add default dev m1"], bondOf(""), "route default dev m1"],
])("a member: %s is refused, and nothing is made", async (_what, made, conf, text) => {
  for (const line of made) node.ip(line);
  await refuse(conf, 106, text);
});

describe("another process creates a device of that name at that moment", () => {
  /** Does it once, before the first operation. */
  const meanwhile = (line: string) => {
    let isDone = false;
    return () => {
      if (isDone) return;
      isDone = true;
      node.ip(line);
    };
  };

  it("the same one: it is taken", async () => {
    const conf = { interfaces: ["m0"], vlanID: 7 };
    await node.add(conf, meanwhile("link add link m0 name m0.7 type vlan id 7"));
    await node.check(conf);
    expect(node.log.at(-1)?.operations).toEqual(["host: ip link set m0.7 up"]);
    node.reset();
    const bond = bondOf("miimon=100");
    await node.add(bond, meanwhile("link add b0 type bond mode 1 miimon 100"));
    await node.check(bond);
    expect(options("b0", "slaves")).toEqual(["m0 m1"]);
  });

  it("another one: it is refused and not touched", async () => {
    const adding = node.add({ interfaces: ["m0"], vlanID: 7 }, meanwhile("link add link m0 name m0.7 type vlan id 8"));
    await expect(adding).rejects.toThrow("already exists and is VLAN 8, want VLAN 7");
    expect(link("m0.7").flags).not.toContain("UP");
  });
});

it("an option that is younger than the kernel is refused, and not passed over", async () => {
  await refuse(bondOf("broadcast_neighbor=on", 4), 108, "this kernel does not support bond option broadcast_neighbor");
});
