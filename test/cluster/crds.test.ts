import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectClient } from "../lab/cluster/in-process.ts";
import type { ControlPlane } from "../lab/control-plane.ts";
import { describeStoring } from "../unit/fakes/admission/storing-suite.ts";
import { borrowPlane } from "./borrow-plane.ts";
import { agentRows } from "./crds/address-rows.ts";
import { bound } from "./crds/allocation-rows.ts";
import { decoderFindings, objectOf, pathOf, serverFindings } from "./crds/findings.ts";
import { KINDS, named } from "./crds/kind-rows.ts";
import type { Row } from "./crds/rows.ts";

let plane: ControlPlane;

beforeAll(async () => {
  plane = await borrowPlane();
});

afterAll(() => plane?.stop());

async function expectSameFindings(row: Row): Promise<void> {
  const { kind, field, serverField = field, also = [], isStructural = false } = row;
  const object = JSON.parse(JSON.stringify(objectOf(row)));
  const decoder = decoderFindings(kind, object);
  const server = await serverFindings(plane.client, kind, object);
  const blamed = [...new Set(server.map(({ field }) => field))].sort();
  const wanted = serverField === undefined ? [] : [serverField, ...also].sort();
  expect({ decoder: decoder[0]?.field, server: blamed }).toEqual({ decoder: field, server: wanted });
  const said = server.find(({ field }) => field === serverField);
  if (!isStructural) expect(said?.text).toBe(decoder[0]?.text);
  // The decoder escapes invisible characters, and knows the canonical form.
  const got = decoder[0]?.got?.replace(/ [(]that is .*/s, "") ?? "";
  const isPlain = /^[\x20-\x5b\x5d-\x7e]*$/.test(got);
  if (!isStructural && said?.got !== undefined && field === serverField && isPlain) expect(said.got).toBe(got);
}

describe.each(KINDS)("the API server and the decoder of manifests agree about the %s", (_kind, rows) => {
  it.each(named(rows))("%s", (_title, row) => expectSameFindings(row));
});

describe("a stored object", () => {
  let client: Awaited<ReturnType<typeof connectClient>>;
  afterAll(() => client?.close());
  describeStoring(async () => {
    client = await connectClient(plane.kubeconfig);
    return client;
  });
});

it("the API server shows the text that it refuses", async () => {
  const rows: [kind: string, spec: object, text: string][] = [
    ["IPPool", { subnet: "10.6.0.0/33" }, 'found "10.6.0.0/33", want a network in CIDR form, such as "10.6.0.0/16"'],
    ["IPPool", { subnet: "10.6.0.0/24", gateway: "10.7.0.1" }, 'found "10.7.0.1", want an address inside 10.6.0.0/24'],
    [
      "Subnet",
      { subnet: "10.6.0.0/24", ips: ["10.6.0.1", "10.7.0.1"] },
      'found "10.7.0.1", want addresses inside 10.6.0.0/24',
    ],
    ["IPPool", { subnet: "10.6.0.0/24", ipVersion: 6 }, 'found 6, want 4, the family of "subnet"'],
    ["ReservedIP", { ips: ["10.6.0.x"] }, 'found "10.6.0.x", want an address or a range first-last'],
  ];
  for (const [kind, spec, text] of rows) {
    const object = objectOf({ kind, name: "shown", spec, title: "" });
    await expect(plane.client.create(pathOf(kind), object)).rejects.toThrow(text.replaceAll('"', '\\"'));
  }
});

it("only the API server refuses unknown keys of an allocation, which an older agent passes over", async () => {
  const spec = bound("10.11.0.1", { later: 1 });
  const object = objectOf({ kind: "IPAllocation", name: "10.11.0.1", spec, title: "" });
  expect(decoderFindings("IPAllocation", object)).toEqual([]);
  const fields = (await serverFindings(plane.client, "IPAllocation", object)).map(({ field }) => field);
  expect(fields).toEqual(["spec.later"]);
});

describe("the agent alone checks the order and the overlap of ranges", () => {
  it.each(named([...agentRows("IPPool"), ...agentRows("Subnet")]))("%s", async (_title, row) => {
    const object = objectOf({ ...row, name: `agent-${row.name}` });
    expect(decoderFindings(row.kind, object)[0]?.field).toBe(row.field);
    expect(await serverFindings(plane.client, row.kind, object)).toEqual([]);
  });
});
