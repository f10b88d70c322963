/** The life of reservations on a real API server, and a restore as docs/fixed-addresses.md has it. */
import { readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startConditions } from "../../host/controller/conditions/conditions-controller.ts";
import type { KubeEvent } from "../../host/kubernetes/events.ts";
import { root } from "../../scripts/setup/paths.mjs";
import { findBlocks, Workstation } from "../e2e/pages/script.ts";
import { runKubectlBerth } from "../lab/berthctl.ts";
import * as lab from "../lab/cluster/objects.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { requireCommand } from "../lab/command.ts";
import type { KubeObject } from "../lab/kube-client.ts";
import { until } from "../lab/waiting.ts";
import { borrowPlane } from "./borrow-plane.ts";

let world: World;
let workstation: Workstation;

beforeAll(async () => {
  world = await startWorld({
    startPlane: borrowPlane,
    pools: [{ name: "lan", subnet: "10.6.0.0/27", selection: "ascending", cooldown: "1s" }],
  });
  for (const name of ["n1", "n2"]) await world.openAgent(name);
  workstation = new Workstation(world.plane.kubeconfig);
  symlinkSync(join(root, "dist", "kubectl-berth.mjs"), join(workstation.home, "kubectl-berth"));
});
afterAll(async () => {
  workstation?.[Symbol.dispose]();
  await world?.stop();
});

const shell = (script: string) =>
  requireCommand(["bash", "-ec", `set -o pipefail; ${script}`], { cwd: workstation.home, env: workstation.env });

async function start(name: string, node: string, owner?: lab.OwnerReference): Promise<string> {
  const pod = await world.bindPod({ name, node, ...(owner && { owner }) });
  await until("the node knows the pod", () => world.agent(node).snapshot.pods.get(`shop/${name}`)?.uid === pod.uid);
  return world
    .agent(node)
    .add(pod)
    .then(({ addresses }) => addresses, String);
}

async function listed(): Promise<string[]> {
  const { out } = await runKubectlBerth("--kubeconfig", world.plane.kubeconfig, "reservations", "-A", "-o", "json");
  return JSON.parse(out).map(({ address, owner, state, details }: Record<string, string>) =>
    `${address} ${owner} ${state} ${details ?? ""}`.trim(),
  );
}

const knownTo = (node: string, count: number) =>
  until("the agent knows them", () => world.agent(node).snapshot.reserved.length === count);

it("after a restore only the pods of a StatefulSet have the addresses of the saved records", async () => {
  const page = readFileSync(join(root, "docs", "fixed-addresses.md"), "utf8");
  const [save = "", ...keep] = findBlocks(page, "").find(({ section }) => section === "After a restore")?.lines ?? [];
  const make = () => lab.createWorkload(world.client, "StatefulSet", "db", { replicas: 3 });
  const before: Record<string, string> = {};
  const first = await make();
  for (const name of ["db-0", "other", "db-1", "db-2"])
    before[name] = await start(name, "n1", name === "other" ? undefined : first);
  expect(before).toEqual({ "db-0": "10.6.0.1", other: "10.6.0.2", "db-1": "10.6.0.3", "db-2": "10.6.0.4" });
  await shell(save);
  await world.clear();
  await world.client.delete("/apis/apps/v1/namespaces/shop/statefulsets/db");
  await until("nothing is left", async () => (await world.allocations()).length === 0);
  await shell(keep.join("\n"));
  await knownTo("n2", 3);
  const again = await make();
  expect(again.uid).not.toBe(first.uid);
  for (const [name, wanted] of [
    ["early", "10.6.0.2"],
    ["db-2", before["db-2"]],
    ["late", "10.6.0.5"],
  ] as const)
    expect(await start(name, "n2", name === "db-2" ? again : undefined), name).toBe(wanted);
  expect(await listed()).toEqual([
    "10.6.0.1 shop/db-0 Waiting",
    "10.6.0.3 shop/db-1 Waiting",
    "10.6.0.4 shop/db-2 InUse shop/db-2 on n2",
  ]);
  for (const name of ["db-1", "db-0"]) expect(await start(name, "n1", again), name).toBe(before[name]);
  await shell("kubectl delete reservedips.ipam.vendor.io --all");
});

it("a reservation tells its state until its end, to its reader, in conditions and by events", async () => {
  await world.clear();
  const events: KubeEvent[] = [];
  const controller = await world.lead({ conditions: startConditions }, { events });
  const taken = await start("first", "n1");
  const reserve = (address: string, name: string, more = "") =>
    shell(`kubectl berth reserve ${address} --for shop/${name} ${more} | kubectl create -f -`);
  await reserve("10.6.0.21", "gone");
  const owner = { namespace: "shop", name: "nobody" };
  await world.create("ReservedIP", "lost", { ips: ["10.9.0.1"], owner });
  await world.create("ReservedIP", "taken", { ips: [taken], owner });
  await world.create("ReservedIP", "twice", { ips: ["10.6.0.21"], owner });
  const workload = { kind: "StatefulSet", namespace: "shop", name: "db", uid: "u-db", member: "db-0" };
  await world.allocate("10.6.0.25", { state: "Kept", node: "-", holders: [], workload });
  // Last, because nobody knows it after its time.
  await reserve("10.6.0.20", "guest", "--until 8s");
  for (const node of ["n1", "n2"]) await knownTo(node, 5);
  const heir = { ips: [{ ipv4: "10.6.0.20" }] };
  const attempt = async (name: string) => {
    const pod = await world.bindPod({ name, node: "n2", annotations: heir });
    return world
      .agent("n2")
      .add(pod)
      .then(({ addresses }) => addresses, String);
  };
  expect(await attempt("heir-0")).toContain('ReservedIP "10.6.0.20" has it');
  expect(await start("guest", "n2")).toBe("10.6.0.20");
  const conditions = async () => {
    const { items }: KubeObject = await world.client.get(`${lab.BERTH}/reservedips`);
    return items.flatMap(({ metadata, status }: KubeObject) =>
      (status?.conditions ?? [])
        .filter(({ type, status }: KubeObject) => type !== "Ready" && status === "True")
        .map(({ type, message }: KubeObject) => `${metadata.name} ${type}: ${message}`),
    );
  };
  await expect
    .poll(conditions, { timeout: 60_000 })
    .toEqual([
      expect.stringMatching(
        /^10\.6\.0\.20 Expired: Its time ended at .*Z: it keeps no address from any pod; delete it$/,
      ),
      "lost Unavailable: No pod gets the address: no pool has it in its subnet",
      `taken ReservedInUse: Others hold 1 address of these: ${taken} (pod shop/first); each stays until it is released, and is not given out again`,
      'twice Unavailable: No pod gets the address: pool lan: ReservedIP "10.6.0.21" has it for shop/gone',
    ]);
  expect(events.map(({ reason, regarding: { name } }) => `${name} ${reason}`).sort()).toEqual([
    "10.6.0.20 Expired",
    "lost Unavailable",
    "taken ReservedInUse",
    "twice Unavailable",
  ]);
  expect(await listed()).toEqual([
    "10.6.0.20 shop/guest Expired shop/guest on n2",
    "10.6.0.21 shop/gone Waiting",
    "10.9.0.1 shop/nobody Refused no pool has it in its subnet",
    `${taken} shop/nobody Taken shop/first on n1`,
    '10.6.0.21 shop/nobody Refused pool lan: ReservedIP "10.6.0.21" has it for shop/gone',
    "10.6.0.25 StatefulSet shop/db-0 Waiting",
  ]);
  const counts = controller.measure().reservations?.() ?? [];
  expect(counts.map(([{ state }, count]) => `${state} ${count}`)).toEqual([
    ...["kept 1", "taken 1", "unavailable 2", "expired 1"],
  ]);
  const berth = (...words: string[]) => runKubectlBerth("--kubeconfig", world.plane.kubeconfig, ...words);
  expect((await berth("ip", taken)).out).toContain(`ReservedIP taken: Others hold 1 address of these: ${taken} (pod`);
  const release = await berth("release", "10.6.0.21", "--yes");
  expect([release.code, release.error]).toEqual([
    1,
    expect.stringContaining("(kubectl delete reservedips.ipam.vendor.io 10.6.0.21, or its manifest); no pod has it"),
  ]);
  const quarantine = await berth("quarantine", "10.6.0.25", "--yes");
  expect(quarantine.error).toContain("10.6.0.25 is retained for StatefulSet shop/db, member db-0; the controller");
  await knownTo("n2", 4);
  await world.agent("n2").del({ uid: (await world.client.get(`${lab.NAMESPACES}/shop/pods/guest`)).metadata.uid });
  let tries = 0;
  await expect.poll(() => attempt(`heir-${++tries}`), { timeout: 30_000, interval: 500 }).toBe("10.6.0.20");
});
