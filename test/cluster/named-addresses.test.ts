/**
 * Addresses that workloads name for their members, with two built controllers and built agents: reserved as soon as the
 * workload is there, bound by the member alone, and free when the workload names them no longer.
 */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { deletePod, type LabPod, NAMESPACES } from "../lab/cluster/objects.ts";
import {
  applyWorkloadKinds,
  CLAIMS,
  ipamClaim,
  MACHINES,
  machine,
  SETS,
  statefulSet,
} from "../lab/cluster/workload-kinds.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import type { KubeClient, KubeObject } from "../lab/kube-client.ts";
import { borrowPlane } from "./borrow-plane.ts";

const PATIENCE = { timeout: 60_000 };
let world: World;
let client: KubeClient;

beforeAll(async () => {
  const garbageCollection = { interval: "10s", grace: "3s" };
  const settings = { enableIPv6: false, allocationCooldown: "1s", garbageCollection };
  world = await startWorld({ startPlane: borrowPlane, nodes: ["n1", "n2"], settings });
  ({ client } = world);
  await applyWorkloadKinds(client);
  await world.pool("blue", { subnet: "10.6.0.0/24", default: true });
  await Promise.all(["a", "b"].map((name) => world.startController(name)));
}, 120_000);
afterEach(async () => {
  for (const collection of [SETS, MACHINES, CLAIMS, `${NAMESPACES}/shop/pods`])
    await client.delete(collection, { gracePeriodSeconds: 0 });
  await expect.poll(records, PATIENCE).toEqual([]);
});
afterAll(() => world?.stop());

const templateOf = (ips: unknown) => ({
  metadata: { annotations: { "ipam.vendor.io/ips": ips === undefined ? null : JSON.stringify(ips) } },
});

/** Returns the UID. */
async function makeSet(name: string, replicas: number, ips: unknown): Promise<string> {
  const set = statefulSet(name, replicas) as KubeObject;
  const { metadata } = templateOf(ips);
  set.spec.template.metadata = { ...set.spec.template.metadata, ...metadata };
  return (await client.create(SETS, set)).metadata.uid;
}

const change = (spec: object) => client.patch(`${SETS}/db`, { spec });

const member = (name: string, uid: string, node = "n1", ips: unknown = undefined): Promise<LabPod> => {
  const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: name.replace(/-\d+$/, ""), uid };
  return world.createPod({ name, node, owner, ...(ips === undefined ? {} : { annotations: { ips } }) });
};

const attach = async (pod: LabPod) => {
  const { addresses, refusal } = await world.node(pod.node).runtime.attach(pod, { limitMs: 3_000 });
  return addresses.join() || refusal;
};

async function end(pod: LabPod): Promise<void> {
  await world.node(pod.node).runtime.detach(pod);
  await deletePod(client, pod);
}

/** `ADDRESS STATE NODE MEMBER` of each record. */
async function records(): Promise<string[]> {
  return (await world.allocations())
    .map(({ spec: { address, state, node, workload } }) =>
      [address, state, node, ...(workload === undefined ? [] : [workload.member])].join(" "),
    )
    .sort();
}

const untilRecords = (...wanted: readonly string[]) => expect.poll(records, PATIENCE).toEqual(wanted);

/** `REASON NAME: NOTE` of each Event. */
async function notes(): Promise<string> {
  const { items } = await client.get("/apis/events.k8s.io/v1/namespaces/shop/events");
  return items.map(({ reason, regarding, note }: KubeObject) => `${reason} ${regarding.name}: ${note}`).join("\n");
}

it.each([
  [[{ ipv4: "db" }], ', field ipv4: found "db", want an IPv4 address'],
  [{ "db-0": [{ ipv4: "10.6.0.50", ipv6: "10.6.0.50" }] }, ', field ipv6: found "10.6.0.50", want an IPv6 address'],
  ["10.6.0.50", ': found "10.6.0.50", want a list such as [{"ipv4":"10.6.0.50"}]'],
])("are refused at admission if they are none: %j", async (ips, wanted) => {
  // As JSON has it.
  const refusal = JSON.stringify(`annotation ipam.vendor.io/ips${wanted}`).slice(1, -1);
  const refused = (attempt: Promise<unknown>) => expect(attempt).rejects.toThrow(refusal);
  await refused(makeSet("db", 1, ips));
  await refused(client.create(MACHINES, { ...machine("vm"), spec: { template: templateOf(ips) } }));
  await refused(world.createPod({ name: "pod", node: "n1", annotations: { ips: JSON.stringify(ips) } }));
  await makeSet("db", 0, [{ ipv4: "10.6.0.50", ipv6: "fd06::50" }]);
  await refused(change({ template: templateOf(ips) }));
  await change({ replicas: 1 });
});

const BOTH = { "db-0": [{ ipv4: "10.6.0.50" }], "db-1": [{ ipv4: "10.6.0.51" }] };

it("are reserved with the workload, bound by its members, and free again when it names them no longer", {
  timeout: 240_000,
}, async () => {
  const uid = await makeSet("db", 2, BOTH);
  await untilRecords("10.6.0.50 Kept - db-0", "10.6.0.51 Kept - db-1");
  await expect.poll(notes, PATIENCE).toContain("AddressReserved db: Reserved: 10.6.0.50 for db-0, 10.6.0.51 for db-1");
  const thief = await world.createPod({ name: "thief", node: "n1", annotations: { ips: [{ ipv4: "10.6.0.50" }] } });
  expect(await attach(thief)).toContain("10.6.0.50: it is retained for StatefulSet shop/db");
  const first = await member("db-0", uid, "n1", BOTH);
  expect(await attach(first)).toBe("10.6.0.50");
  await untilRecords("10.6.0.50 Bound n1 db-0", "10.6.0.51 Kept - db-1");
  await end(first);
  await untilRecords("10.6.0.50 Kept n1 db-0", "10.6.0.51 Kept - db-1");
  // Another address for the first one, whose sandbox is made again meanwhile.
  const again = await member("db-0", uid, "n2", BOTH);
  expect(await attach(again)).toBe("10.6.0.50");
  await change({ template: templateOf({ ...BOTH, "db-0": [{ ipv4: "10.6.0.60" }] }) });
  await untilRecords("10.6.0.50 Bound n2 db-0", "10.6.0.51 Kept - db-1", "10.6.0.60 Kept - db-0");
  await world.node("n2").runtime.detach(again);
  expect(await attach(again)).toBe("10.6.0.50");
  await untilRecords("10.6.0.50 Bound n2 db-0", "10.6.0.51 Kept - db-1", "10.6.0.60 Kept - db-0");
  await end(again);
  const next = await member("db-0", uid, "n1", { "db-0": [{ ipv4: "10.6.0.60" }] });
  expect(await attach(next)).toBe("10.6.0.60");
  await untilRecords("10.6.0.51 Kept - db-1", "10.6.0.60 Bound n1 db-0");
  await change({ replicas: 1 });
  await untilRecords("10.6.0.60 Bound n1 db-0");
  await change({ replicas: 2 });
  await untilRecords("10.6.0.51 Kept - db-1", "10.6.0.60 Bound n1 db-0");
  await change({ template: templateOf(undefined) });
  await untilRecords("10.6.0.60 Bound n1 db-0");
  await end(next);
});

it("are the workload's that is made again at once, of a set, a machine and a claim", { timeout: 240_000 }, async () => {
  await makeSet("db", 1, [{ ipv4: "10.6.0.50" }]);
  const vm = { ...machine("vm"), spec: { template: templateOf([{ ipv4: "10.6.0.51" }]) } };
  await client.create(MACHINES, vm);
  await client.create(CLAIMS, ipamClaim("vm.lan", { network: "lan", interface: "net1", ipRequests: ["10.6.0.52/24"] }));
  const all = ["10.6.0.50 Kept - db-0", "10.6.0.51 Kept - vm", "10.6.0.52 Kept - vm.lan"];
  await untilRecords(...all);
  await Promise.all([`${SETS}/db`, `${MACHINES}/vm`, `${CLAIMS}/vm.lan`].map((path) => client.delete(path)));
  const uid = await makeSet("db", 1, [{ ipv4: "10.6.0.50" }]);
  await client.create(MACHINES, vm);
  await expect.poll(async () => (await world.spec("10.6.0.50"))?.workload.uid, PATIENCE).toBe(uid);
  await untilRecords(...all.slice(0, 2));
  const pod = await member("db-0", uid, "n1", [{ ipv4: "10.6.0.50" }]);
  expect(await attach(pod)).toBe("10.6.0.50");
  await client.delete(`${MACHINES}/vm`);
  await client.delete(`${SETS}/db`);
  await end(pod);
});

it("stay with their holders, also while leaders are killed, and workloads are told of that, and of the limit", {
  timeout: 240_000,
}, async () => {
  const holder = await world.createPod({ name: "old", node: "n1", annotations: { ips: [{ ipv4: "10.6.0.50" }] } });
  expect(await attach(holder)).toBe("10.6.0.50");
  await makeSet("db", 1, [{ ipv4: "10.6.0.50" }]);
  const note = "AddressRefused db: Not reserved: 10.6.0.50 for db-0: it is taken: 10.6.0.50 (pod shop/old)";
  await expect.poll(notes, PATIENCE).toContain(note);
  await untilRecords("10.6.0.50 Bound n1");
  // The set gets the address that its holder leaves.
  await end(holder);
  await untilRecords("10.6.0.50 Kept - db-0");
  const many = Array.from({ length: 12 }, (_, at) => [`big-${at}`, [{ ipv4: `10.6.0.${at + 100}` }]]);
  const making = makeSet("big", 12, Object.fromEntries(many));
  for (const next of ["c", "d"]) await world.replaceLeader(next);
  await making;
  await expect.poll(async () => (await records()).length, PATIENCE).toBe(8);
  await expect.poll(notes, PATIENCE).toMatch(/AddressRefused big: .* namespace shop has as many addresses as it may/);
});
