/**
 * Pools and Subnets that an older release accepted and this one refuses: stored before the upgrade, then read,
 * served, reported and changed.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { startConditions } from "../../host/controller/conditions/conditions-controller.ts";
import type { Condition } from "../../host/resources/status.ts";
import { BERTH } from "../lab/cluster/objects.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { openEtcd } from "../lab/history/etcd.ts";
import { borrowPlane } from "./borrow-plane.ts";
import { type Findings, findingsOfError } from "./crds/findings.ts";

const STORED = {
  edge: { subnet: "10.77.0.0/24", ips: ["10.77.0.10-10.77.0.20"], gateway: "10.77.0.255" },
  mixed: { subnet: "192.0.0.0/2", ips: ["223.255.255.254-224.0.0.9"] },
  loop: { subnet: "127.10.0.0/24" },
};
const SPECIAL =
  "want unicast addresses outside 0.0.0.0/8, 127.0.0.0/8, 224.0.0.0/4, 255.255.255.255/32, ::/127, fe80::/10, ff00::/8";
const NO_EDGE = "want another address than the first and the last one of 10.77.0.0/24";

let world: World;

beforeAll(async () => {
  world = await startWorld({ startPlane: borrowPlane, nodes: ["n1"] });
  for (const [name, spec] of Object.entries(STORED)) await store("IPPool", name, { default: false, ...spec });
  await store("Subnet", "edge", { subnet: "10.78.0.0/24", gateway: "10.78.0.255" });
});

afterAll(() => world?.stop());

/** As the kinds of an older release have let it pass: in etcd, past the rules of today. */
async function store(kind: string, name: string, spec: object): Promise<void> {
  await world.create(kind, name, { subnet: "10.1.0.0/24" });
  const key = `/registry/ipam.vendor.io/${kind.toLowerCase()}s/${name}`;
  const etcd = openEtcd(world.plane.etcdUrl);
  try {
    const { keys } = await etcd.read({ start: key, end: `${key}\0` });
    await etcd.put(key, JSON.stringify({ ...JSON.parse(keys[0]?.value ?? ""), spec }));
  } finally {
    etcd.close();
  }
}

const change = (plural: string, name: string, patch: object): Promise<Findings> =>
  world.client.patch(`${BERTH}/${plural}/${name}`, patch).then(() => [], findingsOfError);

it.each([
  ["ippools", "edge"],
  ["ippools", "mixed"],
  ["ippools", "loop"],
  ["subnets", "edge"],
])("of %s, %s keeps its values while other fields, its metadata and its status change", async (plural, name) => {
  const path = `${BERTH}/${plural}/${name}`;
  expect(
    await change(plural, name, { metadata: { labels: { seen: "yes" }, finalizers: ["other.example/one"] } }),
  ).toEqual([]);
  expect(await change(plural, name, { spec: { namespaceName: ["shop"], excludeIPs: [] } })).toEqual([]);
  await world.client.patch(`${path}/status`, { status: { total: 1 } });
  expect(await change(plural, name, { metadata: { finalizers: null } })).toEqual([]);
  expect(await world.client.get(path)).toMatchObject({ spec: { namespaceName: ["shop"] }, status: { total: 1 } });
});

it("a refused value cannot be replaced by another one", async () => {
  const fields = async (name: string, spec: object) =>
    (await change("ippools", name, { spec })).map(({ field }) => field);
  expect(await fields("edge", { gateway: "10.77.0.0" })).toEqual(["spec.gateway"]);
  expect(await fields("mixed", { ips: ["223.255.255.254-224.0.0.8"] })).toEqual(["spec.ips[0]"]);
  expect(await fields("loop", { ips: ["127.10.0.9"] })).toEqual(["spec.ips[0]"]);
});

it("the agent serves the remaining fields, names the others, and refuses a pool without any", async () => {
  const { agent, runtime } = world.node("n1");
  const problems = async () => (await agent.get("/v1/health")).problems.toSorted();
  await expect
    .poll(problems, { timeout: 30_000 })
    .toEqual([
      `IPPool "edge" has values that new IPPools cannot have: field "spec.gateway": found "10.77.0.255", ${NO_EDGE}`,
      `IPPool "loop" is refused: field "spec.subnet": found "127.10.0.0/24", ${SPECIAL}`,
      `IPPool "mixed" has values that new IPPools cannot have: field "spec.ips[0]": found "223.255.255.254-224.0.0.9", ${SPECIAL}`,
    ]);
  const add = async (name: string, pool: string) => {
    const pod = await world.createPod({ name, node: "n1", annotations: { ippool: { ipv4: [pool] } } });
    const { exitCode, text } = await runtime.add(pod, runtime.newContainerId());
    const { ips, code, msg } = JSON.parse(text);
    return exitCode === 0 ? ips.map(({ address }: { address: string }) => address) : `${code} ${msg}`;
  };
  expect(await add("web-0", "edge")).toEqual([expect.stringMatching(/^10[.]77[.]0[.]1/)]);
  const mixed = [await add("web-1", "mixed"), await add("web-2", "mixed")].flat();
  expect(mixed.sort()).toEqual(["223.255.255.254/2", "223.255.255.255/2"]);
  expect(await add("web-3", "mixed")).toMatch(/^101 .*2 of 2 in use/);
  expect(await add("web-4", "loop")).toMatch(/^100 .*pool "loop" cannot be used$/);
});

it("the controller says so in a condition, once by an event", async () => {
  await world.lead({ conditions: startConditions });
  const conditions = async (plural: string, name: string): Promise<unknown> => {
    const found: Condition[] = (await world.read(plural, name))?.status?.conditions ?? [];
    return found.map(({ type, status, reason }) => `${type} ${status} ${reason}`).sort();
  };
  const invalid = "InvalidValues True AcceptedBefore";
  await expect.poll(() => conditions("ippools", "edge"), { timeout: 30_000 }).toEqual([invalid, "Ready True Ready"]);
  await expect.poll(() => conditions("ippools", "mixed"), { timeout: 30_000 }).toEqual([invalid, "Ready True Ready"]);
  await expect
    .poll(() => conditions("ippools", "loop"), { timeout: 30_000 })
    .toEqual([invalid, "Ready False Refused", "Stalled True Refused"]);
  await expect.poll(() => conditions("subnets", "edge"), { timeout: 30_000 }).toEqual([invalid, "Ready True Ready"]);
  expect(await change("ippools", "edge", { spec: { gateway: "10.77.0.1" } })).toEqual([]);
  await expect
    .poll(() => conditions("ippools", "edge"), { timeout: 30_000 })
    .toEqual(["InvalidValues False AllValid", "OtherGateway True PodsWithOtherGateway", "Ready True Ready"]);
});
