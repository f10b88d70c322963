/**
 * For any state of a pod and its node, and any request: a plan can be applied, leaves nothing to do, can be undone,
 * takes nothing of others, and no operation takes back another.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CniError } from "../../../host/cni/error.ts";
import { nameVeth } from "../../../host/coordinator/plan/names.ts";
import { insteadOf } from "../../../host/lib/try-or.ts";
import { formatIp } from "../../../host/net/ip.ts";
import { inverseOfAll, type Operation } from "../../../host/plan/operation.ts";
import type { Observed } from "../../../host/plan/state.ts";
import { formatOperation } from "../../../host/plan/text.ts";
import { applyAll, applyStatement, inventory, NOTHING } from "../../unit/coordinator/plan-model.ts";
import { type Answer, answerRequest, type Request, readRequest } from "../../unit/coordinator/plan-request.ts";
import { readStatement } from "../../unit/coordinator/plan-words.ts";
import { times } from "../../world/long-cases.ts";

/** `PLAN_RUNS=n` for more. */
const RUNS = Number(process.env.PLAN_RUNS ?? times(200));

/** An event of a pod: a link comes or goes with its routes, another process changes something, a request. */
type Event = { readonly lines: readonly string[] } | { readonly request: Request };

const NICS = ["eth0", "net1", "net2", "net3"];
const netOf = (name: string): number => 6 + NICS.indexOf(name);

const NODE = [
  "host: link eth0 device address 02:00:00:00:01:01",
  "host: addr 10.6.0.2/24 dev eth0",
  "host: sysctl ipv4/ip_forward=1",
  "host: rule pref 0 from all lookup 255 proto kernel",
  "host: sysctl ipv4/conf/all/rp_filter=0",
  "pod: link lo loopback",
  "pod: sysctl ipv4/conf/all/rp_filter=1",
  "pod: rule pref 32766 from all lookup 254 proto kernel",
];

const conf = fc.record(
  {
    mode: fc.constantFrom("auto", "underlay", "overlay"),
    tunePodRoutes: fc.boolean(),
    podDefaultRouteNic: fc.constantFrom("", ...NICS),
    serviceCIDR: fc.subarray(["10.96.0.0/16", "fd00:96::/112", "10.7.0.0/24"]),
    hijackCIDR: fc.subarray(["169.254.20.10", "10.6.0.2", "0.0.0.0/0", "::/0", "fd00:53::a"]),
    overlayPodCIDR: fc.subarray(["10.244.0.0/16", "10.6.0.0/16"]),
    hostRuleTable: fc.constantFrom(500, 1000),
    hostRPFilter: fc.constantFrom(-1, 0, 2),
    serviceSnat: fc.constantFrom("auto", "on", "off"),
    podMACPrefix: fc.constantFrom("", "0a:1b"),
  },
  { requiredKeys: [] },
);

const nic = fc.constantFrom(...NICS);

const request = fc
  .record({ verb: fc.constantFrom("ADD" as const, "ADD" as const, "DEL" as const), ifName: nic, conf })
  .map(({ verb, ifName, conf: own }): Event => {
    const net = netOf(ifName);
    const addresses = [`10.${net}.0.21`, `fd00:${net}::21`];
    return { request: readRequest(verb, { ifName, addresses, conf: own }) };
  });

/** A NIC as a main plugin leaves it; without its lines where there is one of that name. */
const arrival = fc
  .record({
    name: nic,
    kind: fc.constantFrom("macvlan", "ipvlan", "veth", "dummy"),
    v4: fc.boolean(),
    v6: fc.boolean(),
    gateways: fc.subarray(["4", "6", "6b", "metric"]),
  })
  .map(({ name, kind, v4, v6, gateways }): Event => {
    const net = netOf(name);
    const has = (gateway: string): boolean => gateways.includes(gateway);
    return {
      lines: [
        ...(kind === "veth" ? [`host: link end-${name} veth address 02:00:00:00:0e:0${net}`] : []),
        `pod: link ${name} ${kind} address 02:00:00:00:00:0${net}${kind === "veth" ? ` peer end-${name}` : ""}`,
        ...(v4
          ? [
              `pod: addr 10.${net}.0.21/24 dev ${name}`,
              `pod: route 10.${net}.0.0/24 dev ${name} proto kernel scope link src 10.${net}.0.21`,
            ]
          : []),
        ...(v6
          ? [
              `pod: addr fd00:${net}::21/64 dev ${name}`,
              `pod: route fd00:${net}::/64 dev ${name} proto kernel metric 256`,
            ]
          : []),
        ...(has("4") ? [`pod: route default via 10.${net}.0.1 dev ${name} proto boot`] : []),
        ...(has("metric") ? [`pod: route default via 10.${net}.0.254 dev ${name} proto static metric 50`] : []),
        ...(has("6") ? [`pod: -6 route default via fd00:${net}::1 dev ${name} proto ra`] : []),
        ...(has("6b") ? [`pod: -6 route default via fe80::${net} dev ${name} proto ra`] : []),
      ],
    };
  });

const departure = nic.map((name): Event => ({ lines: [`no pod: link ${name} macvlan`] }));

/** State of others, in the pod and on the node: it must be there at the end. */
const FOREIGN = [
  "pod: route 192.0.2.0/24 dev lo proto static table 101",
  "pod: route 192.0.2.0/24 dev lo proto static table 102",
  "pod: route blackhole 198.51.100.0/24 proto static",
  "pod: rule pref 910 from 10.6.0.21 lookup 77 proto static",
  "pod: rule pref 900 from all fwmark 0x1/0x1 lookup 100 proto static",
  "host: rule pref 900 from all lookup 77 proto static",
  "host: neigh 10.99.0.1 lladdr 02:00:00:00:00:99 dev eth0",
  "host: addr fd00:6::2/64 dev eth0",
];

const foreign = fc.constantFrom(...FOREIGN).map((line): Event => ({ lines: [line] }));

const events = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: request },
    { weight: 4, arbitrary: arrival },
    { weight: 1, arbitrary: departure },
    { weight: 1, arbitrary: foreign },
  ),
  { minLength: 4, maxLength: 24 },
);

/** Undefined for a refused request. */
function answer(requested: Request, observed: Observed): Answer | undefined {
  return insteadOf(
    (error) => error instanceof CniError,
    undefined,
    () => answerRequest(requested, observed),
  );
}

function happen(observed: Observed, { lines }: { readonly lines: readonly string[] }): Observed {
  const statements = lines.map(readStatement);
  const [first] = statements.filter(({ place }) => place === "pod");
  const isThere =
    first?.fact.kind === "link" &&
    observed.pod.links.some(({ name }) => first.fact.kind === "link" && name === first.fact.link.name);
  if (isThere && !first.ends) return observed;
  // the same thing of others is not there twice
  const known = inventory(observed);
  const after = statements.reduce(applyStatement, observed);
  return new Set(inventory(after)).size === inventory(after).length ? after : known.length > 0 ? observed : after;
}

const isOfOthers = (line: string): boolean =>
  FOREIGN.some((text) =>
    line.startsWith(text.replace(/^(pod|host): (route|rule) /, "$1: $2 4 ").split(" proto")[0] ?? text),
  );

/**
 * Whether it takes away something that is Berth's to take: its own, default routes that move, and the node's neighbours
 * for the pod's addresses.
 */
function isRightful(operation: Operation, { verb, addresses }: Request): boolean {
  switch (operation.kind) {
    case "delete-route": {
      const { route, place } = operation;
      return route.protocol === 98 || (place === "pod" && route.table === 254 && route.destination.length === 0);
    }
    case "delete-rule":
      return operation.rule.protocol === 98;
    case "delete-neighbour": {
      const { place, neighbour } = operation;
      return place === "pod" ? neighbour.link === "veth0" : addresses.includes(formatIp(neighbour.ip));
    }
    case "delete-table":
      return operation.table.name === "berth";
    case "delete-veth":
      return verb === "DEL" || operation.veth.host.name === nameVeth("c1").host.name;
    default:
      return !operation.kind.startsWith("delete-");
  }
}

/** Returns the operations that the list repeats or takes back. */
function contradictions(operations: readonly Operation[]): string[] {
  const texts = operations.map(formatOperation);
  const doubled = texts.filter((text, at) => texts.indexOf(text) !== at);
  const opposite = texts.filter((text) => / add /.test(text) && texts.includes(text.replace(" add ", " del ")));
  return [...doubled, ...opposite];
}

/** The main plugin's result has the NIC's addresses; that of a DEL is remembered. */
function withAddresses(requested: Request, { pod }: Observed): Request {
  if (requested.verb === "DEL") return requested;
  const own = pod.addresses.filter(({ link }) => link === requested.ifName);
  return { ...requested, addresses: own.map(({ prefix }) => formatIp(prefix.ip)) };
}

/**
 * The inventory. The kernel adds a route before or behind all with its destination and metric: where there are three,
 * one in the middle does not come back there.
 */
function orderOf(observed: Observed): string[] {
  const lines = inventory(observed);
  const isFull = (family: string) => lines.filter((line) => line.startsWith(`pod: route ${family} default`)).length > 2;
  const familyOf = (line: string) => line.charAt("pod: route ".length);
  return lines.map((line) => (isFull(familyOf(line)) ? line.replace(" (first)", "") : line)).sort();
}

function check(observed: Observed, told: Request): Observed {
  const requested = withAddresses(told, observed);
  const planned = answer(requested, observed);
  if (planned === undefined) return observed;
  const { operations } = planned;
  const after = applyAll(observed, operations);
  expect(answer(requested, after)?.operations.map(formatOperation)).toEqual([]);
  const isUndoable = operations.every(({ kind }) => kind !== "delete-veth");
  if (isUndoable) expect(orderOf(applyAll(after, inverseOfAll(operations)))).toEqual(orderOf(observed));
  expect(contradictions(operations)).toEqual([]);
  expect(operations.filter((operation) => !isRightful(operation, requested)).map(formatOperation)).toEqual([]);
  const [before, now] = [inventory(observed).filter(isOfOthers), inventory(after)];
  expect(before.filter((line) => !now.includes(line))).toEqual([]);
  return after;
}

describe("plans", () => {
  it("can be done, leave nothing to do, can be undone, and take nothing of others", () => {
    fc.assert(
      fc.property(events, (list) => {
        let observed = NODE.map(readStatement).reduce(applyStatement, NOTHING);
        for (const event of list) {
          observed = "request" in event ? check(observed, event.request) : happen(observed, event);
        }
      }),
      { numRuns: RUNS },
    );
  });

  it("after the DEL of every NIC nothing of Berth's is in the pod, and of the pod nothing on the node", () => {
    fc.assert(
      fc.property(events, fc.shuffledSubarray(NICS, { minLength: 4 }), (list, order) => {
        let observed = NODE.map(readStatement).reduce(applyStatement, NOTHING);
        for (const event of list) {
          observed = "request" in event ? check(observed, event.request) : happen(observed, event);
        }
        for (const ifName of order) {
          const addresses = [`10.${netOf(ifName)}.0.21`, `fd00:${netOf(ifName)}::21`];
          for (const hostRuleTable of [500, 1000]) {
            observed = check(observed, readRequest("DEL", { ifName, addresses, conf: { hostRuleTable } }));
          }
          // the main plugin's next step
          observed = happen(observed, { lines: [`no pod: link ${ifName} macvlan`] });
        }
        const left = inventory(observed).filter(
          (line) => line.includes("proto 98") || line.includes(nameVeth("c1").host.name),
        );
        expect(left.filter((line) => !/^host: rule . pref \d+ from all lookup/.test(line))).toEqual([]);
        expect(observed.pod.tables).toEqual([]);
      }),
      { numRuns: RUNS / 2 },
    );
  });
});
