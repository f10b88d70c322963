import { describe, expect, it } from "vitest";
import type { LiveObjects, ReadResult } from "../../../../host/agent/backend.ts";
import { gatherPoolFacts, type PoolFactsDeps } from "../../../../host/agent/operate/pool-facts.ts";
import type { Snapshot } from "../../../../host/resources/snapshot.ts";
import { EMPTY_SNAPSHOT, pool, poolsByName } from "../../../world/subjects.ts";

const application = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "web", uid: "u-1" };
const generated = { subnet: "blue", application, interface: "eth0", reclaim: true, wanted: 5, reason: "4 replicas" };
const metadata = (name: string) => ({ name });
const API = { apiVersion: "ipam.vendor.io/v1" };
const conditions = [
  { type: "Ready", status: "True", message: "" },
  { type: "Supplied", status: "False", message: "has 0 of 5" },
  { type: "Overlap", status: "False", message: "" },
  { type: "OutsideSubnet", status: "True", message: "outside" },
].map((each) => ({ ...each, reason: "", lastTransitionTime: "" }));
const spec = { subnet: "10.6.0.0/24", ips: ["10.6.0.1"], generated };
const WEB = { ...API, kind: "IPPool", metadata: metadata("web"), spec, status: { conditions } };
const BLUE = {
  ...{ ...API, kind: "Subnet", metadata: metadata("blue"), spec: { subnet: "10.6.0.0/24" } },
  status: { total: 20, pools: [{ name: "web", ips: ["10.6.0.1"], application: "Deployment shop/web" }] },
};

/** `objects` by `plural/name`; `asked`: the requested ones. */
function live(objects: Record<string, ReadResult<unknown>>) {
  const requested: string[] = [];
  const read: LiveObjects["read"] = async (plural, name) => {
    requested.push(`${plural}/${name}`);
    return objects[`${plural}/${name}`] ?? { kind: "absent" };
  };
  return { requested, read };
}

const there = (value: unknown): ReadResult<unknown> => ({ kind: "there", value });

function deps(snapshot: Partial<Snapshot>, objects?: LiveObjects): PoolFactsDeps {
  const poolCache = { counts: () => ({ total: 1n, free: 1n }), exceptionsOf: () => [] };
  const inventory = { loaded: async () => ({ ...EMPTY_SNAPSHOT, ...snapshot }), poolCache };
  return { inventory: inventory as unknown as PoolFactsDeps["inventory"], live: objects };
}

const WATCHED = { pools: poolsByName(pool("web", "10.6.0.0/24", {})) };

describe("facts of a pool", () => {
  it("are what the API server says now, not what the watch has", async () => {
    const objects = live({ "ippools/web": there(WEB), "subnets/blue": there(BLUE) });
    const facts = await gatherPoolFacts(deps(WATCHED, objects), "web");
    expect(facts.pool?.spec.generated).toEqual(generated);
    expect(facts.live?.subnet).toMatchObject({ kind: "there", value: { total: 20, deleting: false } });
    expect(facts.live?.usage).toEqual({ kind: "absent" });
    expect(objects.requested.sort()).toEqual(["ippools/web", "ippoolusages/web", "subnets/blue"]);
  });
  it("have the conditions that are trouble: Ready and Supplied when false, others when true", async () => {
    const facts = await gatherPoolFacts(deps(WATCHED, live({ "ippools/web": there(WEB) })), "web");
    const reported = facts.live?.troubles;
    expect(reported?.kind === "there" ? reported.value.map(({ type }) => type) : reported).toEqual([
      "Supplied",
      "OutsideSubnet",
    ]);
  });
  it("are of the watch when the API server does not answer, and of it alone in the embedded mode", async () => {
    const silent: ReadResult<unknown> = { kind: "unseen", why: "no answer" };
    const facts = await gatherPoolFacts(deps(WATCHED, live({ "ippools/web": silent })), "web");
    expect(facts.pool).toBe(WATCHED.pools.get("web"));
    expect(facts.live?.troubles).toEqual(silent);
    expect(await gatherPoolFacts(deps(WATCHED), "web")).toMatchObject({ live: undefined, counts: { total: 1n } });
  });
  it("of a pool that cannot be used have the reason", async () => {
    const refused = new Map([["bad", "is refused: its subnet"]]);
    const facts = await gatherPoolFacts(deps({ refused }), "bad");
    expect(facts).toMatchObject({ pool: undefined, refusal: "is refused: its subnet" });
  });
  it("of an answer that is none say so", async () => {
    const objects = live({
      "ippools/web": there(WEB),
      "subnets/blue": there({ ...BLUE, status: { pools: [{ name: 7 }] } }),
      "ippoolusages/web": there({}),
    });
    const facts = await gatherPoolFacts(deps(WATCHED, objects), "web");
    expect(facts.live?.subnet).toMatchObject({ kind: "unseen", why: expect.stringContaining("pools[0].name") });
    expect(facts.live?.usage).toMatchObject({ kind: "unseen" });
  });
  it.each([
    ["that is not there", {}, live({}), "web"],
    ["that the API server does not have any more", WATCHED, live({}), "web"],
    ["of the embedded mode that is not there", {}, undefined, "web"],
    ["of a name that no object has, which is not asked for", {}, live({ "ippools/a,b": there(WEB) }), "a,b"],
  ] as const)("there are none of a pool %s", async (_, snapshot, objects, name) => {
    const refused = { code: 100, message: `There is no IPPool "${name}"` };
    await expect(gatherPoolFacts(deps(snapshot, objects), name)).rejects.toMatchObject(refused);
  });
});
