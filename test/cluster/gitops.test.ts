/**
 * Conclusions of GitOps tools from the status that the controller writes on a real API server: Flux by kstatus, Argo CD
 * by the health check of docs/gitops.md.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parse } from "yaml";
import { startConditions } from "../../host/controller/conditions/conditions-controller.ts";
import { startNetworks } from "../../host/controller/networks/networks-controller.ts";
import { referenceTool, root } from "../../scripts/setup/paths.mjs";
import { openWorld, type World } from "../lab/cluster/world.ts";
import type { KubeObject } from "../lab/kube-client.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";
import { borrowPlane } from "./borrow-plane.ts";

const API = "/apis/ipam.vendor.io/v1";
const place = temporaryDirectory("berth-gitops-");
const script = join(place, "health.lua");
let world: World;

beforeAll(async () => {
  const page = readFileSync(join(root, "docs", "gitops.md"), "utf8");
  const [, settings = ""] = /```yaml\n(apiVersion: v1\nkind: ConfigMap\n.*?)```/s.exec(page) ?? [];
  const customizations = parse(parse(settings).data["resource.customizations"]);
  writeFileSync(script, customizations["ipam.vendor.io/*"]["health.lua"]);
  world = await openWorld(borrowPlane);
  await world.namespace("kube-system");
});
afterAll(async () => {
  await world?.stop();
});

function ask(object: KubeObject, ...args: readonly string[]): { status: string; message: string } {
  const program = join(referenceTool("health").directory, "health");
  return JSON.parse(execFileSync(program, args, { encoding: "utf8", input: JSON.stringify(object) }));
}

/** `Current/Healthy`: kstatus, then Argo CD. */
async function conclusionOf(path: string): Promise<string> {
  const object = await world.client.get(path);
  return [ask(object), ask(object, script)].map(({ status }) => status).join("/");
}

const USABLE = "Current/Healthy";
const FAILED = "Failed/Degraded";

const CASES: readonly (readonly [what: string, kind: string, plural: string, spec: object, wanted: string])[] = [
  ["good pool", "IPPool", "ippools", { subnet: "10.30.0.0/24" }, USABLE],
  ["pool that is disabled on purpose", "IPPool", "ippools", { subnet: "10.31.0.0/24", disable: true }, USABLE],
  ["pool without addresses", "IPPool", "ippools", { subnet: "10.32.0.0/24", ips: [] }, USABLE],
  ["pool that overlaps another's subnet", "IPPool", "ippools", { subnet: "10.30.0.0/16" }, FAILED],
  ["pool with an invalid range", "IPPool", "ippools", { subnet: "10.33.0.0/24", ips: ["10.33.0.9-10.33.0.1"] }, FAILED],
  ["Subnet", "Subnet", "subnets", { subnet: "10.34.0.0/16" }, USABLE],
  ["ReservedIP", "ReservedIP", "reservedips", { ips: ["10.30.0.9"] }, USABLE],
  ["Coordinator of another name", "Coordinator", "coordinators", {}, FAILED],
];

it("objects are in progress before the controller has looked, and usable or failed then", async () => {
  const paths = new Map<string, string>();
  for (const [what, kind, plural, spec, wanted] of CASES) {
    const name = what.replaceAll(/[^a-z]+/gi, "-").toLowerCase();
    await world.create(kind, name, spec);
    const path = `${API}/${plural}/${name}`;
    paths.set(path, wanted);
    // kstatus says yes of an object without any status.
    expect(ask(await world.client.get(path), script).status, what).toBe("Progressing");
  }
  await world.lead({ conditions: startConditions, networks: startNetworks });
  for (const [path, wanted] of paths) {
    await expect.poll(() => conclusionOf(path), { timeout: 30_000, message: path }).toBe(wanted);
    const { metadata, status } = await world.client.get(path);
    expect(status.observedGeneration).toBe(metadata.generation);
  }
  await world.depose();
});

it("a change is in progress until the controller has seen it, and its message is the fault's", async () => {
  await world.pool("green", { subnet: "10.35.0.0/24" });
  const path = `${API}/ippools/green`;
  await world.lead({ conditions: startConditions });
  await expect.poll(() => conclusionOf(path), { timeout: 30_000 }).toBe(USABLE);
  await world.depose();
  await world.client.patch(path, { spec: { ips: ["10.35.0.9-10.35.0.1"] } });
  expect(await conclusionOf(path)).toBe("InProgress/Progressing");
  await world.lead({ conditions: startConditions });
  await expect.poll(() => conclusionOf(path), { timeout: 30_000 }).toBe(FAILED);
  expect(ask(await world.client.get(path)).message).toContain("The specification is invalid");
  await world.client.patch(path, { spec: { ips: ["10.35.0.1-10.35.0.9"] } });
  await expect.poll(() => conclusionOf(path), { timeout: 30_000 }).toBe(USABLE);
  await world.depose();
});

it("a Coordinator waits for the networks to be named, and is usable then", async () => {
  const { api } = await world.lead({ networks: startNetworks });
  const path = `${API}/coordinators/default`;
  await expect.poll(() => conclusionOf(path).catch(String), { timeout: 30_000 }).toBe(FAILED);
  await world.client.patch(path, { spec: { podCIDRType: "none", serviceCIDR: ["10.96.0.0/16"] } });
  await expect.poll(() => conclusionOf(path), { timeout: 30_000 }).toBe(USABLE);
  // Its own writes wake no loop: one for the change, and then none.
  api.takeWrites();
  const { metadata } = await world.client.get(path);
  await world.client.patch(path, { metadata: { labels: { touched: "yes" } } });
  await expect.poll(async () => (await world.client.get(path)).metadata.labels, { timeout: 30_000 }).toBeDefined();
  expect([(await world.client.get(path)).metadata.generation, api.takeWrites()]).toEqual([metadata.generation, []]);
});

it("objects that Berth alone writes are no matter of health", async () => {
  await world.allocate("10.30.0.20", { pool: "good-pool" });
  expect(await conclusionOf(`${API}/ipallocations/10.30.0.20`)).toBe(USABLE);
});
