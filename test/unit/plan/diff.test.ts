/** Diffs of plan and state: rows of routes, and inverses. The order of operations is in test/vectors/coordinator. */
import { expect, it } from "vitest";
import { diffPlan } from "../../../host/plan/diff.ts";
import { inverseOf, inverseOfAll } from "../../../host/plan/operation.ts";
import type { Owned, Plan, Wanted } from "../../../host/plan/plan.ts";
import type { NamespaceState, RouteState } from "../../../host/plan/state.ts";
import { formatOperation } from "../../../host/plan/text.ts";
import { applyAll, applyStatement, NOTHING } from "../coordinator/plan-model.ts";
import { readStatement } from "../coordinator/plan-words.ts";

const LINKS = ["pod: link a macvlan address 02:00:00:00:00:0a", "pod: link b macvlan address 02:00:00:00:00:0b"];

const routeOf = (line: string): RouteState => {
  const { fact } = readStatement(`pod: route ${line}`);
  return fact.kind === "route" ? fact.route : expect.unreachable();
};

const NOTHING_WANTED: Wanted = {
  links: new Map(),
  sysctls: new Map(),
  addresses: [],
  neighbours: [],
  routes: [],
  rules: [],
  tables: [],
};
const NOTHING_OWNED: Owned = { addresses: [], neighbours: [], routes: [], rules: [], tables: [] };

/** A plan for the pod alone that owns all routes of it. */
function planFor(pod: NamespaceState, wanted: Partial<Wanted>): Plan {
  return {
    wanted: { pod: { ...NOTHING_WANTED, ...wanted }, host: NOTHING_WANTED },
    owned: { pod: { ...NOTHING_OWNED, routes: pod.routes }, host: NOTHING_OWNED },
  };
}

const VIA = (host: number): string => `default via 10.0.0.${host} dev a proto boot`;

/**
 * The routes of the row, the first one first, and the wanted ones of them → the operations, with `first` and `last`.
 */
const rows: [what: string, row: number[], wanted: number[], done: string[]][] = [
  ["one that is alone is simply deleted", [1], [], ["del 1"]],
  ["the first of two", [1, 2], [2], ["del 1 first"]],
  ["the last of two", [1, 2], [1], ["del 2 last"]],
  ["both: the second is alone by then", [1, 2], [], ["del 1 first", "del 2"]],
  ["those before and behind the one that stays, from outside", [1, 2, 3, 4, 5], [3], ["del 1 first", "del 2 first", "del 5 last", "del 4 last"]],
  ["all in the way of a new one go before it comes", [1, 2], [9], ["del 1 first", "del 2", "add 9"]],
  ["a new one in the place of the first, before the one that stays", [1, 2], [2, 9], ["del 1 first", "add 9 first"]],
  ["a new one in the place of the last, behind the one that stays", [1, 2], [1, 9], ["del 2 last", "add 9 last"]],
]; // biome-ignore format: one case a line

it.each(rows)("a row of routes with one destination and metric: %s", (_, row, wanted, done) => {
  const lines = row.toReversed().map((host) => `pod: route ${VIA(host)}`); // each comes before those that are there
  const observed = [...LINKS, ...lines].map(readStatement).reduce(applyStatement, NOTHING);
  const operations = diffPlan(observed, planFor(observed.pod, { routes: wanted.map((host) => routeOf(VIA(host))) }));
  const told = operations.map((operation) => {
    const [, verb, host] = /route (add|del) default via 10\.0\.0\.(\d)/.exec(formatOperation(operation)) ?? [];
    const beside = "beside" in operation ? operation.beside : undefined;
    return [verb, host, beside].filter((word) => word !== undefined).join(" ");
  });
  expect(told).toEqual(done);
  expect(applyAll(applyAll(observed, operations), inverseOfAll(operations)).pod.routes).toEqual(observed.pod.routes);
});

it("a route that is owned for two reasons goes once, and its successor stands beside the one that stays", () => {
  const lines = [VIA(2), VIA(1)].map((text) => `pod: route ${text}`);
  const observed = [...LINKS, ...lines].map(readStatement).reduce(applyStatement, NOTHING);
  const { routes } = observed.pod;
  const plan = planFor(
    { ...observed.pod, routes: [...routes, ...routes.slice(1)] },
    { routes: [1, 9].map((host) => routeOf(VIA(host))) },
  );
  expect(diffPlan(observed, plan)).toEqual([
    { kind: "delete-route", place: "pod", route: routeOf(VIA(2)), beside: "last" },
    { kind: "add-route", place: "pod", route: routeOf(VIA(9)), beside: "last" },
  ]);
});

it("an IPv6 route of several next hops may hide others: its successor is put beside them, and so is it when that is undone", () => {
  const both = "::/0 proto boot nexthop via fd00::1 dev a weight 1 nexthop via fd01::1 dev b weight 1";
  const observed = [...LINKS, `pod: route ${both}`].map(readStatement).reduce(applyStatement, NOTHING);
  const one = routeOf("::/0 via fd00::1 dev a proto boot");
  expect(diffPlan(observed, planFor(observed.pod, { routes: [one] }))).toEqual([
    { kind: "delete-route", place: "pod", route: routeOf(both), beside: "last" },
    { kind: "add-route", place: "pod", route: one, beside: "last" },
  ]);
});

it("is made in time for a pod that was given very many routes", { timeout: 5_000 }, () => {
  const { pod } = LINKS.map(readStatement).reduce(applyStatement, NOTHING);
  const one = routeOf("10.0.0.0/32 dev a proto 98");
  const routes = Array.from({ length: 8_000 }, (_, at) => {
    const ip = { family: 4, value: one.destination.ip.value + BigInt(at) } as const;
    return { ...one, destination: { ip, length: 32 } };
  });
  const full = { ...pod, routes };
  expect(diffPlan({ ...NOTHING, pod: full }, planFor(full, {}))).toHaveLength(routes.length);
});

it("the inverse of a setting is the old value, and none for that of a link that was not there", () => {
  const set = { kind: "set-sysctl", place: "pod", key: "ipv4/conf/a/rp_filter", to: "0" } as const;
  expect(inverseOf({ ...set, from: "2" })).toEqual({ ...set, from: "0", to: "2" });
  expect(inverseOf({ ...set, from: undefined })).toBeUndefined();
});
