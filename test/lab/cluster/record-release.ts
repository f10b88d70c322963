/**
 * Records the remains of the last release: the objects of a small cluster, and the journal of a node, for
 * test/unit/resources/recorded.test.ts. Run as root after a release, when scripts/last-release.json names it:
 *
 *   node scripts/setup.mjs product cluster last-release && node test/lab/cluster/record-release.ts
 *
 * Effects: a control plane for a minute; writes test/vectors/last-release.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { stringify } from "yaml";
import { lastReleaseDir, root } from "../../../scripts/setup/paths.mjs";
import { lastRelease } from "../../../scripts/setup/version.mjs";
import type { KubeObject } from "../kube-client.ts";
import { until } from "../waiting.ts";
import { startControllerProcess } from "./controller-process.ts";
import { SETS, statefulSet } from "./workload-kinds.ts";
import { startWorld, type World } from "./world.ts";

const FOLDER = join(root, "test", "vectors", "last-release");
const DIST = join(lastReleaseDir(), "dist");
const KINDS = ["coordinators", "ipallocations", "ippools", "reservedips", "subnets"];

/** The database as SQL text: tables without SQLite's own, their rows, and the format. */
function dump(file: string): string {
  const database = new DatabaseSync(file, { readOnly: true });
  const texts = (sql: string) =>
    database
      .prepare(sql)
      .all()
      .map((row) => String(Object.values(row)[0]));
  const tables = texts(
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
  );
  const rows = tables.flatMap((table) => {
    const columns = texts(`SELECT name FROM pragma_table_info('${table}')`);
    const quoted = columns.map((column) => `quote("${column}")`).join(" || ', ' || ");
    return texts(`SELECT 'INSERT INTO ${table} VALUES (' || ${quoted} || ');' FROM ${table} ORDER BY 1`);
  });
  const schema = texts("SELECT sql || ';' FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type = 'table' DESC, name");
  const format = texts("PRAGMA user_version");
  database.close();
  return [...schema, ...rows, `PRAGMA user_version = ${format};`, ""].join("\n");
}

async function objectsOf(world: World): Promise<KubeObject[]> {
  const lists = await Promise.all(KINDS.map((plural) => world.client.get(`/apis/ipam.vendor.io/v1/${plural}`)));
  const objects = lists.flatMap(({ apiVersion, kind, items }) =>
    items.map((item: KubeObject) => ({ ...item, apiVersion, kind: kind.replace(/List$/, "") })),
  );
  for (const { metadata } of objects) delete metadata.managedFields;
  return objects;
}

const world = await startWorld({
  nodes: ["n1"],
  pools: [{ name: "blue", subnet: "10.6.0.0/24" }],
  agent: { dist: DIST },
});
try {
  await world.subnet("green", { subnet: "10.7.0.0/24" });
  await world.create("ReservedIP", "routers", { ips: ["10.6.0.2"] });
  const controller = await startControllerProcess({
    kubeconfig: await world.controllerKubeconfig(),
    name: "r",
    dist: DIST,
  });
  const set = await world.client.create(SETS, statefulSet("db", 2));
  const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "db", uid: set.metadata.uid, controller: true };
  const { runtime } = world.node("n1");
  const members = [];
  for (const name of ["db-0", "db-1", "web"]) {
    const pod = await world.createPod({ name, node: "n1", ...(name === "web" ? {} : { owner }) });
    await runtime.attach(pod);
    members.push(pod);
  }
  const [, kept] = members;
  if (kept === undefined) throw new Error("There is no second member");
  await runtime.detach(kept);
  await world.deletePod(kept);
  await until("an address is kept", async () => (await world.allocations()).some(({ spec }) => spec.state === "Kept"));
  const isReady = async () => (await objectsOf(world)).filter(({ status }) => status !== undefined).length >= 4;
  await until("the controller has written", isReady, 30_000);
  writeFileSync(
    join(FOLDER, "objects.yaml"),
    `# Recorded from ${lastRelease.version} by test/lab/cluster/record-release.ts.\n${(await objectsOf(world)).map((each) => stringify(each)).join("---\n")}`,
  );
  const { agent } = world.node("n1");
  await agent.stop();
  await controller.kill();
  const text = dump(join(agent.state, "registry.sqlite"));
  writeFileSync(
    join(FOLDER, "journal.sql"),
    `-- Recorded from ${lastRelease.version} by test/lab/cluster/record-release.ts.\n${text}`,
  );
} finally {
  await world.stop();
}
