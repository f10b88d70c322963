/**
 * Workloads as the controller reads them from a real API server, and whether those that addresses are retained for live
 * (docs/workloads.md). Their wishes to Subnets are in subnets.test.ts and test/unit/controller/owners.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { openAddressOwners } from "../../host/controller/owners/address-owners.ts";
import type { KubeClient } from "../../host/kubernetes/client.ts";
import { type KubeObject, METADATA, METADATA_LIST } from "../../host/kubernetes/kube-api.ts";
import { ObjectBudget } from "../../host/lib/object-budget.ts";
import type { Workload } from "../../host/resources/member.ts";
import { connectClient } from "../lab/cluster/in-process.ts";
import { createPod } from "../lab/cluster/objects.ts";
import {
  applyWorkloadKinds,
  CLAIMS,
  INSTANCES,
  instance,
  ipamClaim,
  MACHINES,
  machine,
  SETS,
  statefulSet,
} from "../lab/cluster/workload-kinds.ts";
import type { ControlPlane } from "../lab/control-plane.ts";
import { recordLog } from "../world/recorded-log.ts";
import { borrowPlane } from "./borrow-plane.ts";

const SOON = { timeout: 30_000 };

let plane: ControlPlane;
let api: KubeClient;

const soon = () => AbortSignal.timeout(SOON.timeout);
const deps = () => ({
  api,
  budget: new ObjectBudget({ totalBytes: 2 ** 30, home: "" }),
  log: recordLog().log,
  random: () => 0.5,
});

beforeAll(async () => {
  plane = await borrowPlane();
  await plane.client.create("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } });
  api = await connectClient(plane.kubeconfig, "owners");
});

afterAll(async () => {
  await api?.close();
  await plane?.stop();
});

it("owners of pools: of pods of other kinds the API server sends the metadata only, in lists and in watches", async () => {
  await createPod(plane.client, { name: "plain", node: "n1" });
  const list = await api.call({ method: "GET", path: "/api/v1/pods", accept: METADATA_LIST });
  const seen: KubeObject[] = [...(list.items as KubeObject[])];
  const listed = seen.length;
  const done = new AbortController();
  const onEvent = ({ object }: { object: KubeObject }) => {
    seen.push(object);
    done.abort();
  };
  const query = { resourceVersion: "0" };
  const watch = api.watch({ path: "/api/v1/pods", query, accept: METADATA, onEvent, signal: done.signal });
  await expect(watch).rejects.toThrow();
  expect([listed > 0, seen.length > listed]).toEqual([true, true]);
  for (const object of seen)
    expect([object.spec, object.status, typeof object.metadata]).toEqual([undefined, undefined, "object"]);
});

it("retention: owners of addresses do not count as gone while the server does not know their kind; report their ends when it does", async () => {
  const owners = openAddressOwners(deps());
  try {
    await owners.synced(soon());
    const uids: string[] = [];
    owners.subscribe((uid) => uids.push(uid));
    const of = (kind: string, name = "x", uid = "u", member = name): Workload => ({
      ...{ kind, namespace: "shop", name, uid, member },
    });
    const see = (...workloads: Workload[]) => Promise.all(workloads.map((each) => owners.readLiveness(each, soon())));
    const unknown = ["VirtualMachine", "VirtualMachineInstance", "IPAMClaim", "Deployment"].map((kind) => of(kind));
    expect(await see(...unknown, of("StatefulSet"))).toEqual([...Array(4).fill("unknown"), "gone"]);

    const { uid } = (await plane.client.create(SETS, statefulSet("web", 3, 5))).metadata;
    const member = (name: string) => of("StatefulSet", "web", uid, name);
    const members = () => see(...["web-4", "web-5", "web-7", "web-8"].map(member));
    expect(await members()).toEqual(["gone", "alive", "alive", "gone"]);
    const strange = ["web", "web-x", "webs-5", "web-05", "web-5-5"].map(member);
    expect(await see(...strange)).toEqual(Array(5).fill("gone"));
    await plane.client.patch(`${SETS}/web`, { metadata: { labels: { of: "none" } } });
    await plane.client.patch(`${SETS}/web`, { spec: { replicas: 1 } });
    await expect.poll(() => uids, SOON).toEqual([uid]);
    expect(await members()).toEqual(["gone", "alive", "gone", "gone"]);
    await plane.client.delete(`${SETS}/web`);
    await expect.poll(() => uids, SOON).toEqual([uid, uid]);
    await plane.client.create(SETS, statefulSet("web", 3, 5));
    expect(await see(member("web-5"))).toEqual(["gone"]);

    await applyWorkloadKinds(plane.client);
    const vm = (await plane.client.create(MACHINES, machine("db"))).metadata.uid;
    const vmi = (await plane.client.create(INSTANCES, instance("job"))).metadata.uid;
    const body = ipamClaim("db.net1", { network: "lab", interface: "net1" });
    const claim = (await plane.client.create(CLAIMS, body)).metadata.uid;
    const others = () =>
      see(of("VirtualMachine", "db", vm), of("VirtualMachineInstance", "job", vmi), of("IPAMClaim", "db.net1", claim));
    await expect.poll(others, SOON).toEqual(["alive", "alive", "alive"]);
    // The kinds are asked for every ten seconds until then.
    const followed = [of("VirtualMachine", "db"), of("VirtualMachineInstance", "job"), of("IPAMClaim", "db.net1")];
    await expect.poll(() => followed.map((each) => owners.findUid(each)), SOON).toEqual([vm, vmi, claim]);
    await plane.client.patch(`${MACHINES}/db`, { spec: { runStrategy: "Halted" } });
    await plane.client.patch(`${INSTANCES}/job/status`, { status: { phase: "Succeeded" } });
    await expect.poll(() => uids, SOON).toContain(vmi);
    expect(await others()).toEqual(["alive", "gone", "alive"]);
    await plane.client.delete(`${MACHINES}/db`);
    await plane.client.delete(`${CLAIMS}/db.net1`);
    await expect.poll(() => uids, SOON).toEqual(expect.arrayContaining([vm, claim]));
    expect(await others()).toEqual(["gone", "gone", "gone"]);
    expect(owners.problems).toEqual([]);
  } finally {
    await owners.close();
  }
});
