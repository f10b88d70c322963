import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubeClient as AgentClient } from "../../host/kubernetes/client.ts";
import { decodeIpPool } from "../../host/resources/ip-pool.ts";
import { CUSTOM_KINDS } from "../../scripts/generate/crds/custom-kinds.ts";
import { applyCrds } from "../lab/cluster/crds.ts";
import { connectClient } from "../lab/cluster/in-process.ts";
import type { ControlPlane } from "../lab/control-plane.ts";
import type { KubeObject } from "../lab/kube-client.ts";
import { borrowPlane } from "./borrow-plane.ts";
import { bound } from "./crds/allocation-rows.ts";
import { findingsOfError, objectOf, pathOf } from "./crds/findings.ts";
import { UPDATE_ROWS } from "./crds/update-rows.ts";

const PUBLISHED_MS = 30_000;

let plane: ControlPlane;
let agent: AgentClient;

beforeAll(async () => {
  plane = await borrowPlane();
  agent = await connectClient(plane.kubeconfig);
});

afterAll(async () => {
  await agent?.close();
  await plane?.stop();
});

const create = (kind: string, name: string, spec: object) =>
  plane.client.create(pathOf(kind), objectOf({ kind, name, spec, title: name }));

it("applying the kinds again changes nothing", async () => {
  const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const versions = async () =>
    (await plane.client.get(path)).items.map((crd: KubeObject) => [crd.metadata.name, crd.metadata.generation]);
  const before = await versions();
  await applyCrds(plane.client);
  expect(await versions()).toEqual(before);
  expect(before).toHaveLength(CUSTOM_KINDS.length);
});

it.each(UPDATE_ROWS)("an update of $kind: $title", async ({ kind, name, before, status, after, refusal }) => {
  const made = await create(kind, name, before);
  const { metadata } =
    status === undefined ? made : await plane.client.patch(`${pathOf(kind)}/${name}/status`, { status });
  const changed = { ...objectOf({ kind, name, spec: after, title: name }), metadata };
  const update = plane.client.put(`${pathOf(kind)}/${name}`, changed);
  const findings = await update.then(() => [], findingsOfError);
  expect(findings.map(({ field, text }) => [field, text])).toEqual(refusal === undefined ? [] : [refusal]);
});

it("the kinds have their names, short names and category, and a status unless they are allocations", async () => {
  const { resources } = await plane.client.get("/apis/ipam.vendor.io/v1");
  const found = resources
    .filter(({ name }: KubeObject) => !name.includes("/"))
    .map((resource: KubeObject) => [resource.kind, resource.name, resource.shortNames, resource.categories]);
  const wanted = CUSTOM_KINDS.map(({ kind, plural, shortNames }) => [kind, plural, shortNames, ["berth"]]);
  expect(found.sort()).toEqual(wanted.sort());
  const statuses = resources.filter(({ name }: KubeObject) => name.endsWith("/status"));
  expect(statuses.map(({ name }: KubeObject) => name).sort()).toEqual(
    ["coordinators/status", "ippools/status", "rangemembers/status", "reservedips/status", "subnets/status"].sort(),
  );
});

describe("kubectl explain", () => {
  interface Schema {
    readonly description?: string;
    readonly properties?: Readonly<Record<string, Schema>>;
    readonly items?: Schema;
  }

  /** Paths of fields that say nothing. */
  function silentFields(schema: Schema, path: string): string[] {
    const own = schema.description === undefined || schema.description === "" ? [path] : [];
    const fields = Object.entries(schema.properties ?? {}).filter(([key]) => key !== "metadata");
    const entries =
      schema.items?.properties === undefined
        ? []
        : silentFields({ ...schema.items, description: "entry" }, `${path}[]`);
    return [...own, ...entries, ...fields.flatMap(([key, field]) => silentFields(field, `${path}.${key}`))];
  }

  const published = async (): Promise<Readonly<Record<string, Schema>>> => {
    const deadline = performance.now() + PUBLISHED_MS;
    for (;;) {
      const { components } = await plane.client.get("/openapi/v3/apis/ipam.vendor.io/v1").catch(() => ({}));
      const schemas = components?.schemas ?? {};
      if (CUSTOM_KINDS.every(({ kind }) => `io.vendor.ipam.v1.${kind}` in schemas)) return schemas;
      if (performance.now() > deadline) throw new Error(`not published: ${Object.keys(schemas)}`);
      await sleep(100);
    }
  };

  it("has something to say about every field", async () => {
    const schemas = await published();
    const silent = CUSTOM_KINDS.flatMap(({ kind }) => silentFields(schemas[`io.vendor.ipam.v1.${kind}`] ?? {}, kind));
    expect(silent).toEqual([]);
  });

  it("would find a field that says nothing", () => {
    const schema = { description: "a", properties: { spec: { description: "b", properties: { x: {} } } } };
    expect(silentFields(schema, "K")).toEqual(["K.spec.x"]);
  });
});

describe("kubectl get", () => {
  const accept = "application/json;as=Table;v=v1;g=meta.k8s.io";

  async function table(kind: string, query: Record<string, string> = {}): Promise<KubeObject> {
    return await agent.call({ method: "GET", path: pathOf(kind), accept, query });
  }

  it("shows the columns of an allocation, and selects by pool, node and state", async () => {
    const spec = bound("10.20.0.1", { pool: "rose", node: "n7", holders: [{ ...HOLDER_OF_N7 }] });
    await create("IPAllocation", "10.20.0.1", spec);
    await create("IPAllocation", "10.20.0.2", { ...spec, address: "10.20.0.2", state: "Cooling", holders: [] });
    const { columnDefinitions, rows } = await table("IPAllocation", {
      fieldSelector: "spec.pool=rose,spec.node=n7,spec.state=Bound",
    });
    const names = columnDefinitions
      .filter(({ priority }: KubeObject) => priority === 0)
      .map(({ name }: KubeObject) => name);
    expect(names).toEqual(["Name", "Address", "State", "Pool", "Node", "Namespace", "Pod", "Interface", "Age"]);
    expect(rows.map(({ cells }: KubeObject) => cells.slice(0, 8))).toEqual([
      ["10.20.0.1", "10.20.0.1", "Bound", "rose", "n7", "shop", "web-0", "eth0"],
    ]);
  });

  it("shows the columns of a pool; the status is written by itself", async () => {
    await create("IPPool", "shown", { subnet: "10.30.0.0/24", gateway: "10.30.0.1", default: true });
    const path = `${pathOf("IPPool")}/shown`;
    await plane.client.patch(`${path}/status`, {
      status: {
        ...{ total: 253, used: 7, free: 246, wanted: "n1" },
        conditions: [
          { type: "Ready", status: "True", lastTransitionTime: "2026-01-31T14:02:00Z", reason: "Usable", message: "" },
        ],
      },
      spec: { disable: true },
    });
    await plane.client.patch(path, { status: { wanted: "n2" } });
    const pool = await plane.client.get(path);
    expect(decodeIpPool(pool, "pool")).toMatchObject({ wanted: "n1", spec: { disable: false, default: true } });
    const { columnDefinitions, rows } = await table("IPPool");
    const columns = columnDefinitions.map(({ name }: KubeObject) => name);
    expect(columns.slice(0, 8)).toEqual(["Name", "Subnet", "Total", "Used", "Free", "Counted", "Ready", "Default"]);
    const cells = rows.map(({ cells }: KubeObject) => cells.slice(0, 8));
    expect(cells).toContainEqual(["shown", "10.30.0.0/24", 253, 7, 246, null, "True", true]);
  });

  it.each(CUSTOM_KINDS)("shows the columns of $plural", async ({ kind, columns }) => {
    const { columnDefinitions } = await table(kind);
    const names = columnDefinitions.map(({ name }: KubeObject) => name);
    expect(names).toEqual(["Name", ...columns.map(({ name }) => name)]);
  });
});

const HOLDER_OF_N7 = { namespace: "shop", pod: "web-0", podUID: "u1", interface: "eth0", node: "n7" };
