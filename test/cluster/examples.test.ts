/** deploy/examples on a real API server, with the controller's objects. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { applyFolder, readDocuments } from "../lab/apply.ts";
import { openWorld, type World } from "../lab/cluster/world.ts";
import type { KubeObject } from "../lab/kube-client.ts";
import { root } from "../unit/house/sources.ts";
import { borrowPlane } from "./borrow-plane.ts";

const FOLDER = join(root, "deploy", "examples");
const FILES = readdirSync(FOLDER, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".yaml"));

let world: World;
let objects: KubeObject[] = [];

beforeAll(async () => {
  world = await openWorld(borrowPlane);
  await world.installDefinitions();
  objects = (await Promise.all(FILES.map((name) => readDocuments(join(FOLDER, name))))).flat();
});
afterAll(() => world?.stop());

describe("the examples", () => {
  it("are taken by the API server, all of them", async () => {
    const applied = [
      ...(await applyFolder(world.client, FOLDER)),
      ...(await applyFolder(world.client, join(FOLDER, "multus"))),
    ];
    expect(applied).toHaveLength(objects.length);
  });

  it("raise no Warning event of the controller, and each of their pools is Ready", async () => {
    const readEvents = async (): Promise<KubeObject[]> =>
      (await world.client.get("/apis/events.k8s.io/v1/events")).items;
    // The control plane may have served other tests.
    const earlier = new Set((await readEvents()).map(({ metadata }) => metadata.uid));
    await world.startController("examples");
    const pools = async () => (await world.client.get("/apis/ipam.vendor.io/v1/ippools")).items;
    const notReady = async () =>
      (await pools())
        .filter(
          ({ status }: KubeObject) =>
            status?.conditions?.find(({ type }: KubeObject) => type === "Ready")?.status !== "True",
        )
        .map(({ metadata }: KubeObject) => metadata.name)
        .filter((name: string) => objects.some(({ kind, metadata }) => kind === "IPPool" && metadata.name === name));
    await expect.poll(notReady, { timeout: 30_000 }).toEqual([]);
    const generated = async () =>
      (await pools()).flatMap(({ spec }: KubeObject) => (spec.generated === undefined ? [] : spec.ips.length > 0));
    await expect.poll(generated, { timeout: 30_000 }).toEqual([true]);
    const warnings = (await readEvents()).filter(
      ({ metadata, type, reportingController }) =>
        type === "Warning" && /^berth/.test(reportingController) && !earlier.has(metadata.uid),
    );
    expect(warnings.map(({ reason, note }) => `${reason} ${note}`)).toEqual([]);
  });

  it("have a line each in their README", () => {
    const page = readFileSync(join(FOLDER, "README.md"), "utf8");
    expect(FILES.filter((name) => !page.includes(`| [${name}](${name}) |`))).toEqual([]);
  });
});
