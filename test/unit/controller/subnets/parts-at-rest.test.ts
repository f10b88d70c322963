/** Which parts of the Subnets are planned again, and which are at rest until something changes. */
import { beforeEach, describe, expect, test } from "vitest";
import type { CurrentPool, OwnerState, SubnetsView } from "../../../../host/controller/subnets/model.ts";
import { PartsAtRest, WAITING_PLAN_MS } from "../../../../host/controller/subnets/parts-at-rest.ts";
import { planSubnets } from "../../../../host/controller/subnets/plan/plan-subnets.ts";
import { PlannedSubnets } from "../../../world/planned-subnets.ts";

let world: PlannedSubnets;
let nowMs: number;

beforeEach(() => {
  nowMs = 7_000_000;
  world = new PlannedSubnets();
  world.subnet("blue", { subnet: "10.9.0.0/24" });
  world.subnet("green", { subnet: "10.8.0.0/24" });
  world.applications.want("web", "u1", { count: 3 });
  world.applications.want("db", "u2", { count: 2, subnets: ["green"] });
  world.step();
});

/** The Subnets of the parts that are planned. */
const awake = (parts: PartsAtRest, view: SubnetsView) =>
  parts.plan(view).parts.map((part) => part.view.subnets.map(({ object }) => object.name).join(" "));

/** All that is planned rests then. */
function planAndRest(parts: PartsAtRest, view: SubnetsView) {
  const plan = parts.plan(view);
  for (const part of plan.parts) parts.rest(part);
  return plan;
}

/** All pools in a generation, as of an API server; everything is at rest. */
function rested(generation = 1) {
  const seen = world.view();
  const pools = seen.pools.map((pool) => ({ ...pool, object: { ...pool.object, generation } }));
  const view: SubnetsView = { ...seen, pools };
  const parts = new PartsAtRest(() => nowMs);
  return { parts, view, kept: planAndRest(parts, view).kept };
}

/** The workload is gone, or one does not know. */
function end(uid: string, liveness?: OwnerState): void {
  world.applications.end(uid);
  if (liveness !== undefined) world.liveness.set(`shop/${uid}`, liveness);
}

/** A workload with a pool in each of the Subnets' networks, which are one part from then on. */
function joinParts(): void {
  world.applications.want("api", "u6", { count: 1, subnets: ["blue", "green"] });
  world.step();
}

/** The pool of the Subnet is another object. */
const withPool = (view: SubnetsView, subnet: string, change: Partial<CurrentPool["object"]>): SubnetsView => ({
  ...view,
  pools: view.pools.map((pool) =>
    pool.generated.subnet === subnet ? { ...pool, object: { ...pool.object, ...change } } : pool,
  ),
});

test("nothing is planned again while nothing changes, whatever lists it comes in", () => {
  const { parts, view } = rested();
  expect(awake(parts, view)).toEqual([]);
  const { demands, subnets, pools, others, strays } = view;
  const copied = { demands: [...demands], subnets: [...subnets], pools: [...pools] };
  expect(awake(parts, { ...view, ...copied, others: [...others], strays: [...strays] })).toEqual([]);
});

test("what was planned stays awake until it is said to rest", () => {
  const parts = new PartsAtRest(() => nowMs);
  const view = world.view();
  const [blue] = parts.plan(view).parts;
  expect(awake(parts, view)).toEqual(["blue", "green"]);
  parts.rest(blue ?? expect.fail());
  expect(awake(parts, view)).toEqual(["green"]);
});

describe("a part is planned again", () => {
  const demand = (view: SubnetsView, at: number) => view.demands[at] ?? expect.fail();
  const one = ({ subnets: [first, ...others] }: SubnetsView) => [{ ...(first ?? expect.fail()) }, ...others];
  test.each<[string, (view: SubnetsView) => SubnetsView, string[]]>([
    ["its pool was written", (view) => withPool(view, "green", { generation: 2 }), ["green"]],
    ["its pool is being deleted", (view) => withPool(view, "green", { deleting: true }), ["green"]],
    ["its pool is another one of the name", (view) => withPool(view, "green", { uid: "other" }), ["green"]],
    ["not for a status of its pool", (view) => withPool(view, "green", {}), []],
    ["its pool is gone", (view) => ({ ...view, pools: view.pools.filter(({ generated }) => generated.subnet === "blue") }), ["green"]],
    ["its Subnet was written", (view) => ({ ...view, subnets: one(view) }), ["blue"]],
    ["a demand of it changes", (view) => ({ ...view, demands: [{ ...demand(view, 0) }, demand(view, 1)] }), ["blue"]],
    ["there is one more demand of it", (view) => ({ ...view, demands: [...view.demands, { ...demand(view, 1), ifName: "net1" }] }), ["green"]],
    ["a demand of it is gone", (view) => ({ ...view, demands: view.demands.slice(1) }), ["blue"]],
    ["its Subnet is closed to tenants", (view) => ({ ...view, closedTo: "kube-system" }), ["blue", "green"]],
    ["the labels of its namespace change", (view) => ({ ...view, labelsOf: () => ({}) }), ["blue", "green"]],
    ["not for labels of another namespace", (view) => ({ ...view, labelsOf: (name) => (name === "shop" ? world.labels : { a: "b" }) }), []],
    ["the largest size changes", (view) => ({ ...view, maxPoolSize: 7 }), ["blue", "green"]],
    ["the limit of namespaces changes", (view) => ({ ...view, maxPerNamespace: 900 }), ["blue green"]],
    ["other pools changed", (view) => ({ ...view, others: [{ addressSpace: "", family: 4, spans: [] }] }), ["blue", "green"]],
    ["an address has left its pool", (view) => ({ ...view, strays: [{ addressSpace: "", family: 4, address: 1n, pool: "x" }] }), ["blue", "green"]],
    ["it belongs together with another from now on", (view) => ({ ...view, demands: [...view.demands, { ...demand(view, 0), ifName: "net1", subnets: ["blue", "green"] }] }), ["blue green"]],
  ])("if %s", (_, change, wanted) => {
    const { parts, view } = rested();
    const changed = change(view);
    expect(awake(parts, changed)).toEqual(wanted);
    expect(awake(parts, changed), "nobody has said that it rests").toEqual(wanted);
  }); // biome-ignore format: a table

  test("if it is as it was before, but was planned otherwise meanwhile", () => {
    const { parts, view } = rested();
    awake(parts, withPool(view, "green", { generation: 2 }));
    expect(awake(parts, view)).toEqual(["green"]);
    awake(parts, { ...view, maxPoolSize: 7 });
    expect(awake(parts, view)).toEqual(["blue", "green"]);
  });

  test("if labels have changed since it was planned, in the map that was read then", () => {
    const { parts, view } = rested();
    world.labels = { team: "a" };
    expect(awake(parts, view)).toEqual(["blue", "green"]);
  });

  test("if the labels of the second of its namespaces change", () => {
    const { view } = rested();
    const [first] = view.demands;
    const { application } = first ?? expect.fail();
    const bank = { ...view, demands: [...view.demands, { ...first, application: { ...application, namespace: "bank" }, ifName: "net1" }] } as SubnetsView; // biome-ignore format: a row
    const none = {};
    const labelled = (labels: object) => ({ ...bank, labelsOf: (name: string) => (name === "bank" ? labels : none) }) as SubnetsView; // biome-ignore format: a row
    const parts = new PartsAtRest(() => nowMs);
    const before = labelled({});
    for (const part of parts.plan(before).parts) parts.rest({ ...part, isFinal: true });
    expect(awake(parts, before)).toEqual([]);
    expect(awake(parts, labelled({ team: "a" }))).toEqual(["blue"]);
  });

  test("if its Subnet was away for a while", () => {
    const { parts, view } = rested();
    const without = (name: string) => ({
      demands: view.demands.filter(({ subnets }) => !subnets.includes(name)),
      subnets: view.subnets.filter(({ object }) => object.name !== name),
      pools: view.pools.filter(({ generated }) => generated.subnet !== name),
    });
    expect(awake(parts, { ...view, ...without("green") })).toEqual([]);
    expect(awake(parts, view)).toEqual(["green"]);
  });
});

describe("an event of a pool needs no pass", () => {
  const pool = ({ pools }: SubnetsView, subnet: string) =>
    pools.find(({ generated }) => generated.subnet === subnet)?.object ?? expect.fail();
  const set = (before: CurrentPool["object"] | undefined, value: CurrentPool["object"]) =>
    ({ kind: "set", key: value.name, before, value }) as const;

  test("if only its status was written, and its part is at rest", () => {
    const { parts, view } = rested();
    const green = pool(view, "green");
    expect(parts.ignores(set(green, { ...green, resourceVersion: "9", status: { used: 1 } }))).toBe(true);
    // The other part goes on; this one still rests.
    awake(parts, withPool(view, "blue", { generation: 2 }));
    expect(parts.ignores(set(green, { ...green, status: {} }))).toBe(true);
    expect(parts.ignores(set(pool(view, "blue"), { ...pool(view, "blue"), status: {} }))).toBe(false);
  });

  test("but it does otherwise", () => {
    const { parts, view } = rested();
    const green = pool(view, "green");
    expect(parts.ignores(set(undefined, green)), "new").toBe(false);
    expect(parts.ignores({ kind: "gone", key: green.name, before: green }), "gone").toBe(false);
    expect(parts.ignores(set(green, { ...green, uid: "other" })), "another one").toBe(false);
    expect(parts.ignores(set(green, { ...green, value: undefined })), "invalid").toBe(false);
    const byHand = { ...green, value: { ...green.value, spec: { ...green.value?.spec, generated: undefined } } };
    expect(parts.ignores(set(green, byHand as typeof green)), "made by hand").toBe(false);
    expect(new PartsAtRest(() => nowMs).ignores(set(green, green)), "nothing was planned").toBe(false);
  });

  test("but it does while new pools of its part wait: their plan may be out of date", () => {
    const { parts, view } = rested();
    world.applications.want("new", "u7", { count: 2, subnets: ["green"] });
    const waiting = { ...view, demands: world.view().demands };
    planAndRest(parts, waiting);
    const green = pool(view, "green");
    expect(parts.ignores(set(green, { ...green, status: {} }))).toBe(false);
  });
});

describe("a part rests", () => {
  /** Whether the part of Subnet blue does after it was planned once more. */
  function isFinal(): boolean {
    const parts = new PartsAtRest(() => nowMs);
    const view = world.view();
    const [blue] = parts.plan(view).parts;
    parts.rest(blue ?? expect.fail());
    const isAtRest = !awake(parts, view).some((names) => names.startsWith("blue"));
    expect(blue?.isFinal).toBe(isAtRest);
    return isAtRest;
  }

  test.each<[string, boolean, () => void]>([
    ["all pools have what they should", true, () => {}],
    ["a pool has to grow", false, () => world.applications.want("web", "u1", { count: 4 })],
    ["a pool has to be described otherwise", false, () => world.applications.want("web", "u1", { reason: "three" })],
    ["one of two pools has to be described otherwise", false, () => {
      world.applications.want("api", "u6", { count: 1 });
      world.step();
      world.applications.want("web", "u1", { reason: "three" });
    }],
    ["a pool in one of two networks has to be described otherwise", false, () => {
      joinParts();
      world.applications.want("web", "u1", { reason: "three" });
    }],
    ["addresses are lacking", false, () => {
      world.subnet("blue", { subnet: "10.9.0.0/24", ips: ["10.9.0.4-10.9.0.6"] });
      world.applications.want("web", "u1", { count: 4 });
      world.step();
    }],
    ["a surplus is kept for a while", false, () => {
      world.excessMs = 0;
      world.applications.want("web", "u1", { count: 2 });
      world.step();
    }],
    ["a pool waits for an address in use", false, () => {
      world.held.add("10.9.0.4").add("10.9.0.5").add("10.9.0.6");
      world.applications.want("web", "u1", { count: 2 });
      world.step();
    }],
    ["an address in use is kept that the Subnet no longer has", false, () => {
      world.held.add("10.9.0.4");
      world.subnet("blue", { subnet: "10.9.0.0/24", excludeIPs: ["10.9.0.4"] });
      for (let count = 0; count < 3; count++) world.step();
    }],
    ["a pool has to go with its workload", false, () => end("u1", "gone")],
    ["a pool stays without its workload", true, () => {
      world.applications.want("web", "u1", { reclaim: false });
      world.step();
      end("u1", "gone");
    }],
    ["a workload has not been read", false, () => end("u1")],
    ["it is not known whether a workload lives", false, () => end("u1", "unknown")],
  ])("if %s: %s", (_, wanted, prepare) => {
    prepare();
    expect(isFinal()).toBe(wanted);
  }); // biome-ignore format: a table

  test("never if none of its Subnets exists: it is cheap", () => {
    world.applications.want("none", "u3", { count: 0, subnets: ["missing"] });
    const { parts, view } = rested();
    expect(awake(parts, view)).toEqual([""]);
  });
});

describe("a part whose new pools wait for their turn is not planned again", () => {
  /** A new workload in Subnet green, whose pool is planned; the turn has not come. */
  function waiting() {
    world.applications.want("new", "u7", { count: 2, subnets: ["green"] });
    const { parts, view, kept } = rested();
    expect(kept.size).toBe(0);
    return { parts, view };
  }

  /** The Subnets of what is planned, and whether that is the plan of an earlier pass. */
  const planned = (parts: PartsAtRest, view: SubnetsView) => {
    const plan = planAndRest(parts, view);
    return plan.networks.map((network) => [network.subnets[0]?.subnet.object.name, plan.kept.has(network)]);
  };

  test("while nothing changes: its plan stays part of the whole", () => {
    const { parts, view } = waiting();
    for (let pass = 0; pass < 3; pass++) {
      const plan = planAndRest(parts, { ...view, demands: [...view.demands] });
      expect(plan.networks).toEqual(planSubnets(view).networks.slice(1));
      expect(plan.networks[0]?.targets.filter(({ now }) => now === undefined)).toHaveLength(1);
    }
    expect(planned(parts, view)).toEqual([["green", true]]);
  });

  test("but it is when something changes, when something of it was written, and after a while", () => {
    const { parts, view } = waiting();
    const edited = withPool(view, "green", { generation: 2 });
    expect(planned(parts, edited)).toEqual([["green", false]]);
    expect(planned(parts, edited)).toEqual([["green", true]]);
    parts.plan(edited);
    expect(planned(parts, edited), "written").toEqual([["green", false]]);
    nowMs += WAITING_PLAN_MS - 1;
    expect(planned(parts, edited)).toEqual([["green", true]]);
    nowMs += 1;
    expect(planned(parts, edited), "after a while").toEqual([["green", false]]);
  });

  test.each<[string, () => void]>([
    ["a pool grows", () => world.applications.want("db", "u2", { count: 4, subnets: ["green"] })],
    ["a pool gives back", () => world.applications.want("db", "u2", { count: 1, subnets: ["green"] })],
    ["addresses are lacking", () => world.applications.want("huge", "u8", { count: 900, subnets: ["green"] })],
    ["a workload is gone", () => end("u2", "gone")],
    ["it is not known whether a workload lives", () => end("u2", "unknown")],
  ])("but it is if %s as well", (_, prepare) => {
    prepare();
    const { parts, view } = waiting();
    expect(planned(parts, view)).toEqual([["green", false]]);
  }); // biome-ignore format: a table
});

test("a part of two networks is planned again while a pool of one has to be written and those of the other only be made", () => {
  joinParts();
  world.applications.want("web", "u1", { reason: "three" });
  world.applications.want("new", "u7", { count: 2, subnets: ["green"] });
  const { parts, view } = rested();
  expect(parts.plan(view).kept.size).toBe(0);
});

test("a part whose new pool needs no address yet is planned again after a while, for it was not made", () => {
  // The part's other network has nothing new.
  joinParts();
  world.applications.want("none", "u8", { count: 0, subnets: ["green"] });
  const { parts, view } = rested();
  expect(parts.plan(view).networks.flatMap(({ targets }) => targets.filter(({ now }) => !now))).toHaveLength(1);
  nowMs += WAITING_PLAN_MS;
  expect(awake(parts, view)).toEqual(["blue green"]);
});
