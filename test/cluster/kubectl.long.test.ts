/**
 * Every command of kubectl that the documents name, typed on an API server that also has Calico's, whereabouts' and
 * Kube-OVN's kinds, some of which have the names of Berth's: each does as documented, and no object of theirs is
 * touched.
 */
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { referenceTool, root } from "../../scripts/setup/paths.mjs";
import { blocksOf } from "../e2e/pages/script.ts";
import { isExecuted, PARTS } from "../e2e/pages/table.ts";
import { ALLOCATIONS, boundObject, nodeObject, POOLS, podObject } from "../lab/cluster/objects.ts";
import { forceDeleteAll, openAsController, placeGeneratedPool } from "../lab/cluster/rights.ts";
import { applyKinds, type ForeignKind } from "../lab/cluster/workload-kinds.ts";
import type { World } from "../lab/cluster/world.ts";
import { type CommandOutcome, runCommand } from "../lab/command.ts";
import type { KubeClient, KubeObject } from "../lab/kube-client.ts";
import { commandsOf, listTexts } from "../unit/house/kubectl-lines.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";
import { openRights, WORKLOAD } from "./rights-objects.ts";

const FOREIGN: readonly ForeignKind[] = [
  { group: "crd.projectcalico.org", version: "v1", kind: "IPPool", plural: "ippools", scope: "Cluster" },
  { group: "whereabouts.cni.cncf.io", version: "v1alpha1", kind: "IPPool", plural: "ippools" },
  {
    group: "whereabouts.cni.cncf.io",
    version: "v1alpha1",
    kind: "OverlappingRangeIPReservation",
    plural: "overlappingrangeipreservations",
  },
  { group: "kubeovn.io", version: "v1", kind: "Subnet", plural: "subnets", scope: "Cluster" },
  { group: "kubeovn.io", version: "v1", kind: "IP", plural: "ips", scope: "Cluster" },
];
/** Names of Berth's objects in the documents: each foreign kind has objects of the same names. */
const POOL = "shop-web-eth0-v4-3f9c0a1b2c";
const NAMES = [POOL, "blue", "default", "10.6.0.21", "10.6.0.77"];

const PAGES = listTexts().filter((path) => path.endsWith(".md"));
/** Commands in blocks that are executed as a whole elsewhere: one may need the result of another. */
const IN_SCRIPTS = commandsOf(
  [
    "```sh",
    ...PARTS.filter(isExecuted)
      .flatMap(blocksOf)
      .flatMap(({ lines }) => lines),
    "```",
  ].join("\n"),
);
/** Berth's plugin of kubectl needs agents in pods: test/e2e/kubectl-berth.test.ts. */
const PLUGIN = /^kubectl berth\b/;
/** Forwards to a pod, and this control plane has none: test/long/chart.test.ts. */
const FORWARD = /^kubectl (-n \S+ )?port-forward\b/;
const COMMANDS = [...new Set(PAGES.flatMap((path) => commandsOf(readFileSync(join(root, path), "utf8"))))].filter(
  (line) => !IN_SCRIPTS.includes(line) && !PLUGIN.test(line) && !FORWARD.test(line),
);

let world: World;
let admin: KubeClient;
let controller: KubeClient;
const home = temporaryDirectory("berth-kubectl-");

beforeAll(async () => {
  await writeFile(join(home, "ipam-token"), "secret");
  world = await openRights();
  admin = world.client;
  await applyKinds(admin, FOREIGN);
  await world.installDefinitions();
  controller = await openAsController(world.plane);
  await admin.create("/api/v1/nodes", nodeObject("n1"));
  await admin.create("/api/v1/namespaces/default/serviceaccounts", { metadata: { name: "map" } });
  const keys = { metadata: { name: "berth-controller-tls" }, stringData: { "tls.key": "x" } };
  await admin.create("/api/v1/namespaces/kube-system/secrets", keys);
  for (const kind of FOREIGN)
    for (const name of NAMES) await admin.create(collectionOf(kind), foreignObject(kind, name));
});
afterAll(async () => {
  controller?.close();
  await world?.stop();
});

/** Creates the objects of the documents, as they are before each command. */
beforeEach(async () => {
  await forceDeleteAll(admin);
  await admin.apply("/apis/ipam.vendor.io/v1/coordinators/default", {
    apiVersion: "ipam.vendor.io/v1",
    kind: "Coordinator",
    metadata: { name: "default" },
    spec: {},
  });
  if ((await admin.get(POOLS)).items.every(({ metadata }: KubeObject) => metadata.name !== POOL)) {
    const application = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "web", uid: "u1" };
    const generated = { subnet: "blue", application, interface: "eth0", reclaim: true, wanted: 1, reason: "1 replica" };
    await placeGeneratedPool(controller, {
      ...{ apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: { name: POOL } },
      spec: { subnet: "10.6.0.0/24", ips: ["10.6.0.20"], generated },
    });
  }
  await admin.create(ALLOCATIONS, boundObject({ address: "10.6.0.21", node: "n1" }));
  await admin.create(
    ALLOCATIONS,
    boundObject({ address: "10.6.0.77", node: "n1", state: "Kept", holders: [], workload: WORKLOAD }),
  );
});

function collectionOf({ group, version, plural, scope }: ForeignKind): string {
  return `/apis/${group}/${version}/${scope === "Cluster" ? "" : "namespaces/default/"}${plural}`;
}

function foreignObject({ group, version, kind }: ForeignKind, name: string): KubeObject {
  return { apiVersion: `${group}/${version}`, kind, metadata: { name }, spec: { cidr: "10.244.0.0/16" } };
}

/** Names and versions of all objects of theirs. */
async function foreignState(): Promise<string[]> {
  const lists = await Promise.all(FOREIGN.map(async (kind) => (await admin.get(collectionOf(kind))).items));
  return lists.flat().map(({ kind, metadata }: KubeObject) => `${kind} ${metadata.name} ${metadata.resourceVersion}`);
}

function type(line: string): Promise<CommandOutcome> {
  const { PATH } = process.env;
  const env = { HOME: home, KUBECONFIG: world.plane.kubeconfig, PATH: `${referenceTool("kubectl").directory}:${PATH}` };
  return runCommand(["sh", "-c", line.replace(/ > (?=\w)/, ` > ${home}/`)], { env, cwd: root });
}

/** Refused on purpose, as the page says there. */
const REFUSED: Readonly<Record<string, RegExp>> = {
  "kubectl delete ipallocations.ipam.vendor.io 10.6.0.21": /IPAllocation 10\.6\.0\.21 is Bound to pod shop\/web-0/,
};

it("a name without a group is theirs", async () => {
  expect((await type("kubectl get ippools -o name")).stdout).toContain("ippool.crd.projectcalico.org/blue");
});

it("many commands are found", () => {
  expect(COMMANDS.length).toBeGreaterThan(15);
});

it("the command that lets all pods through removes one gate of them", async () => {
  const pods = "/api/v1/namespaces/shop/pods";
  const schedulingGates = [{ name: "example.com/other" }, { name: "ipam.vendor.io/address" }];
  const { spec, ...pod } = podObject({ name: "gated", node: "" });
  await admin.create(pods, { ...pod, spec: { ...spec, schedulingGates } });
  await type(COMMANDS.find((line) => line.includes("schedulingGates")) ?? "false");
  expect((await admin.get(`${pods}/gated`)).spec.schedulingGates).toEqual(schedulingGates.slice(0, 1));
});

it.each(COMMANDS)("%s", async (line) => {
  const before = await foreignState();
  expect(before).toHaveLength(FOREIGN.length * NAMES.length);
  const said = async (): Promise<string> => {
    const { exitCode, stderr } = await type(line);
    return `${exitCode} ${stderr}`;
  };
  // A policy goes on refusing for some moments after a change.
  await expect.poll(said, { timeout: 20_000 }).toMatch(REFUSED[line] ?? /^0 /);
  expect(await foreignState()).toEqual(before);
});
