/**
 * The last release's state is read as it was meant: objects of the API server, and the journal of a node
 * (docs/stability.md). test/lab/cluster/record-release.ts records both.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it, onTestFinished } from "vitest";
import { parseAllDocuments } from "yaml";
import {
  decodeControlledCoordinator,
  decodeControlledPool,
  decodeControlledReservation,
  decodeControlledSubnet,
} from "../../../host/controller/objects.ts";
import type { KubeObject } from "../../../host/kubernetes/kube-api.ts";
import { createFaultCounter } from "../../../host/lib/fault.ts";
import { formatIp } from "../../../host/net/ip.ts";
import { openSqliteJournal } from "../../../host/registry/sqlite/sqlite-registry.ts";
import { decodeIpAllocation } from "../../../host/resources/ip-allocation.ts";
import { root } from "../../../scripts/setup/paths.mjs";
import { lastRelease } from "../../../scripts/setup/version.mjs";
import { temporaryDirectory } from "../../world/temporary-directory.ts";

const read = (name: string) => readFileSync(join(root, "test", "vectors", "last-release", name), "utf8");
const objects = parseAllDocuments(read("objects.yaml")).map((document): KubeObject => document.toJS());
const ofKind = (kind: string) => objects.filter((object) => object.kind === kind);

it.each(["objects.yaml", "journal.sql"])("%s is of the last release", (name) => {
  expect(read(name).split("\n")[0]).toContain(` ${lastRelease.version} `);
});

it.each([
  ["IPPool", decodeControlledPool],
  ["Subnet", decodeControlledSubnet],
  ["ReservedIP", decodeControlledReservation],
  ["Coordinator", decodeControlledCoordinator],
] as const)("every %s is valid, with its status", (kind, decode) => {
  expect(ofKind(kind).length).toBeGreaterThan(0);
  for (const object of ofKind(kind)) {
    const { name, value, fault, conditions, status } = decode(object);
    expect([name, fault]).toEqual([value?.name, undefined]);
    expect(conditions.length + Object.keys(status).length).toBeGreaterThan(0);
  }
});

it("IPAllocations say which pod has which address, and for which workload one is retained", () => {
  const found = ofKind("IPAllocation").map((object) => decodeIpAllocation(object, "test").spec);
  const rows = found.map(({ pool, node, state, holders: [holder], workload }) =>
    [pool, node, state, holder?.pod ?? "-", workload?.member ?? "-"].join(" "),
  );
  expect(rows.sort()).toEqual(["blue n1 Bound db-0 db-0", "blue n1 Bound web -", "blue n1 Kept - db-1"]);
});

it("a node's journal goes on with its pods' addresses, by the machine's boot", async () => {
  const directory = temporaryDirectory("berth-recorded-", onTestFinished);
  const file = new DatabaseSync(join(directory, "registry.sqlite"));
  file.exec(read("journal.sql"));
  const boot = String(file.prepare("SELECT boot FROM allocation").get()?.boot);
  file.close();
  const journal = await openSqliteJournal({
    ...{ directory, bootId: boot, lockWaitMs: 0, nowMs: () => 50_000_000, faultCounter: createFaultCounter() },
    cooldowns: { defaultMs: 30_000, byPool: new Map() },
    onFreed: () => expect.unreachable(),
    onDeath: (error) => {
      throw error;
    },
  });
  onTestFinished(() => journal.close());
  const rows = await journal.list(undefined, 10);
  const specs = ofKind("IPAllocation").map((object) => decodeIpAllocation(object, "test").spec);
  const addresses = new Map(specs.map(({ ip, holders }) => [holders[0]?.pod, formatIp(ip)]));
  const found = rows.map(({ ip, workload, ...row }) => ({ ...row, ip: formatIp(ip), member: workload?.member }));
  expect(found).toMatchObject([
    { ip: addresses.get("db-0"), state: "Bound", pod: "db-0", isConfirmed: true, member: "db-0" },
    { ip: addresses.get("web"), state: "Bound", pod: "web", isConfirmed: true, member: undefined },
  ]);
});
