/**
 * Selection in a cluster: which rule decides, and which pools the filters leave, from objects that a real API server
 * serves. The rules themselves are tested in test/unit/ipam; here it is that each of them is fed from the right
 * object. Who asks: selection-pods.test.ts.
 */

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { CniError } from "../../host/cni/error.ts";
import { applyDefinition, COORDINATORS, POOLS } from "../lab/cluster/objects.ts";
import type { World } from "../lab/cluster/world.ts";
import { NODE, openSelecting, type Selecting } from "./selecting.ts";

const NETWORKS = "k8s.v1.cni.cncf.io/networks";
const DEFAULT_NETWORK = "v1.multus-cni.io/default-network";
const COORDINATOR = `${COORDINATORS}/default`;

let selecting: Selecting;
let world: World;
let pods = 0;

beforeAll(async () => {
  selecting = await openSelecting();
  ({ world } = selecting);
  const pools = { ippools: 1, ippool: 2, namespace: 3, conf: 4, default: 5, other: 6 };
  for (const [name, net] of Object.entries(pools)) {
    await selecting.pool(`p-${name}`, { subnet: `10.${net}.0.0/24`, default: name === "default" });
  }
  await world.namespace("named", { annotations: { "ipam.vendor.io/default-ipv4-ippool": '["p-namespace"]' } });
});

afterAll(() => world?.stop());

afterEach(() => selecting.settings({}));

const only = (...names: string[]) => ({ ippool: { ipv4: names } });

/** A pod of its own, and where its address is from. */
async function poolOf(spec: object, options: object = {}): Promise<readonly string[]> {
  const pod = await world.createPod({ node: NODE, name: `p${++pods}`, ...spec });
  return (await selecting.add(pod, options)).pools;
}

describe("the order of precedence", () => {
  const ipam = { default_ipv4_ippool: ["p-conf"] };
  const ippools = [{ interface: "eth0", ipv4: ["p-ippools"] }];
  it.each([
    ["ippools", { namespace: "named", annotations: { ippools, ...only("p-ippool") } }, { ipam }, "p-ippools"],
    ["ippool", { namespace: "named", annotations: only("p-ippool") }, { ipam }, "p-ippool"],
    ["the namespace", { namespace: "named" }, { ipam }, "p-namespace"],
    ["the CNI configuration", {}, { ipam }, "p-conf"],
    ["pools with default: true", {}, {}, "p-default"],
  ])("%s", async (_what, spec, options, pool) => expect(await poolOf(spec, options)).toEqual([pool]));

  it.each(["subnet", "subnets"])("annotation %s comes first, and is refused until pools are generated", async (key) => {
    const entry = { ipv4: ["net"] };
    const annotations = { [key]: key === "subnet" ? entry : [{ interface: "eth0", ...entry }], ...only("p-ippool") };
    const refusal = { code: 102, message: expect.stringContaining(`"ipam.vendor.io/${key}"`) };
    await expect(poolOf({ annotations })).rejects.toMatchObject(refusal);
    await selecting.settings({ enableSubnet: false });
    expect(await poolOf({ annotations })).toEqual(["p-ippool"]);
  });

  it("a namespace that was made just before its pod is known", async () => {
    const annotations = { "ipam.vendor.io/default-ipv4-ippool": '["p-other"]' };
    await world.namespace("young", { annotations });
    expect(await poolOf({ namespace: "young" })).toEqual(["p-other"]);
  });
});

describe("filters", () => {
  /** The reason for which the pod's only pool is passed over, as its owner is told. */
  async function briefOf(pool: string, spec: object = {}, options: object = {}): Promise<string> {
    return (await textsOf(pool, spec, options)).brief;
  }

  /** The same as the node's log has it. */
  async function refusalOf(pool: string, spec: object = {}, options: object = {}): Promise<string> {
    return (await textsOf(pool, spec, options)).refusal;
  }

  async function textsOf(pool: string, spec: object, options: object): Promise<{ brief: string; refusal: string }> {
    const outcome = poolOf({ annotations: only(pool), ...spec }, options);
    const error: unknown = await outcome.then(String, (failure: unknown) => failure);
    expect(error).toMatchObject({ code: 100, forLog: expect.any(String) });
    const [brief = "", refusal = ""] = [(error as CniError).message, (error as CniError).forLog].map((text) =>
      text?.replace(/^.*pool "[^"]*" /, ""),
    );
    return { brief, refusal };
  }

  it("nodeAffinity, by the labels that the node has now", async () => {
    await selecting.pool("f-zone", { subnet: "10.12.0.0/24", nodeAffinity: { matchLabels: { zone: "b" } } });
    expect(await refusalOf("f-zone")).toContain("nodeAffinity does not match");
    await world.client.patch(`/api/v1/nodes/${NODE}`, { metadata: { labels: { zone: "b" } } });
    const outcome = () => poolOf({ annotations: only("f-zone") }).catch(() => undefined);
    await expect.poll(outcome, { timeout: 30_000 }).toEqual(["f-zone"]);
  });

  it("namespaceName and namespaceAffinity", async () => {
    await selecting.pool("f-names", { subnet: "10.13.0.0/24", namespaceName: ["infra"] });
    await selecting.pool("f-labels", { subnet: "10.14.0.0/24", namespaceAffinity: { matchLabels: { team: "net" } } });
    expect(await refusalOf("f-names")).toBe('namespaceName is "infra", the pod\'s namespace is "shop"');
    expect(await briefOf("f-names")).toBe("is for other namespaces (spec.namespaceName)");
    expect(await refusalOf("f-labels")).toContain("namespaceAffinity does not match");
    await world.namespace("team", { labels: { team: "net" } });
    expect(await poolOf({ namespace: "infra", annotations: only("f-names") })).toEqual(["f-names"]);
    expect(await poolOf({ namespace: "team", annotations: only("f-labels") })).toEqual(["f-labels"]);
  });

  it("podAffinity", async () => {
    await selecting.pool("f-pod", { subnet: "10.15.0.0/24", podAffinity: { matchLabels: { app: "db" } } });
    expect(await refusalOf("f-pod")).toBe("podAffinity does not match the labels of the pod");
    expect(await poolOf({ annotations: only("f-pod"), labels: { app: "db" } })).toEqual(["f-pod"]);
  });

  it("multusName, with the namespace of the definition", async () => {
    const config = { cniVersion: "1.0.0", type: "macvlan", ipam: { type: "berth" } };
    await applyDefinition(world.client, "infra", "lab", config);
    await applyDefinition(world.client, "shop", "lab", config);
    await selecting.pool("f-net", { subnet: "10.16.0.0/24", multusName: ["infra/lab"] });
    const annotations = { ...only("f-net"), [NETWORKS]: "lab,infra/lab" };
    const options = (ifName: string) => ({ ifName, network: "lab" });
    expect(await refusalOf("f-net", { annotations }, options("net1"))).toContain('multusName is "infra/lab"');
    expect(await poolOf({ annotations }, options("net2"))).toEqual(["f-net"]);
  });

  it("a pool that is being deleted", async () => {
    const finalizers = ["example.com/hold"];
    await selecting.pool("f-gone", { subnet: "10.17.0.0/24" });
    await world.client.patch(`${POOLS}/f-gone`, { metadata: { finalizers } });
    await world.client.delete(`${POOLS}/f-gone`);
    await expect.poll(() => refusalOf("f-gone"), { timeout: 30_000 }).toBe("is being deleted");
    await world.client.patch(`${POOLS}/f-gone`, { metadata: { finalizers: null } });
  });

  it("a pool that the API server takes and that cannot be used is passed over with its reason", async () => {
    await selecting.pool("f-bad", { subnet: "10.18.0.0/24", ips: ["10.18.0.5-10.18.0.20", "10.18.0.10-10.18.0.30"] });
    expect(await refusalOf("f-bad")).toMatch(/^cannot be used: field "spec.ips/);
    expect(await poolOf({ annotations: only("f-bad", "p-other") })).toEqual(["p-other"]);
    expect(selecting.node.snapshot.problems.join()).toContain('IPPool "f-bad" cannot be used');
    expect(selecting.node.cluster.readiness().ready).toBe(true);
    await world.client.delete(`${POOLS}/f-bad`);
  });

  it("a pod whose pool has become bad keeps its address, and is not attached without its gateway", async () => {
    const good = { subnet: "10.21.0.0/24", gateway: "10.21.0.1", ips: ["10.21.0.5-10.21.0.20"] };
    await selecting.pool("f-edit", good);
    const pod = await world.createPod({ node: NODE, name: `p${++pods}`, annotations: only("f-edit") });
    const { addresses } = await selecting.add(pod);
    await selecting.pool("f-edit", { ...good, ips: [...good.ips, "10.21.0.10"] });
    const again = () => selecting.add(pod).catch((error: unknown) => error);
    const refusal = `Interface "eth0" has ${addresses[0]} of pool "f-edit", which cannot be used: field "spec.ips`;
    await expect
      .poll(again, { timeout: 30_000 })
      .toMatchObject({ code: 11, message: expect.stringContaining(refusal) });
    await selecting.pool("f-edit", good);
    await expect.poll(again, { timeout: 30_000 }).toMatchObject({ addresses });
  });
});

it("a pod of a namespace that has its share of addresses gets none, until it may have more", async () => {
  await world.namespace("greedy");
  await world.create("Coordinator", "default", {}).catch(() => {});
  const report = (fullNamespaces: object[]) =>
    world.client.patch(`${COORDINATOR}/status`, { status: { fullNamespaces } });
  await report([{ name: "greedy", addresses: 16_384 }]);
  const pod = await world.createPod({
    node: NODE,
    name: `p${++pods}`,
    namespace: "greedy",
    annotations: only("p-other"),
  });
  const outcome = () =>
    selecting.add(pod).then(
      ({ pools }) => pools.length,
      (error: CniError) => `${error.code} ${error.message}`,
    );
  const refusal =
    '101 Pods and workloads of namespace "greedy" have 16384 addresses, and may have 16384 (maxAddressesPerNamespace of vendor-conf)';
  await expect.poll(() => selecting.node.snapshot.coordinator?.fullNamespaces?.size, { timeout: 30_000 }).toBe(1);
  const other = await world.createPod({
    node: NODE,
    name: `p${++pods}`,
    namespace: "greedy",
    annotations: only("p-other"),
  });
  expect(await selecting.add(other).catch(({ code, message }) => `${code} ${message}`)).toBe(refusal);
  await report([]);
  await expect.poll(outcome, { timeout: 30_000 }).toBe(1);
});

describe("several NICs", () => {
  const berth = (pool: string, rest: object = {}) => ({
    ...{ cniVersion: "1.0.0", plugins: [{ type: "macvlan", ipam: { type: "berth", default_ipv4_ippool: [pool] } }] },
    ...rest,
  });

  it("the default network of a pod has the names of its definition", async () => {
    await applyDefinition(world.client, "kube-system", "core", berth("p-conf", { name: "inner" }));
    await selecting.pool("d-core", { subnet: "10.20.0.0/24", multusName: ["kube-system/core"] });
    const annotations = { ...only("d-core"), [DEFAULT_NETWORK]: "core" };
    await expect.poll(() => poolOf({ annotations }, { network: "inner" }), { timeout: 30_000 }).toEqual(["d-core"]);
    await expect(poolOf({ annotations: only("d-core") }, { network: "inner" })).rejects.toMatchObject({ code: 100 });
  });
});
