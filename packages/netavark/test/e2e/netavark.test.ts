/** The driver of netavark, called as netavark calls it: four commands, JSON on stdin, the namespace as argument. */
import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeSysctl } from "../../../../host/kernel/sysctl.ts";
import { root } from "../../../../scripts/setup/paths.mjs";
import { answer, openScriptedAgent } from "../../../../test/e2e/shim/scripted-agent.ts";
import { ipPool, manifest, vendorConf } from "../../../../test/lab/manifests.ts";
import { type LabNode, NetnsWorld } from "../../../../test/lab/netns/world.ts";
import { addVeth, type Netns } from "../../../../test/lab/netns.ts";
import { until } from "../../../../test/lab/waiting.ts";
import { type Container, callDriver, containerCall, PODMAN_NETWORK } from "../netavark.ts";

let world: NetnsWorld;
let node: LabNode;
let lan: Netns;

beforeAll(async () => {
  world = await NetnsWorld.build("nv", async (built) => built);
  const netns = await world.addNetns("node");
  lan = await world.addNetns("lan");
  await addVeth({ netns, name: "uplink" }, { netns: lan, name: "lan" });
  await lan.ip("addr add 10.9.0.1/24 dev lan");
  await lan.ip("addr add fd09::1/64 dev lan nodad");
  await netns.ip("addr add 10.9.0.2/24 dev uplink");
  node = await world.addNode(netns, {
    "conf.yaml": vendorConf({ enableIPv4: true, enableIPv6: true, allocationCooldown: "0s" }),
    "coordinator.yaml": manifest("Coordinator", "default", { mode: "underlay" }),
    "pools.yaml": [
      ipPool("four", "10.9.0.0/24", { ips: ["10.9.0.100-10.9.0.109"], gateway: "10.9.0.1", default: true }),
      ipPool("six", "fd09::/64", { ips: ["fd09::100-fd09::109"], gateway: "fd09::1", default: true }),
      ipPool("small", "10.9.1.0/24", { ips: ["10.9.1.7"] }),
    ].join("---\n"),
  });
});

afterAll(() => world?.delete());

/** A namespace whose IPv6 addresses the kernel does not probe, which takes a second. */
async function addQuick(name: string): Promise<Netns> {
  const netns = await world.addNetns(name);
  for (const key of ["accept_dad", "router_solicitations"]) writeSysctl(netns.path, `ipv6/conf/default/${key}`, "0");
  return netns;
}

async function call(args: readonly string[], stdin: string, env: Readonly<Record<string, string>> = node.agent.env) {
  const { exitCode, stdout, stderr } = await callDriver(args, stdin, env);
  return { exitCode, stderr, text: stdout, reply: stdout === "" ? {} : JSON.parse(stdout) };
}

async function setup(netns: Netns, container: Container) {
  const { exitCode, text, reply } = await call(["setup", netns.path], containerCall(container));
  expect(exitCode, text).toBe(0);
  return reply;
}

async function teardown(netns: Netns, container: Container) {
  expect(await call(["teardown", netns.path], containerCall(container))).toMatchObject({ exitCode: 0, text: "" });
}

interface Row {
  readonly address: string;
  readonly pod: string;
  readonly state: string;
}

/** The addresses in use, with their containers. */
async function bound(): Promise<string[]> {
  const rows: Row[] = await node.agent.get("/v1/allocations");
  return rows.filter(({ state }) => state === "Bound").map(({ address, pod }) => `${address} ${pod}`);
}

const ping = async (from: Netns, to: string) => (await from.exec(["ping", "-c1", "-W2", to])).exitCode;

describe("info and create", () => {
  it("info names the protocol, also without an agent", async () => {
    const outcome = await call(["info"], "", { BERTH_SOCKET: "/nowhere" });
    expect(outcome).toMatchObject({ exitCode: 0, reply: { api_version: "1.0.0", version: expect.any(String) } });
  });

  it("create returns the network, for which Podman allocates no addresses and serves no names", async () => {
    const { reply } = await call(["create"], JSON.stringify({ ...PODMAN_NETWORK, labels: { a: "b" } }));
    expect(reply).toEqual({
      ...PODMAN_NETWORK,
      labels: { a: "b" },
      dns_enabled: false,
      ipam_options: { driver: "none" },
    });
  });

  const subnets = [{ subnet: "10.9.0.0/24" }];
  it.each<[string, object, string]>([
    ["an unknown option", { options: { master: "uplink", bclim: "9" } }, 'field "options.bclim": found this option'],
    ["an MTU of no number", { options: { mtu: "big" } }, 'field "options.mtu": found "big", want a number of bytes'],
    ["a VLAN of no parent", { options: { vlan: "12" } }, 'field "options.master": found nothing'],
    ["a wrong VLAN", { options: { master: "uplink", vlan: "5000" } }, 'field "options.vlan": found 5000'],
    ["a NIC's mode", { options: { mode: "private" } }, 'field "options.mode": found "private"'],
    ["a wrong mode", { options: { master: "uplink", mode: "over" } }, 'field "options.mode": found "over"'],
    ["another kind", { options: { master: "uplink", type: "bridge" } }, "want macvlan or ipvlan"],
    ["a subnet", { subnets }, "the pools have the addresses"],
    ["an internal network", { internal: true }, "use a pool without a gateway"],
    ["no name", { name: "" }, 'field "name"'],
  ])("create refuses %s", async (_what, change, text) => {
    const { exitCode, reply } = await call(["create"], JSON.stringify({ ...PODMAN_NETWORK, ...change }));
    expect({ exitCode, reply }).toEqual({ exitCode: 1, reply: { error: expect.stringContaining(text) } });
  });
});

describe("setup and teardown", () => {
  it("two containers get addresses of both families, reach each other and the router, and give them back", async () => {
    const [one, two] = [await world.addNetns("one"), await world.addNetns("two")];
    const status = await setup(one, { id: "one" });
    const [link] = await one.ipJson<{ address: string }>("link show dev eth0");
    const subnets = [
      { ipnet: expect.stringMatching(/^10\.9\.0\.10\d\/24$/), gateway: "10.9.0.1" },
      { ipnet: expect.stringMatching(/^fd09::10\d\/64$/), gateway: "fd09::1" },
    ];
    const nic = { mac_address: link?.address, subnets };
    expect(status).toEqual({ dns_search_domains: [], dns_server_ips: [], interfaces: { eth0: nic } });
    await setup(two, { id: "two", options: { static_ips: ["10.9.0.109", "fd09::109"] } });
    for (const target of ["10.9.0.1", "fd09::1", "10.9.0.109", "fd09::109"])
      expect(await ping(one, target), target).toBe(0);
    expect(await one.ip("route show default")).toContain("default via 10.9.0.1 dev eth0");
    expect((await bound()).filter((row) => row.endsWith(" c-one"))).toHaveLength(2);
    for (const _ of [1, 2]) await teardown(one, { id: "one" });
    await teardown(two, { id: "two" });
    expect(await bound()).toEqual([]);
    expect(await one.ip("link show")).not.toContain(" eth0@");
  });

  it("a container has the requested address, MAC address and name of the NIC", async () => {
    const netns = await addQuick("fixed");
    const wanted = { static_ips: ["10.9.0.105"], static_mac: "aa:bb:cc:dd:ee:01" };
    const { interfaces } = await setup(netns, { id: "fixed", options: { ...wanted, interface_name: "lan0" } });
    const subnets = [{ ipnet: "10.9.0.105/24" }, {}];
    expect(interfaces).toMatchObject({ lan0: { mac_address: "aa:bb:cc:dd:ee:01", subnets } });
    await teardown(netns, { id: "fixed", options: { interface_name: "lan0" } });
    expect(await bound()).toEqual([]);
  });

  it.each([
    ["a metric", { metric: "300", mode: "bridge" }, /^default via 10\.9\.0\.1 dev eth0 .*metric 300/],
    ["no default route", { no_default_route: "1" }, /^$/],
  ])("a network without a parent uses that of the default route, with an MTU and %s", async (_what, options, route) => {
    const netns = await addQuick("options");
    const container = { id: "o", network: { options: { mtu: "1400", ...options } } };
    expect((await call(["setup", netns.path], containerCall(container))).reply.error).toContain("no default route");
    await node.netns.ip("route add default via 10.9.0.1");
    await setup(netns, container);
    const [nic] = await netns.ipJson<{ mtu: number; link_index: number }>("link show dev eth0");
    const [uplink] = await node.netns.ipJson<{ ifindex: number }>("link show dev uplink");
    expect(nic).toMatchObject({ mtu: 1_400, link_index: uplink?.ifindex });
    expect(await netns.ip("route show default")).toMatch(route);
    expect(await netns.ip("-6 route show default")).toMatch(/metric/.test(`${route}`) ? /metric 300/ : /^$/);
    await teardown(netns, container);
    await node.netns.ip("route del default");
    await netns.delete();
  });

  it("the node reaches the container of a network of one pool in mode underlay", async () => {
    const netns = await addQuick("near");
    const container = { id: "near", network: { options: { parent: "uplink", mode: "underlay", "ipv4-pool": "four" } } };
    await setup(netns, container);
    const [address = ""] = (await bound()).map((row) => row.split(" ")[0] ?? "");
    expect(await ping(node.netns, address)).toBe(0);
    await teardown(netns, container);
  });

  it("a refused setup leaves nothing: no NIC, no address", async () => {
    const netns = await addQuick("refused");
    await netns.ip("link add eth0 type veth peer name eth1");
    const free = { id: "r", options: { interface_name: "lan0" } };
    for (const [container, text] of [
      [{ id: "r" }, `Interface "eth0" exists in ${netns.path}`],
      [{ id: "r", options: { interface_name: "lan0", static_ips: ["10.1.1.1"] } }, "10.1.1.1"],
      [{ ...free, network: { options: { master: "nic9" } } }, '"nic9"'],
      [{ ...free, network: { options: { master: "nic9", vlan: "12" } } }, "nic9"],
      [{ ...free, network: { options: { master: "uplink", mtu: "9000" } } }, 'want at most 1500, as "uplink" has'],
      [{ id: "r", options: { interface_name: "lan0", static_mac: "xx" } }, "MAC"],
      [{ id: "r", options: { interface_name: "a/b" } }, "an interface name"],
    ] as const) {
      const { exitCode, reply } = await call(["setup", netns.path], containerCall(container));
      expect({ exitCode, reply }, text).toEqual({ exitCode: 1, reply: { error: expect.stringContaining(text) } });
    }
    expect(await netns.ip("link show")).not.toContain("lan0");
    expect(await bound()).toEqual([]);
    const own = await call(["setup", `/proc/${node.agent.pid}/ns/net`], containerCall({ id: "r" }));
    expect(own.reply).toEqual({ error: expect.stringContaining("is the host's own network namespace") });
  });

  it("a setup whose caller is killed is undone", async () => {
    const netns = await world.addNetns("killed");
    const child = spawn(join(root, "dist", "bin", "berth"), ["setup", netns.path], { env: node.agent.env });
    child.stdin.end(containerCall({ id: "k" }));
    await until("the container has addresses", async () => (await bound()).length === 2);
    // The kernel probes the IPv6 address for longer.
    child.kill("SIGKILL");
    await until("it has none", async () => (await bound()).length === 0);
    expect(child.exitCode).toBe(null);
    expect(await netns.ip("link show")).not.toContain(" eth0@");
  });

  it("a teardown of another container's namespace at the path leaves its NIC", async () => {
    const netns = await addQuick("reused");
    await setup(netns, { id: "new" });
    await teardown(netns, { id: "old" });
    await teardown(netns, { id: "old", network: { options: { mode: "nonsense" } } });
    expect(await netns.ip("-details link show dev eth0")).toContain("macvlan mode bridge");
    await teardown(netns, { id: "new", network: { options: { mode: "nonsense" } } });
    expect(await bound()).toEqual([]);
  });
});

it("detection of Podman's stored network applies to the setup: a conflict is found before the address is used", async () => {
  const network = { name: "probing", options: { master: "uplink", detectIPConflict: "true", "ipv4-pool": "four" } };
  await writeFile(
    join(node.agent.podmanNetworksDir, "probing.json"),
    JSON.stringify({ ...PODMAN_NETWORK, ...network }),
  );
  await writeFile(join(node.agent.podmanNetworksDir, "podman.json"), '{"name":"podman","driver":"bridge"}');
  await lan.ip("addr add 10.9.0.103/24 dev lan");
  const netns = await addQuick("probing");
  const container = { id: "p", network, options: { static_ips: ["10.9.0.103"] } };
  const { reply } = await call(["setup", netns.path], containerCall(container));
  expect(reply).toEqual({ error: expect.stringMatching(/10\.9\.0\.103 of pool "four" is in use by/) });
  await lan.ip("addr del 10.9.0.103/24 dev lan");
});

it("without an agent setup says so, a teardown is kept in the spool, and the next agent gives the address back", async () => {
  const netns = await addQuick("down");
  await setup(netns, { id: "d" });
  await node.agent.stop();
  const { exitCode, reply } = await call(["setup", netns.path], containerCall({ id: "e" }));
  expect({ exitCode, reply }).toEqual({
    exitCode: 1,
    reply: { error: expect.stringMatching(/^Agent at .*again later$/) },
  });
  await teardown(netns, { id: "d" });
  expect(readdirSync(node.agent.spool)).toHaveLength(1);
  await netns.delete();
  await node.agent.start();
  expect(readdirSync(node.agent.spool)).toEqual([]);
  expect(await bound()).toEqual([]);
});

const refusal = (code: number) => `{"cniVersion":"1.1.0","code":${code},"msg":"The \\"disk\\" is full"}`;

it("a teardown that the agent cannot process now is kept in the spool, and one that it never can is an error", async () => {
  await using agent = await openScriptedAgent((connection) => connection.end(answer(503, refusal(11))));
  const tear = () => call(["teardown", "/run/netns/x"], containerCall({ id: "t" }), agent.env);
  expect(await tear()).toMatchObject({
    exitCode: 0,
    text: "",
    stderr: expect.stringContaining("could not process it now"),
  });
  expect(readdirSync(agent.env.BERTH_SPOOL ?? "")).toHaveLength(1);
  const setup = await call(["setup", "/run/netns/x"], containerCall({ id: "t" }), agent.env);
  expect(setup).toMatchObject({ exitCode: 1, reply: { error: 'The "disk" is full' } });
  agent.script = (connection) => connection.end(answer(422, refusal(7)));
  expect(await tear()).toMatchObject({ exitCode: 1, reply: { error: 'The "disk" is full' } });
  expect(agent.requests[0]?.toString()).not.toContain("no/name");
});

it.each([
  ["no namespace", ["setup"], "{}", "The path of the network namespace is missing"],
  ["no JSON", ["setup", "/run/netns/x"], "nonsense", "Call of netavark: "],
  ["another value", ["teardown", "/run/netns/x"], "[]", "Call of netavark: "],
  ["lacking keys", ["setup", "/run/netns/x"], '{"container_id":"a"}', "container_name"],
  ["a container of no name", ["setup", "/run/netns/x"], containerCall({ id: "a b" }), "container_id"],
  ["an absent namespace", ["setup", "/run/netns/absent-é"], containerCall({ id: "a" }), "printable ASCII"],
  ["too much", ["create"], "x".repeat(2 ** 20 + 1), "larger than 1048576 bytes"],
])("refuses %s", async (_what, args, stdin, text) => {
  const { exitCode, reply } = await call(args, stdin);
  expect({ exitCode, reply }).toEqual({ exitCode: 1, reply: { error: expect.stringContaining(text) } });
});
