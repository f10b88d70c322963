import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { applyCrds } from "../../scripts/lab/cluster/crds.ts";
import { type ControlPlane, startControlPlane } from "../../scripts/lab/control-plane.ts";
import { addressRows, agentRows } from "./crds/address-rows.ts";
import { ALLOCATION_ROWS, bound } from "./crds/allocation-rows.ts";
import { COORDINATOR_ROWS } from "./crds/coordinator-rows.ts";
import { decoderFindings, objectOf, serverFindings } from "./crds/findings.ts";
import { POOL_ROWS, RESERVED_ROWS } from "./crds/pool-rows.ts";
import type { Row } from "./crds/rows.ts";

let plane: ControlPlane;

beforeAll(async () => {
  plane = await startControlPlane();
  await applyCrds(plane.client);
});

afterAll(() => plane?.stop());

/** Each row under a name of its own, unless it has one. */
const named = (rows: readonly Row[]): [title: string, row: Row][] =>
  rows.map((row, index) => [`${row.kind} ${row.title}`, { name: `row-${index}`, ...row }]);

const KINDS: [kind: string, rows: readonly Row[]][] = [
  ["IPPool", [...addressRows("IPPool"), ...POOL_ROWS]],
  ["Subnet", addressRows("Subnet")],
  ["ReservedIP", RESERVED_ROWS],
  ["IPAllocation", ALLOCATION_ROWS],
  ["Coordinator", COORDINATOR_ROWS],
];

async function expectSameFindings(row: Row): Promise<void> {
  const { kind, field, serverField = field, also = [], isStructural = false } = row;
  const object = JSON.parse(JSON.stringify(objectOf(row)));
  const decoder = decoderFindings(kind, object);
  const server = await serverFindings(plane.client, kind, object);
  const blamed = [...new Set(server.map(({ field }) => field))].sort();
  const wanted = serverField === undefined ? [] : [serverField, ...also].sort();
  expect({ decoder: decoder[0]?.field, server: blamed }).toEqual({ decoder: field, server: wanted });
  const said = server.find(({ field }) => field === serverField)?.text;
  if (!isStructural) expect(said).toBe(decoder[0]?.text);
}

describe.each(KINDS)("the API server and the decoder of manifests agree about the %s", (_kind, rows) => {
  it.each(named(rows))("%s", (_title, row) => expectSameFindings(row));
});

it("what only the API server refuses: unknown keys of an allocation, which an older agent passes over", async () => {
  const spec = bound("10.11.0.1", { later: 1 });
  const object = objectOf({ kind: "IPAllocation", name: "10.11.0.1", spec, title: "" });
  expect(decoderFindings("IPAllocation", object)).toEqual([]);
  const fields = (await serverFindings(plane.client, "IPAllocation", object)).map(({ field }) => field);
  expect(fields).toEqual(["spec.later"]);
});

describe("what only the agent checks: the order and the overlap of ranges", () => {
  it.each(named([...agentRows("IPPool"), ...agentRows("Subnet")]))("%s", async (_title, row) => {
    const object = objectOf({ ...row, name: `agent-${row.name}` });
    expect(decoderFindings(row.kind, object)[0]?.field).toBe(row.field);
    expect(await serverFindings(plane.client, row.kind, object)).toEqual([]);
  });
});
