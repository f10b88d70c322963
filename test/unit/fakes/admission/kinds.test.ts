/**
 * The kinds of deploy/crds on the API server in memory, with the rows that a real one passes (test/cluster/crds.test.ts
 * and crds-served.test.ts): the same fields are refused in the same words.
 */
import { describe, expect, it } from "vitest";
import { ApiError, type KubeObject } from "../../../../host/kubernetes/kube-api.ts";
import { agentRows } from "../../../cluster/crds/address-rows.ts";
import {
  COLLECTIONS,
  decoderFindings,
  type Findings,
  objectOf,
  pathOf,
  readCauses,
} from "../../../cluster/crds/findings.ts";
import { KINDS, named } from "../../../cluster/crds/kind-rows.ts";
import { UPDATE_ROWS } from "../../../cluster/crds/update-rows.ts";
import { BerthAdmission } from "../../../fakes/admission/berth-admission.ts";
import { MemoryApiServer } from "../../../fakes/memory-api-server.ts";
import { describeStoring } from "./storing-suite.ts";

const serves = Object.fromEntries(
  Object.keys(COLLECTIONS).map((kind) => [pathOf(kind), { apiVersion: "ipam.vendor.io/v1", kind }]),
);
const server = new MemoryApiServer({ serves, admission: new BerthAdmission() });
const api = server.client();

const create = (kind: string, object: object): Promise<KubeObject> =>
  api.call({ method: "POST", path: pathOf(kind), query: { fieldValidation: "Strict" }, body: object });

async function findingsOf(call: Promise<unknown>): Promise<Findings> {
  try {
    await call;
    return [];
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return readCauses(error.causes, error.message);
  }
}

describe.each(KINDS)("%s: a new one is judged as by a real API server", (_kind, rows) => {
  it.each(named(rows))("%s", async (_title, row) => {
    const { kind, field, serverField = field, also = [], isStructural = false } = row;
    const object = JSON.parse(JSON.stringify(objectOf(row)));
    const found = await findingsOf(create(kind, object));
    const wanted = serverField === undefined ? [] : [serverField, ...also].sort();
    expect([...new Set(found.map((each) => each.field))].sort()).toEqual(wanted);
    const said = found.find((each) => each.field === serverField);
    const [decoded] = decoderFindings(kind, object);
    expect(decoded?.field, "of the decoder of manifests").toBe(field);
    if (!isStructural) expect(said?.text).toBe(decoded?.text);
  });
});

it.each(named([...agentRows("IPPool"), ...agentRows("Subnet")]))(
  "what only the agent checks: %s",
  async (_title, row) => {
    const object = objectOf({ ...row, name: `agent-${row.name}` });
    expect(decoderFindings(row.kind, object)[0]?.field).toBe(row.field);
    expect(await findingsOf(create(row.kind, object))).toEqual([]);
  },
);

it.each(UPDATE_ROWS)("an update of $kind: $title", async ({ kind, name, before, status, after, refusal }) => {
  const title = `update-${name}`;
  const stored = kind === "IPAllocation" ? name : title;
  const made = await create(kind, objectOf({ kind, name: stored, spec: before, title }));
  const path = `${pathOf(kind)}/${stored}/status`;
  const { metadata } =
    status === undefined ? made : await api.call({ method: "PATCH", path, body: { status: { ...status } } });
  const body = { ...objectOf({ kind, name: stored, spec: after, title }), metadata };
  const found = await findingsOf(api.call({ method: "PUT", path: `${pathOf(kind)}/${stored}`, body }));
  expect(found.map(({ field, text }) => [field, text])).toEqual(refusal === undefined ? [] : [refusal]);
});

describe("a stored object", () => describeStoring(async () => api));
