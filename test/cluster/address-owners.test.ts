/** Liveness of the owners of retained addresses, read from a real API server (docs/workloads.md). */

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type OpenAddressOwners, openAddressOwners } from "../../host/controller/owners/address-owners.ts";
import type { KubeApi } from "../../host/kubernetes/kube-api.ts";
import { ObjectBudget } from "../../host/kubernetes/object-budget.ts";
import type { Workload } from "../../host/resources/member.ts";
import { connectClient } from "../lab/cluster/in-process.ts";
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
import { until } from "../lab/waiting.ts";
import { recordLog } from "../world/recorded-log.ts";
import { borrowPlane } from "./borrow-plane.ts";

const PATIENCE_MS = 30_000;

let plane: ControlPlane;
let api: KubeApi;
const opened: OpenAddressOwners[] = [];

beforeAll(async () => {
  plane = await borrowPlane();
  api = await connectClient(plane.kubeconfig, "workloads");
  await plane.client.create("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } });
});

afterEach(async () => {
  for (const workloads of opened.splice(0)) await workloads.close();
});

afterAll(async () => {
  await api?.close();
  await plane?.stop();
});

interface Followed {
  readonly workloads: OpenAddressOwners;
  /** UIDs of the owners whose changes were reported. */
  readonly uids: string[];
}

async function follow(): Promise<Followed> {
  const workloads = openAddressOwners({
    api,
    budget: new ObjectBudget({ totalBytes: 2 ** 30, home: "" }),
    log: recordLog().log,
    random: () => 0.5,
  });
  opened.push(workloads);
  await workloads.synced(AbortSignal.timeout(PATIENCE_MS));
  const uids: string[] = [];
  workloads.subscribe((uid) => uids.push(uid));
  return { workloads, uids };
}

const livenessOf = (workloads: OpenAddressOwners, workload: Workload) =>
  workloads.readLiveness(workload, AbortSignal.timeout(PATIENCE_MS));

describe("before the kinds of other projects are there", () => {
  it("no owner counts as gone when the server does not know the kind", async () => {
    const { workloads } = await follow();
    const of = (kind: string): Workload => ({ kind, namespace: "shop", name: "x", uid: "u", member: "x" });
    for (const kind of ["VirtualMachine", "VirtualMachineInstance", "IPAMClaim", "Deployment"])
      expect(await livenessOf(workloads, of(kind))).toBe("unknown");
    expect([await livenessOf(workloads, of("StatefulSet")), workloads.problems]).toEqual(["gone", []]);
  });
});

describe("a StatefulSet", () => {
  it("retains for its current ordinals: scaling down, another start and its end are reported", async () => {
    const { workloads, uids } = await follow();
    const { uid } = (await plane.client.create(SETS, statefulSet("web", 3, 5))).metadata;
    const of = (member: string): Workload => ({ kind: "StatefulSet", namespace: "shop", name: "web", uid, member });
    const see = (...members: string[]) => Promise.all(members.map((member) => livenessOf(workloads, of(member))));
    expect(await see("web-4", "web-5", "web-7", "web-8")).toEqual(["gone", "alive", "alive", "gone"]);
    expect(await see("web", "web-x", "webs-5", "web-05", "web-5-5")).toEqual(Array(5).fill("gone"));
    expect(await livenessOf(workloads, { ...of("web-5"), namespace: "" })).toBe("unknown");
    await plane.client.patch(`${SETS}/web`, { metadata: { labels: { of: "none" } } });
    await plane.client.patch(`${SETS}/web`, { spec: { replicas: 1 } });
    await until("the scaling down is reported", () => uids.length > 0);
    expect([uids, await see("web-5", "web-6")]).toEqual([[uid], ["alive", "gone"]]);
    await plane.client.delete(`${SETS}/web`);
    await until("the deletion is reported", () => uids.length > 1);
    expect([uids, await see("web-5")]).toEqual([[uid, uid], ["gone"]]);
    const again = (await plane.client.create(SETS, statefulSet("web", 3, 5))).metadata;
    expect([again.uid === uid, await see("web-5")]).toEqual([false, ["gone"]]);
  });
});

describe("the kinds of other projects", () => {
  it("keep as long as they are there; a run without a machine until it has ended", async () => {
    await applyWorkloadKinds(plane.client);
    const { workloads, uids } = await follow();
    const vm = (await plane.client.create(MACHINES, machine("db"))).metadata.uid;
    const vmi = (await plane.client.create(INSTANCES, instance("job"))).metadata.uid;
    const claim = (await plane.client.create(CLAIMS, ipamClaim("db.net1", { network: "lab", interface: "net1" })))
      .metadata;
    const all: Workload[] = [
      { kind: "VirtualMachine", namespace: "shop", name: "db", uid: vm, member: "db" },
      { kind: "VirtualMachineInstance", namespace: "shop", name: "job", uid: vmi, member: "job" },
      { kind: "IPAMClaim", namespace: "shop", name: "db.net1", uid: claim.uid, member: "db.net1" },
    ];
    const see = () => Promise.all(all.map((workload) => livenessOf(workloads, workload)));
    expect(await see()).toEqual(["alive", "alive", "alive"]);
    await plane.client.patch(`${MACHINES}/db`, { spec: { runStrategy: "Halted" } });
    await plane.client.patch(`${INSTANCES}/job/status`, { status: { phase: "Succeeded" } });
    await until("the end of the run is reported", () => uids.includes(vmi));
    expect(await see()).toEqual(["alive", "gone", "alive"]);
    await plane.client.delete(`${MACHINES}/db`);
    await plane.client.delete(`${CLAIMS}/db.net1`);
    await until("both ends are reported", () => uids.includes(vm) && uids.includes(claim.uid));
    expect(await see()).toEqual(["gone", "gone", "gone"]);
  });
});
