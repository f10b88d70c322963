/** The ifacer as a runtime calls it: the built shim and agent, the whole chain, and traffic over what it has made. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { ping } from "../../scripts/lab/traffic.ts";
import { ALL_VERSIONS, eventually } from "../e2e/world.ts";
import { type IfacerWorld, makeIfacerWorld, OTHER, VLAN } from "./ifacer-world.ts";

let world: IfacerWorld;

beforeAll(async () => {
  world = await makeIfacerWorld();
});

afterAll(() => world.delete());
afterEach(() => world.removeDevices());

const trunk = { interfaces: ["e0", "e1"], vlanID: VLAN, bond: { name: "b0", mode: 1, options: "miimon=50" } };

async function succeed(call: ReturnType<IfacerWorld["call"]>) {
  const outcome = await call;
  expect(outcome.exitCode, outcome.text + outcome.stderr).toBe(0);
  return outcome.stdout;
}

describe("the chain of ifacer, macvlan and coordinator", () => {
  const plugins = [
    { type: "ifacer", ...trunk },
    { type: "macvlan", master: `b0.${VLAN}`, ipam: { type: "berth" } },
    { type: "coordinator", mode: "overlay", serviceSnat: "off" },
  ];

  it("gives the pod an address on the trunk, whose traffic goes on when a member fails", async () => {
    const { pod, node, other } = world;
    // The pod's first NIC, as another network plugin makes it.
    await node.ip(`link add veth0 type veth peer name eth0 netns ${pod.name}`);
    await node.ip("addr add 10.244.0.1/24 dev veth0");
    await node.ip("link set veth0 up");
    await pod.ip("addr add 10.244.0.2/24 dev eth0");
    await pod.ip("link set eth0 up");
    await pod.ip("route add default via 10.244.0.1");

    const result = await succeed(world.chain("add", plugins));
    expect(result.ips[0].address).toMatch(/^10\.66\.0\.\d+\/24$/);
    expect(result.interfaces[0]).toMatchObject({ name: "net1", sandbox: pod.path });
    await succeed(world.chain("check", plugins));
    expect(await ping(pod, OTHER)).toBe(true);

    // The other machine's untagged side does not hear it.
    await other.ip("addr flush dev br0");
    const bonding = async () => (await node.exec(["cat", "/proc/net/bonding/b0"])).stdout;
    expect(await bonding()).toContain("Currently Active Slave: e0");
    const running = pod.exec(["ping", "-n", "-i0.1", "-c25", "-W1", OTHER]);
    await other.ip("link set e0 down");
    const now = await eventually(bonding, (text) => text.includes("Currently Active Slave: e1"));
    expect(now).toContain("Currently Active Slave: e1");
    const { stdout } = await running;
    const received = Number(/(\d+) received/.exec(stdout)?.[1]);
    expect(received, stdout).toBeGreaterThan(12);
    expect(stdout).toMatch(/icmp_seq=25 /);
    await other.ip("link set e0 up");

    await succeed(world.chain("del", plugins));
    expect(await world.devices()).toEqual(expect.arrayContaining(["b0", `b0.${VLAN}`]));
    await succeed(world.chain("del", plugins));
  });
});

describe("the protocol", () => {
  const conf = { interfaces: ["e0"], vlanID: 7 };

  it.each(ALL_VERSIONS)("in CNI %s", async (cniVersion) => {
    const ip = { address: "10.66.0.9/24", ...(cniVersion < "1" && { version: "4" }) };
    const prevResult = { cniVersion, interfaces: [{ name: "net9" }], ips: [ip], routes: [{ dst: "10.0.0.0/8" }] };
    const first = await succeed(world.call("ADD", { ...conf, cniVersion }));
    const mac = (await world.node.ipJson<{ address: string }>("link show e0.7"))[0]?.address;
    expect(first).toEqual({ cniVersion, interfaces: [{ name: "e0.7", mac }] });
    expect(await succeed(world.call("ADD", { ...conf, cniVersion, prevResult }))).toEqual(prevResult);
    expect(await succeed(world.call("CHECK", { ...conf, cniVersion, prevResult: first }))).toBeUndefined();
  });

  it("CHECK says what is missing, DEL leaves the device", async () => {
    await succeed(world.call("ADD", conf));
    await succeed(world.call("DEL", conf));
    expect(await world.devices()).toEqual(["e0.7"]);
    await world.node.ip("link set e0.7 down");
    const { stdout } = await world.call("CHECK", conf);
    expect(stdout).toMatchObject({ code: 106, details: "host: ip link set e0.7 up" });
  });

  it("STATUS judges the configuration, GC does nothing, DEL never fails for a configuration", async () => {
    await succeed(world.call("STATUS", trunk));
    expect((await world.call("STATUS", { interfaces: [] })).stdout.code).toBe(7);
    await succeed(world.call("GC", { ...trunk, "cni.dev/valid-attachments": [] }));
    for (const conf of [trunk, { interfaces: "e0" }, { ...trunk, prevResult: { ips: 3 } }, {}]) {
      await succeed(world.call("DEL", conf));
    }
    expect(await world.devices()).toEqual([]);
  });
});

it.each([2, 20])("%i ADDs at once make one device, and all succeed", async (count) => {
  const calls = Array.from({ length: count }, (_, index) => succeed(world.call("ADD", trunk, `c${index}`)));
  const results = await Promise.all(calls);
  expect(new Set(results.map((result) => JSON.stringify(result))).size).toBe(1);
  expect(await world.devices()).toEqual(["b0", `b0.${VLAN}`]);
  const links = await world.node.ipJson<{ ifname: string; master?: string }>("link show");
  expect(links.filter(({ master }) => master === "b0").map(({ ifname }) => ifname)).toEqual(["e0", "e1"]);
});

it("every bad input has its own message, and nothing is made", async () => {
  const bond = (rest: object) => ({ interfaces: ["e0", "e1"], bond: { name: "b0", mode: 1, ...rest } });
  const rows: [conf: object, text: string][] = [
    [{ interfaces: ["e0"], vlanID: 4095 }, 'field "vlanID": found 4095, want a whole number from 0 to 4094'],
    [{ interfaces: ["e0"], vlanID: -1 }, 'field "vlanID": found -1,'],
    [{ interfaces: ["e0"], vlanID: "10" }, 'field "vlanID": found "10",'],
    [{ interfaces: ["e0", "e1"], vlanID: 10 }, 'field "interfaces": found 2 interfaces, want one master interface'],
    [bond({ mode: 7 }), 'field "bond.mode": found 7, want a mode from 0 to 6'],
    [bond({ options: "miimon" }), 'found the entry "miimon", want "miimon=<value>"'],
    [bond({ options: "miimon=" }), 'found the entry "miimon=", want "miimon=<value>"'],
    [bond({ options: "miimon=abc" }), 'found the entry "miimon=abc", want miimon= followed by an integer'],
    [bond({ options: "foo=1" }), 'found the entry "foo=1", want a bond option'],
    [bond({ name: "abcdefghijklmnop" }), 'field "bond.name": found "abcdefghijklmnop"'],
    [{ interfaces: ["abcdefghijklmnop"] }, 'field "interfaces[0]": found "abcdefghijklmnop"'],
    [{ ...bond({ name: "abcdefghijkl" }), vlanID: 100 }, 'makes the device name "abcdefghijkl.100" of 16 bytes'],
  ];
  const messages = await Promise.all(
    rows.map(async ([conf, text]) => {
      const { exitCode, stdout } = await world.call("ADD", conf);
      expect([exitCode, stdout.code]).toEqual([1, 7]);
      expect(stdout.msg).toContain(text);
      return stdout.msg;
    }),
  );
  expect(new Set(messages).size).toBe(rows.length);
  expect(await world.devices()).toEqual([]);
});
