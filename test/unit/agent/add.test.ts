import { describe, expect, it } from "vitest";
import { addAddresses } from "../../../host/agent/ipam/add.ts";
import type { Addition } from "../../../host/agent/request/plugin.ts";
import { decodeVendorConf } from "../../../host/config/vendor-conf.ts";
import { formatIp } from "../../../host/net/ip.ts";
import { formatPrefix } from "../../../host/net/prefix.ts";
import { UNATTACHED_MS } from "../../../host/registry/registry.ts";
import type { Snapshot } from "../../../host/resources/snapshot.ts";
import { TestClock } from "../../world/clock.ts";
import { addRequest, openNode, type TestNode } from "../../world/node.ts";
import { decodedSnapshot, ipPool, vendorConf } from "../../world/subjects.ts";
import { ip } from "../../world/values.ts";

let node: TestNode;

/** A pod that announces one NIC beside the first, unless `networks` says otherwise. */
function podOf(own: Record<string, unknown>, networks = "lab"): object {
  const texts = Object.entries(own).map(([key, value]) => [`ipam.vendor.io/${key}`, JSON.stringify(value)]);
  const annotations = { ...Object.fromEntries(texts), "k8s.v1.cni.cncf.io/networks": networks };
  const metadata = { namespace: "shop", name: "web-0", uid: "uid-1", annotations };
  return { apiVersion: "v1", kind: "Pod", metadata };
}

const listed = (...nics: [name: string, pool: string][]) => ({
  ippools: nics.map(([name, pool]) => ({ interface: name, ipv4: [pool] })),
});
const TWO_NICS = listed(["eth0", "blue"], ["net1", "green"]);
const ONE_POOL = podOf(listed(["eth0", "blue"], ["net1", "blue"]));
const POOLS = [ipPool("blue", "10.6.0.0/30"), ipPool("green", "10.7.0.0/30")];

async function open(pod: object, pools = POOLS, more: Partial<Snapshot> = {}, enableIPv6 = false): Promise<void> {
  const snapshot = decodedSnapshot(vendorConf(`enableIPv6: ${enableIPv6}`), ...pools, pod);
  node = await openNode({ snapshot: { ...snapshot, ...more }, clock: new TestClock({ isHasty: true }) });
}

const add = (ifName: string, body = {}): Promise<Addition> =>
  addAddresses(node.ipam(), addRequest(ifName, { body }), new AbortController().signal);

/** Time passes, and addresses that are then due are freed. */
async function later(milliseconds: number): Promise<void> {
  node.clock.jump(milliseconds);
  await node.registry.expire();
}

const addressesOf = ({ result }: Addition): string[] => result.ips.map(({ address }) => formatPrefix(address));
const routesOf = ({ result }: Addition): string[] => result.routes.map(({ dst }) => formatPrefix(dst));

/** The NICs that have an address. */
async function bound(): Promise<string[]> {
  const all = await node.registry.list(undefined, 100);
  return all.flatMap(({ state, ifName }) => (state === "Bound" ? [ifName] : [])).sort();
}

const used = (...pools: string[]) => pools.map((pool) => node.poolCache.counts(pool)?.used);
const release = (ifName: string, containerId = "c1") => node.registry.release({ containerId, ifName });

describe("a NIC that has one family of two", () => {
  const pod = podOf({ ippool: { ipv4: ["blue"], ipv6: ["six"] } });
  const six = { owner: "uid-1", network: "lab", prefixLength: 125, pool: "six" };
  const rows = [
    ["the same sandbox", "c1", ["10.6.0.1"], ["10.6.0.1/30", "fd00::1/125"]],
    ["a new sandbox", "c0", ["10.6.0.1"], ["10.6.0.1/30", "fd00::1/125"]],
    ["the same sandbox, and no address for it", "c1", [], 101],
    ["a new sandbox, and no address for it", "c0", [], 101],
  ] as const;
  for (const sixes of [["fd00::1"], ["fd00::1-fd00::6"]])
    it.each(rows)(`gets the other one, or nothing: %s (%s; ${sixes})`, async (_what, containerId, ips, expected) => {
      await open(pod, [ipPool("blue", "10.6.0.0/30", { ips }), ipPool("six", "fd00::/125", { ips: sixes })], {}, true);
      await node.bind("fd00::1", "web-0", { ...six, containerId });
      if (expected === 101) await expect(add("eth0")).rejects.toMatchObject({ code: 101 });
      else expect(addressesOf(await add("eth0")).sort()).toEqual(expected);
      expect(await bound()).toHaveLength(expected === 101 ? 1 : 2);
    });
});

it("the route of a NIC that comes late or never is no error for the first NIC's repeated ADD, long after its address was taken back", async () => {
  await open(podOf({ ...TWO_NICS, routes: [{ dst: "172.16.0.0/12", gw: "10.7.0.2" }] }));
  const first = addressesOf(await add("eth0"));
  await later(UNATTACHED_MS + 1);
  expect(await bound()).toEqual(["eth0"]);
  expect([addressesOf(await add("eth0")), await bound()]).toEqual([first, ["eth0", "net1"]]);
  await later(UNATTACHED_MS + 1);
  expect(used("green")).toEqual([0]);
  expect(routesOf(await add("net1"))).toEqual(["172.16.0.0/12"]);
});

const nics = ["eth0", ...Array.from({ length: 31 }, (_, index) => `net${index + 1}`)];
it.each([
  ["a NIC that the pod does not announce gets nothing", "", "eth0", ["eth0"]],
  ["NICs that it announces, by their names", "lab,lab,lab@net9,lab@other", "eth0", ["eth0", "net1", "net2", "net9"]],
  ["one that it does not announce when that comes", "lab", "net7", ["eth0", "net1", "net7"]],
])("a list of 32 NICs: %s", async (_what, networks, ifName, wanted) => {
  const pools = listed(...nics.map((nic): [string, string] => [nic, "wide"]));
  await open(podOf(pools, networks), [ipPool("wide", "10.6.0.0/24")]);
  await add(ifName);
  expect(await bound()).toEqual(wanted);
});

describe("the limit", () => {
  const wide = [ipPool("wide", "10.6.0.0/24", { default: true })];
  const vendorConf = decodeVendorConf({ enableIPv6: false, maxAddressesPerPod: 3, maxAddressesPerNamespace: 100 }, "x");
  const refused = (message: string) => expect.objectContaining({ code: 101, message });
  const ofPod = (has: number, wants: number) =>
    refused(
      `Pod shop/web-0 has ${has} addresses and wants ${wants} more, and may have 3 (maxAddressesPerPod of vendor-conf)`,
    );

  it("is of one pod maxAddressesPerPod, NIC by NIC", async () => {
    await open(podOf({}, "lab,lab,lab,lab"), wide, { vendorConf });
    for (const ifName of ["eth0", "net1", "net2", "net1"]) await add(ifName);
    await expect(add("net3")).rejects.toEqual(ofPod(3, 1));
    expect(await bound()).toHaveLength(3);
  });

  it("is of one pod maxAddressesPerPod, all NICs at once", async () => {
    const nics = ["eth0", "net1", "net2", "net3"].map((nic): [string, string] => [nic, "wide"]);
    await open(podOf(listed(...nics), "lab,lab,lab"), wide, { vendorConf });
    await expect(add("eth0")).rejects.toEqual(ofPod(0, 4));
    expect(await bound()).toEqual([]);
  });

  const coordinator = (addresses: number): Snapshot["coordinator"] => ({
    ...{ kind: "Coordinator", name: "default", spec: { podCIDRType: "auto", warnings: [] } },
    fullNamespaces: new Map([["shop", addresses]]),
  });

  it("is of one namespace the controller's count; a NIC keeps its addresses", async () => {
    const full = { vendorConf, coordinator: coordinator(100) };
    await open(podOf({}), wide, full);
    const message =
      'Pods and workloads of namespace "shop" have 100 addresses, and may have 100 (maxAddressesPerNamespace of vendor-conf)';
    await expect(add("eth0")).rejects.toEqual(refused(message));
    const nic = { owner: "uid-1", ifName: "net1", containerId: "c1", network: "lab", pool: "wide" };
    await node.bind("10.6.0.9", "web-0", nic);
    expect(addressesOf(await add("net1"))).toEqual(["10.6.0.9/24"]);
    const unlimited = { ...vendorConf, maxAddressesPerNamespace: 0 };
    for (const more of [
      { vendorConf, coordinator: coordinator(99) },
      { ...full, vendorConf: unlimited },
    ]) {
      await open(podOf({}), wide, more);
      await add("eth0");
    }
  });
});

describe("two NICs of one pool", () => {
  const asking = (address: string) => ({ args: { cni: { ips: [address] } } });
  const plain = ({ result }: Addition): string => formatIp(result.ips[0]?.address.ip ?? ip("::"));

  it("the pod's own cooling address is not taken over for its other NIC, when that is full", async () => {
    await open(ONE_POOL);
    await add("eth0");
    await release("eth0");
    const [cooling] = await node.registry.list(undefined, 1);
    const other = ["10.6.0.1", "10.6.0.2"].find((each) => ip(each).value !== cooling?.ip.value) ?? "";
    await node.bind(other, "x", { prefixLength: 30 });
    await expect(add("eth0")).rejects.toMatchObject({ code: 101 });
    expect(await bound()).toHaveLength(1);
  });

  it("an address is asked for that was the other NIC's and cools: the other NIC gets another one", async () => {
    await open(ONE_POOL);
    const [first, second] = [plain(await add("eth0")), plain(await add("net1"))];
    for (const ifName of ["eth0", "net1"]) await release(ifName);
    expect(plain(await add("eth0", asking(second)))).toBe(second);
    expect(plain(await add("net1"))).toBe(first);
  });

  it("an address is asked for that is the last one and cools: it is not taken over for the other NIC as well", async () => {
    await open(ONE_POOL, [ipPool("blue", "10.6.0.0/29", { ips: ["10.6.0.1"] })]);
    await node.bind("10.6.0.1", "x", { containerId: "x", prefixLength: 29 });
    await release("eth0", "x");
    await expect(add("eth0", asking("10.6.0.1"))).rejects.toMatchObject({ code: 101 });
    expect(await bound()).toEqual([]);
  });
});

it("one NIC in two networks has addresses of each, and is asked for nothing that its other NICs have", async () => {
  await open(podOf(TWO_NICS));
  const wan = { name: "wan" };
  const first = [addressesOf(await add("eth0")), addressesOf(await add("eth0", wan))];
  expect(first[1]).not.toEqual(first[0]);
  expect([addressesOf(await add("eth0")), addressesOf(await add("eth0", wan))]).toEqual(first);
  expect(await bound()).toEqual(["eth0", "eth0", "net1"]);
});

it.each([
  ["in another subnet gives it no gateway", ipPool("blue", "10.7.0.0/29", { gateway: "10.7.0.1", default: true }), ""],
  [
    "under another name gives it its own",
    ipPool("sky", "10.6.0.0/29", { gateway: "10.6.0.1", default: true }),
    "10.6.0.1",
  ],
])("an address keeps its way when its pool is edited: one %s", async (_what, edited, gateway) => {
  const pod = podOf({});
  await open(pod, [ipPool("blue", "10.6.0.0/29", { gateway: "10.6.0.1", default: true })]);
  const first = addressesOf(await add("eth0"));
  node.follow(decodedSnapshot(vendorConf("enableIPv6: false"), edited, pod));
  const again = await add("eth0");
  const gateways = again.result.ips.map((each) => (each.gateway === undefined ? "" : formatIp(each.gateway)));
  expect([addressesOf(again), gateways]).toEqual([first, [gateway]]);
});

it("an address whose pool has become invalid is refused, because its way is unknown", async () => {
  const pod = podOf({});
  await open(pod, [ipPool("blue", "10.6.0.0/29", { default: true })]);
  await add("eth0");
  const edited = decodedSnapshot(vendorConf("enableIPv6: false"), ipPool("sky", "10.8.0.0/29", { default: true }), pod);
  node.follow({ ...edited, refused: new Map([["blue", "is refused: its gateway"]]) });
  const message = expect.stringMatching(/of pool "blue", which is refused: its gateway; fix the pool$/);
  await expect(add("eth0")).rejects.toMatchObject({ code: 11, message });
});

describe("routes of the pod", () => {
  const routed = (gw: string, networks?: string) =>
    open(podOf({ ...TWO_NICS, routes: [{ dst: "172.16.0.0/12", gw }] }, networks));

  it("one that no NIC can carry is refused with the last NIC, and its addresses go back", async () => {
    await routed("10.9.0.1");
    const message = expect.stringContaining("no NIC of the pod can carry the route to 172.16.0.0/12");
    await expect(add("eth0")).rejects.toMatchObject({ code: 102, message });
    expect([await bound(), used("blue", "green")]).toEqual([[], [0, 0]]);
  });

  it("one over a router that the pools of two NICs name goes to the NIC that is attached first", async () => {
    const pools = ["a", "b"].map((name, index) => ipPool(name, `fd00:${index + 1}::/125`, { gateway: "fe80::1" }));
    const ippools = ["eth0", "net1"].map((nic, index) => ({ interface: nic, ipv6: [index === 0 ? "a" : "b"] }));
    const vendorConf = decodeVendorConf({ enableIPv4: false }, "x");
    await open(podOf({ ippools, routes: [{ dst: "fd09::/16", gw: "fe80::1" }] }), pools, { vendorConf });
    expect([routesOf(await add("eth0")), routesOf(await add("net1"))]).toEqual([["::/0", "fd09::/16"], ["::/0"]]);
  });

  it("whose NICs are not announced wait for the NIC that carries them", async () => {
    await routed("10.7.0.2", "");
    expect([routesOf(await add("eth0")), routesOf(await add("net1"))]).toEqual([[], ["172.16.0.0/12"]]);
  });

  it("whose NICs are not announced are refused with the last of them when none carries them", async () => {
    await routed("10.9.0.1", "");
    await add("eth0");
    await expect(add("net1")).rejects.toMatchObject({ code: 102 });
  });
});

it("undo leaves the NIC that has been attached since", async () => {
  await open(podOf(TWO_NICS));
  const { undo } = await add("eth0");
  await add("net1");
  await undo();
  expect(await bound()).toEqual(["net1"]);
});

it("one space's pod does not keep the other space's address away for ever", async () => {
  const pools = ["a", "b"].map((space) => ipPool(space, "10.0.0.0/30", { addressSpace: space, ips: ["10.0.0.1"] }));
  await open(podOf(listed(["eth0", "a"], ["net1", "b"])), pools);
  await expect(add("eth0")).resolves.toBeDefined();
  await release("eth0");
  const [cooling] = await node.registry.list(undefined, 1);
  await node.bind("10.0.0.1", "x", { space: "a", prefixLength: 30, pool: "a", replaces: cooling?.version ?? 0 });
  node.poolCache.unmark("a", ip("10.0.0.1"));
  await expect(add("eth0")).rejects.toMatchObject({ code: 101 });
  expect(used("a", "b")).toEqual([1, 0]);
});

it("a plain pod's ADD asks the registry one thing", async () => {
  const metadata = { namespace: "shop", name: "web-0", uid: "uid-1" };
  await open({ apiVersion: "v1", kind: "Pod", metadata }, [ipPool("blue", "10.6.0.0/30", { default: true })]);
  const methods: string[] = [];
  node.around = (method, _args, run) => {
    methods.push(method);
    return run();
  };
  await add("eth0");
  expect(methods).toEqual(["claim"]);
});
