import { describe, expect, it } from "vitest";
import type { LiveObjects, ReadResult } from "../../../../host/agent/backend.ts";
import { type ExplainPoolDeps, explainPool } from "../../../../host/agent/operate/explain-pool.ts";
import type { Snapshot } from "../../../../host/resources/snapshot.ts";
import { leasingPool } from "../../../world/leasing-pool.ts";
import { EMPTY_SNAPSHOT, pool, poolsByName } from "../../../world/subjects.ts";
import { range } from "../../../world/values.ts";

const application = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "web", uid: "u-1" };
const generated = {
  ...{ subnet: "blue", application, interface: "eth0", reclaim: true },
  ...{ wanted: 5, reason: "4 replicas and 1 more" },
};
const API = { apiVersion: "ipam.vendor.io/v1" };
const condition = (type: string, status: "True" | "False", reason: string, message = "") => {
  return { type, status, reason, message, lastTransitionTime: "" };
};

/** The API server's IPPool `web`. */
const web = (spec: object = {}, ...conditions: object[]) => {
  const own = { subnet: "10.6.0.0/24", ips: ["10.6.0.1-10.6.0.5"], generated, ...spec };
  return there({ ...API, kind: "IPPool", metadata: { name: "web" }, spec: own, status: { conditions } });
};

const there = (value: unknown): ReadResult<unknown> => ({ kind: "there", value });
const counts = { total: 5, free: 1, bound: 3, cooling: 1, kept: 0, quarantined: 0, outside: 0, others: 0 };
const USAGE = there({
  ...API,
  kind: "IPPoolUsage",
  metadata: { name: "web" },
  status: { rangesHash: "0".repeat(16), ...counts },
});

/** `objects`: the API server's by `plural/name`; undefined: no cluster. */
function explain(name: string, snapshot: Partial<Snapshot>, objects?: Record<string, ReadResult<unknown>>) {
  const poolCache = { counts: () => ({ total: 5n, free: 2n }), exceptionsOf: () => [] };
  const inventory = { loaded: async () => ({ ...EMPTY_SNAPSHOT, ...snapshot }), poolCache };
  const read: LiveObjects["read"] = async (plural, name) => objects?.[`${plural}/${name}`] ?? { kind: "absent" };
  const deps = { inventory, live: objects && { read } };
  return explainPool(deps as unknown as ExplainPoolDeps, name);
}

const inCluster = (object: ReadResult<unknown>, snapshot: Partial<Snapshot> = {}) =>
  explain("web", snapshot, { "ippools/web": object, "ippoolusages/web": USAGE });
const lineOf = async (lines: Promise<string[]>, begin: string) => (await lines).find((each) => each.startsWith(begin));
const HERE = "as far as this node knows";

describe("a generated pool", () => {
  it("has an owner, a demand, its usage and its future", async () =>
    expect(await inCluster(web())).toEqual([
      'pool "web": generated from Subnet "blue" for Deployment shop/web, UID u-1',
      "used by: interface eth0 of its pods only",
      "when Deployment shop/web is gone: the pool is deleted when its last address is free (ippool-reclaim is true)",
      "wants: 5 addresses (4 replicas and 1 more)",
      "has: 5 addresses of IPv4 network 10.6.0.0/24: 10.6.0.1-10.6.0.5",
      "in use: 3 by pods, 1 cooling, 0 kept, 0 in quarantine; 1 of 5 are free, at the last count of the controller",
    ]));

  it("repeats its conditions, with the ids of check", async () => {
    const conditions = [
      condition("Ready", "True", "Ready"),
      condition("Supplied", "False", "SubnetFull", "has 5 of 9"),
      condition("Overlap", "False", "NoOverlap"),
      condition("OutsideSubnet", "True", "PartlyInside", "outside"),
    ];
    expect((await inCluster(web({}, ...conditions))).slice(-2)).toEqual([
      "SubnetFull: has 5 of 9",
      "PartlyInside: outside",
    ]);
  });

  it("that stays when the workload is gone", async () =>
    expect(await lineOf(inCluster(web({ generated: { ...generated, reclaim: false } })), "when")).toBe(
      "when Deployment shop/web is gone: the pool stays for the next Deployment shop/web (ippool-reclaim is false)",
    ));

  it("of many ranges: a few are named", async () => {
    const ips = Array.from({ length: 7 }, (_, index) => `10.6.0.${2 * index + 1}`);
    const some = /: 10.6.0.1, 10.6.0.3, 10.6.0.5, 10.6.0.7, 10.6.0.9 and 2 more$/;
    expect(await lineOf(inCluster(web({ ips })), "has")).toMatch(some);
    expect(await lineOf(inCluster(web({ ips: [] })), "has")).toBe("has: 0 addresses of IPv4 network 10.6.0.0/24");
  });

  it("says which of its addresses a ReservedIP of its address space has", async () => {
    const reserved = [
      ["10.6.0.4-10.6.0.9", ""],
      ["10.6.0.5", "lab"],
      ["10.6.0.6", ""],
    ].map(([ips = "", addressSpace = ""]) => {
      return { kind: "ReservedIP", name: "printer", spec: { family: 4, ranges: [range(ips)], addressSpace } } as const;
    });
    const said = 'never allocated: 10.6.0.4-10.6.0.9 (ReservedIP "printer" has it)';
    expect(await lineOf(inCluster(web(), { reserved }), "never")).toBe(said);
  });
});

describe("a pool that leases its addresses", () => {
  const LEASING = leasingPool("seg", "10.6.0.0/24", ["10.6.0.16/28 Active", "10.6.0.32/28 Resting"]);
  it("says from where, and its blocks", async () =>
    expect(await explain("seg", { pools: poolsByName(LEASING) })).toEqual([
      'pool "seg": leases its addresses in blocks of AddressRange "seg"',
      "has: 16 addresses of IPv4 network 10.6.0.0/24: 10.6.0.16-10.6.0.31",
      `in use: 3; 2 of 5 are free, ${HERE}`,
      "blocks: 1 Active, 1 Resting: 10.6.0.16/28 Active, 10.6.0.32/28 Resting",
    ]));

  it("names its share, that of other clusters, and since when its hub is silent", async () => {
    const others = ["north", "west"].map((member) => ({ member, blocks: 2, ranges: [] }));
    const report = { reason: "HubAway", heard: "2026-11-27T00:00:00.000Z", member: "east", share: 4, others };
    const told = { ...LEASING, source: LEASING.source && { ...LEASING.source, report } };
    expect((await explain("seg", { pools: poolsByName(told) })).slice(-3)).toEqual([
      "blocks: 1 Active, 1 Resting: 10.6.0.16/28 Active, 10.6.0.32/28 Resting; the cluster may have 4",
      "other clusters: north 2, west 2",
      "hub: answered last at 2026-11-27T00:00:00.000Z",
    ]);
  });
});

describe("a pool made by hand", () => {
  const disabled = pool("blue", "10.6.0.0/24", { ips: ["10.6.0.9"], disable: true });
  it("of the embedded mode", async () =>
    expect(await explain("blue", { pools: poolsByName(disabled) })).toEqual([
      'pool "blue": created by hand; its size is fixed',
      "allocates nothing: spec.disable is true",
      "has: 1 address of IPv4 network 10.6.0.0/24: 10.6.0.9",
      `in use: 3; 2 of 5 are free, ${HERE}`,
    ]));

  it("that is being deleted allocates nothing, which no finding says", async () => {
    const deleted = { ...pool("web", "10.6.0.0/24", {}), deleting: true };
    expect(await lineOf(explain("web", { pools: poolsByName(deleted) }), "allocates")).toBe(
      "allocates nothing: it is being deleted; it is removed when its last address is free",
    );
  });

  const WATCHED = { pools: poolsByName(pool("web", "10.6.0.0/24", {})) };
  it("is the API server's, not the watch's; else the watch's, with the reason", async () => {
    expect(await lineOf(inCluster(web(), WATCHED), "pool")).toContain("generated from");
    const unseen = await inCluster({ kind: "unseen", why: "no answer" }, WATCHED);
    expect([unseen[0], unseen.at(-1)]).toEqual([
      'pool "web": created by hand; its size is fixed',
      "conditions: cannot be read: no answer",
    ]);
  });

  it("that cannot be used has the reason once, and a usage that cannot be read is none", async () => {
    const refused = new Map([["web", "cannot be used: field x"]]);
    const notReady = condition("Ready", "False", "Refused", "cannot be used: field x");
    const lines = await explain(
      "web",
      { refused },
      { "ippools/web": web({}, notReady), "ippoolusages/web": there({}) },
    );
    expect(lines.filter((line) => line.includes("field x"))).toEqual(["allocates nothing: it cannot be used: field x"]);
    expect(lines).toContain(`in use: 3; 2 of 5 are free, ${HERE}`);
    expect(await explain("web", { refused })).toHaveLength(2);
  });

  it.each([
    ["that is not there", {}, {}, "web"],
    ["that the API server does not have any more", WATCHED, {}, "web"],
    ["of the embedded mode that is not there", {}, undefined, "web"],
    ["of a name that no object has, which is not asked for", {}, { "ippools/a,b": web() }, "a,b"],
  ] as const)("%s is refused", async (_, snapshot, objects, name) => {
    const refused = { code: 100, message: `There is no IPPool "${name}"` };
    await expect(explain(name, snapshot, objects)).rejects.toMatchObject(refused);
  });
});
