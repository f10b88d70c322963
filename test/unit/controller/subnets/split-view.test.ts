/** Which Subnets are planned together, and with which pools and demands. */
import { beforeEach, describe, expect, test } from "vitest";
import type { SubnetsView } from "../../../../host/controller/subnets/model.ts";
import { splitView } from "../../../../host/controller/subnets/plan/split-view.ts";
import { PlannedSubnets } from "../../../world/planned-subnets.ts";

let world: PlannedSubnets;

beforeEach(() => {
  world = new PlannedSubnets();
  world.subnet("blue", { subnet: "10.9.0.0/24" });
  world.subnet("green", { subnet: "10.8.0.0/24" });
  world.subnet("red", { subnet: "10.7.0.0/24" });
});

function pool(name: string, subnet: string, network: string, { namespace = "shop", addressSpace = "" } = {}): void {
  const application = { apiVersion: "apps/v1", kind: "Deployment", namespace, name, uid: `u-${name}` };
  const generated = { subnet, application, interface: "eth0", reclaim: true, wanted: 1, reason: "" };
  world.pool(name, { subnet: network, ips: [], addressSpace, generated });
}

/** The demands of a workload whose name begins with `other` are of a namespace of its own. */
function view(): SubnetsView {
  const plain = world.view();
  const demands = plain.demands.map(({ application, ...demand }) => ({
    ...demand,
    application: { ...application, namespace: application.name.startsWith("other") ? application.name : "shop" },
  }));
  return { ...plain, demands };
}

/** `blue green: pools of these < workloads`. */
const parts = () =>
  splitView(view())
    .map(({ subnets, pools, demands }) =>
      [
        `${subnets.map(({ object }) => object.name).join(" ")}:`,
        ...pools.map(({ object }) => object.name),
        ...["<", ...demands.map(({ application }) => application.name)],
      ].join(" "),
    )
    .sort();

describe("Subnets that have nothing in common", () => {
  test("are planned one by one, each with its own pools and demands", () => {
    pool("b1", "blue", "10.9.0.0/24");
    pool("g1", "green", "10.8.0.0/24");
    pool("b2", "blue", "10.9.0.0/24");
    world.applications.want("db", "u1", { subnets: ["green"] });
    world.applications.want("web", "u2", { subnets: ["blue"] }, { subnets: ["red"] });
    expect(parts()).toEqual(["blue: b1 b2 < web", "green: g1 < db", "red: < web"]);
  });

  test("have the same settings, and whatever none of them may give", () => {
    world.byHand = ["10.9.0.4-10.9.0.6"];
    world.strays.set("10.8.0.4", "former");
    world.maxPoolSize = 77;
    const whole = view();
    const [first, ...others] = splitView(whole);
    expect(others).toHaveLength(2);
    for (const part of [first, ...others]) {
      const { subnets: _, pools: _pools, demands: _demands, ...common } = part as SubnetsView;
      expect(whole).toMatchObject(common);
      expect(common).toMatchObject({ maxPoolSize: 77, others: whole.others, strays: whole.strays });
    }
  });
});

describe("Subnets are planned together", () => {
  test.each([
    ["with networks one in the other", "10.9.0.128/25", "", ["blue lime: <", "green: <", "red: <"]],
    ["with networks one around two others", "10.8.0.0/15", "", ["blue green lime: <", "red: <"]],
    [
      "not with the same network in another address space",
      "10.9.0.0/24",
      "lab",
      ["blue: <", "green: <", "lime: <", "red: <"],
    ],
  ])("%s", (_, subnet, addressSpace, wanted) => {
    world.subnet("lime", { subnet, addressSpace });
    expect(parts()).toEqual(wanted);
  });

  test("if a demand names them, whichever comes first", () => {
    world.applications.want("web", "u1", { subnets: ["red", "blue"] });
    expect(parts()).toEqual(["blue red: < web", "green: <"]);
  });

  test("if a demand names them beside one that is missing", () => {
    world.applications.want("web", "u1", { subnets: ["missing", "green", "gone", "blue"] });
    expect(parts()).toEqual(["blue green: < web", "red: <"]);
  });

  test("once, if two demands name both", () => {
    world.applications.want("web", "u1", { subnets: ["blue", "green"] });
    world.applications.want("db", "u2", { subnets: ["green", "blue"] });
    expect(parts()).toEqual(["blue green: < web db", "red: <"]);
  });

  test("not because demands for them name one more each that is missing", () => {
    world.applications.want("web", "u1", { subnets: ["blue", "missing"] });
    world.applications.want("db", "u2", { subnets: ["missing", "green"] });
    expect(parts()).toEqual(["blue: < web", "green: < db", "red: <"]);
  });

  test("if several demands lead from one to the other", () => {
    world.subnet("lime", { subnet: "10.6.0.0/24" });
    world.applications.want("web", "u1", { subnets: ["blue", "green"] });
    world.applications.want("db", "u2", { subnets: ["red", "lime"] });
    world.applications.want("api", "u3", { subnets: ["lime", "green"] });
    expect(parts()).toEqual(["blue green red lime: < web db api"]);
  });

  test("not if two demands of one workload name one each", () => {
    world.applications.want("web", "u1", { subnets: ["blue"] }, { subnets: ["green"] });
    expect(parts()).toEqual(["blue: < web", "green: < web", "red: <"]);
  });
});

describe("where namespaces have limits", () => {
  beforeEach(() => {
    world.applications.want("web", "u1", { subnets: ["blue"] });
    world.applications.want("db", "u2", { subnets: ["green"] });
    world.applications.want("other", "u3", { subnets: ["red"] });
  });

  test.each([
    [0, ["blue: < web", "green: < db", "red: < other"]],
    [1, ["blue green: < web db", "red: < other"]],
  ])("Subnets of one namespace's demands belong together: %i addresses", (limit, wanted) => {
    world.maxPerNamespace = limit;
    expect(parts()).toEqual(wanted);
  });

  test.each([
    [0, ["blue: < web", "green: other-1 < db", "red: < other"]],
    [1, ["blue green red: other-1 < web db other"]],
  ])("a pool that a namespace still has in another Subnet counts: %i addresses", (limit, wanted) => {
    pool("other-1", "green", "10.8.0.0/24", { namespace: "other" });
    world.maxPerNamespace = limit;
    expect(parts()).toEqual(wanted);
  });

  test.each([
    [0, ["blue: a1 <", "green: a2 <", "red: b1 <"]],
    [1, ["blue green: a1 a2 <", "red: b1 <"]],
  ])("pools that nobody demands any more count among themselves: %i addresses", (limit, wanted) => {
    for (const uid of ["u1", "u2", "u3"]) world.applications.end(uid);
    pool("a1", "blue", "10.9.0.0/24", { namespace: "a" });
    pool("b1", "red", "10.7.0.0/24", { namespace: "b" });
    pool("a2", "green", "10.8.0.0/24", { namespace: "a" });
    world.maxPerNamespace = limit;
    expect(parts()).toEqual(wanted);
  });

  test("a demand that names no Subnet that exists joins none", () => {
    world.applications.want("web", "u1", { subnets: ["missing"] });
    world.maxPerNamespace = 1;
    expect(parts()).toEqual([": < web", "blue: <", "green: < db", "red: < other"]);
  });
});

test("demands that name no Subnet that exists are a part of their own, which says what is missing", () => {
  world.applications.want("web", "u1", { subnets: ["missing"] });
  world.applications.want("db", "u2", { subnets: [] });
  world.applications.want("api", "u3", { subnets: ["blue"] });
  expect(parts()).toEqual([": < web db", "blue: < api", "green: <", "red: <"]);
});

describe("a pool without its Subnet concerns all", () => {
  test.each([
    ["the Subnet is gone", "missing", "10.9.0.0/24", ""],
    ["the Subnet has another network", "blue", "10.8.0.0/24", ""],
    ["the Subnet has a narrower network", "blue", "10.9.0.0/16", ""],
    ["the Subnet is in another address space", "blue", "10.9.0.0/24", "lab"],
  ])("%s", (_, subnet, network, addressSpace) => {
    pool("g1", "green", "10.8.0.0/24");
    pool("b1", subnet, network, { addressSpace });
    const whole = view();
    expect(splitView(whole)).toEqual([whole]);
  });
});

test("of no Subnets and no demands there is nothing to plan", () => {
  world.subnets.clear();
  expect(parts()).toEqual([]);
});
