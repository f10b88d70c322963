/** Which attachments are compared, by which request, and the effect of answers and errors. */
import { expect, it } from "vitest";
import { CoordinatedAttachments } from "../../../../host/agent/coordinator/attachments.ts";
import { readDrift } from "../../../../host/agent/operate/read-drift.ts";
import { CniError, ErrorCode } from "../../../../host/cni/error.ts";
import { parseContainerId, parseIfName } from "../../../../host/cni/names.ts";
import { type AttachRequest, decodePodArgs } from "../../../../host/cni/request.ts";
import { type RowFacts, STEADY_MS } from "../../../../host/findings/node/find-damage.ts";
import { NetnsError } from "../../../../host/kernel/netns.ts";
import type { Operation } from "../../../../host/plan/operation.ts";
import { rowOf } from "../../../world/search.ts";
import { ip } from "../../../world/values.ts";

const NOW = 1_000_000;
const COORDINATOR = { entry: { type: "coordinator", serviceCIDR: ["10.96.0.0/16"] }, place: "a file" };
const MAIN = { entry: { type: "macvlan" }, place: "a file" };
const ALIVE = { kind: "present", pod: { uid: "u1", configHash: undefined, deleting: false } } as const;

function facts(row: object = {}, changes: Partial<RowFacts> = {}): RowFacts {
  const given = { network: "lan", netns: "/run/netns/a", sinceMs: NOW - STEADY_MS };
  return { row: rowOf("10.6.0.7", { ...given, ...row }), pod: ALIVE, netns: "inUse", ...changes };
}

interface World {
  readonly rows?: readonly RowFacts[];
  readonly plugins?: readonly (typeof COORDINATOR | typeof MAIN)[];
  /** Plugins of the NAD that the pod announces. */
  readonly attached?: readonly (typeof COORDINATOR)[];
  readonly served?: readonly Partial<AttachRequest>[];
  readonly compare?: (request: AttachRequest) => readonly Operation[];
}

async function read(world: World) {
  const { rows = [facts()], plugins, attached, served = [], compare = () => [] } = world;
  const requests: AttachRequest[] = [];
  const attachment = attached === undefined ? {} : { attachment: "shop/lan" };
  const nic = { ifName: "eth0", network: "lan", plugins: attached ?? [], ...attachment };
  const attachments = new CoordinatedAttachments();
  for (const request of served) attachments.setRequest(request as AttachRequest);
  const { drifts, compared, problems } = await readDrift(
    {
      coordinator: {
        attachments,
        compare: async (request) => {
          requests.push(request);
          return { operations: compare(request) };
        },
        repair: () => expect.unreachable(),
        observeNode: () => expect.unreachable(),
      },
      networks: { pluginsOf: () => plugins ?? [MAIN, COORDINATOR], nicsOf: () => [nic] },
      identifier: {
        find: async (namespace, name) =>
          ({ owner: "u1", namespace, name, subject: { namespace, name, labels: {}, annotations: {} } }) as never,
      },
    },
    { rows, nowMs: NOW },
  );
  return { requests, drifts, compared, problems };
}

const served = (containerId: string): Partial<AttachRequest> => ({
  command: "ADD",
  containerId: parseContainerId(containerId) ?? expect.unreachable(),
  ifName: parseIfName("eth0") ?? expect.unreachable(),
  netns: "/run/netns/served",
});

it("compares by the request of the ADD, as a CHECK", async () => {
  const { requests, compared } = await read({ served: [served("c1")], plugins: [MAIN] });
  expect(requests).toEqual([{ ...served("c1"), command: "CHECK" }]);
  expect(compared).toBe(1);
});

it("after a restart compares by the record and the definition", async () => {
  const { requests } = await read({ rows: [facts(), facts({ ip: ip("fd06::7"), prefixLength: 64 })] });
  const [request] = requests;
  expect(requests).toHaveLength(1);
  expect(request).toMatchObject({ command: "CHECK", containerId: "c1", ifName: "eth0", netns: "/run/netns/a" });
  expect(request?.netConf).toMatchObject({ name: "lan", raw: COORDINATOR.entry });
  expect(request?.netConf.prevResult?.ips.map(({ address }) => address)).toEqual([
    { ip: ip("10.6.0.7"), length: 24 },
    { ip: ip("fd06::7"), length: 64 },
  ]);
  expect(decodePodArgs(request?.args ?? new Map())).toMatchObject({ namespace: "shop", name: "web-0", uid: "u1" });
});

it("names no UID for an owner that is the container", async () => {
  const { requests } = await read({ rows: [facts({ owner: "c1" })] });
  expect(decodePodArgs(requests[0]?.args ?? new Map()).uid).toBeUndefined();
});

it("prefers the definition that the pod announces", async () => {
  const attached = [{ entry: { type: "berth-coordinator", serviceCIDR: ["10.97.0.0/16"] }, place: "a NAD" }];
  const { requests } = await read({ attached });
  expect(requests[0]?.netConf.raw).toEqual(attached[0]?.entry);
});

it.each<[what: string, world: World]>([
  ["a network without a coordinator", { plugins: [MAIN] }],
  ["a network that the agent does not know", { plugins: [] }],
  ["a record of a moment ago", { rows: [facts({ sinceMs: NOW - STEADY_MS + 1 })] }],
  ["a record that cools", { rows: [facts({ state: "Cooling" })] }],
  ["a NIC that is not attached", { rows: [facts({ containerId: "" })] }],
  ["a NIC without its address", { rows: [facts({}, { netns: "there" })] }],
  ["a pod that is being deleted", { rows: [facts({}, { pod: { ...ALIVE, pod: { ...ALIVE.pod, deleting: true } } })] }],
  ["a pod that has finished", { rows: [facts({}, { pod: { ...ALIVE, pod: { ...ALIVE.pod, phase: "Failed" } } })] }],
  ["a pod that is gone", { rows: [facts({}, { pod: { kind: "absent" } })] }],
  ["a second address that cools", { rows: [facts(), facts({ ip: ip("fd06::7"), state: "Cooling" })] }],
  ["one of these, although its ADD was served", { rows: [facts({ state: "Cooling" })], served: [served("c1")] }],
])("does not compare %s", async (_what, world) => {
  expect(await read(world)).toMatchObject({ requests: [], compared: 0 });
});

it("compares addresses of another IPAM plugin", async () => {
  const { requests, compared } = await read({ rows: [], served: [served("c7")] });
  expect([requests.length, compared]).toEqual([1, 1]);
});

it("compares without pods", async () => {
  expect((await read({ rows: [facts({}, { pod: { kind: "unknown" } })] })).compared).toBe(1);
});

it("reports operations, with the record", async () => {
  const operation = { kind: "add-rule" } as Operation;
  const { drifts } = await read({ compare: () => [operation] });
  const nic = { containerId: "c1", ifName: "eth0", netns: "/run/netns/a" };
  expect(drifts).toEqual([{ ...nic, row: facts().row, operations: [operation] }]);
});

const failing = (error: Error) => () => {
  throw error;
};

it("takes a refusal for a problem, and a namespace that is gone for nothing", async () => {
  const refusal = new CniError(ErrorCode.InterfaceRefused, "Interface is foreign");
  expect((await read({ compare: failing(refusal) })).problems).toEqual([
    "The routes of interface eth0 in /run/netns/a cannot be compared: Interface is foreign",
  ]);
  const gone = new NetnsError("open", "/run/netns/a", 2);
  expect(await read({ compare: failing(gone) })).toMatchObject({ drifts: [], problems: [] });
  await expect(read({ compare: failing(new TypeError("a bug")) })).rejects.toThrow("a bug");
});
