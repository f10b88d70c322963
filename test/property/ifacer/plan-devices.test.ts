/**
 * For any state of a node and any definitions, one after another: a plan can be applied, leaves nothing to do, can be
 * undone, nothing in use goes down, and unnamed devices are not touched.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import { CniError } from "../../../host/cni/error.ts";
import { ConfigError } from "../../../host/config/config-error.ts";
import { decodeDeviceSpec } from "../../../host/ifacer/device-spec.ts";
import { planDevices } from "../../../host/ifacer/plan-devices.ts";
import { EMPTY_NAMESPACE, type NamespaceState } from "../../../host/plan/state.ts";
import { formatOperation } from "../../../host/plan/text.ts";
import { applyAll, inventory, undoAll } from "../../unit/ifacer/device-model.ts";
import { follow } from "../../unit/ifacer/device-words.ts";
import { times } from "../../world/long-cases.ts";

const INTERFACES = ["e0", "e1", "e2", "e3"];
const BONDS = ["b0", "b1", "bond0"];

const name = fc.oneof({ weight: 8, arbitrary: fc.constantFrom(...INTERFACES) }, fc.constantFrom("lo", ...BONDS));
const names = fc.uniqueArray(name, { minLength: 1, maxLength: 3 });
const bond = fc.record(
  {
    name: fc.constantFrom(...BONDS),
    mode: fc.constantFrom(0, 1, 4),
    options: fc.constantFrom("", "miimon=100", "miimon=100;updelay=200", "miimon=50;primary=e1", "lacp_rate=fast"),
  },
  { requiredKeys: ["name"] },
);
const vlanID = fc.constantFrom(0, 7, 8);
const conf = fc.oneof(
  fc.record({ interfaces: names.map((list) => list.slice(0, 1)), vlanID }),
  fc.record({ interfaces: names, bond, vlanID, takeOver: fc.boolean() }, { requiredKeys: ["interfaces", "bond"] }),
  fc.record({ interfaces: names, bond, takeOver: fc.constant(true) }),
);

/** Lines of device-words.ts: the node before the first request. */
const scenery = fc.subarray([
  "link b1 bond mode 4 miimon 100",
  "link bond0 bond mode 0 miimon 0 updelay 0 arp_interval 0 lacp_rate 0 down",
  "link br0 bridge",
  "link e9 device master b1",
  "link e0.7 vlan on e0 id 7 down",
  "link e1.8 vlan on e2 id 8",
  "link b0.7 dummy",
  "addr 10.0.0.5/24 dev e0",
  "addr fd00::5/64 dev e1",
  "addr fe80::77/64 dev e2 scope link",
  "route 10.0.0.0/24 dev e0 proto kernel scope link src 10.0.0.5",
  "route fd00::/64 dev e1 proto kernel metric 256",
  "route fe80::/64 dev e2 proto kernel metric 256",
  "route default via 10.0.0.1 dev e0 proto static src 10.0.0.5",
  "route 10.8.0.0/16 dev e3 proto static src 10.0.0.5",
  "route 10.9.0.0/16 table 77 proto static nexthop via 10.0.0.1 dev e0 weight 1 nexthop via 10.1.0.1 dev e3 weight 2",
  "route default via fd00::1 dev e1 proto ra",
]);

/** The kernel makes a route with an address, and none without. */
function isPossible(lines: readonly string[]): boolean {
  const pairs = [
    ["addr 10.0.0.5/24 dev e0", "route 10.0.0.0/24 dev e0"],
    ["addr fd00::5/64 dev e1", "route fd00::/64 dev e1"],
    ["addr fe80::77/64 dev e2", "route fe80::/64 dev e2"],
  ];
  const has = (start = "") => lines.some((line) => line.startsWith(start));
  return pairs.every(([address, route]) => has(address) === has(route)) && (!has("link e9") || has("link b1"));
}

const node = fc
  .record({ ups: fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }), lines: scenery.filter(isPossible) })
  .map(({ ups, lines }): NamespaceState => {
    const interfaces = INTERFACES.map((name, index) => `link ${name} device${ups[index] === true ? "" : " down"}`);
    return ["link lo loopback", ...interfaces, ...lines].reduce(follow, EMPTY_NAMESPACE);
  });

it("definitions one after another", () => {
  const seen = { done: 0, refused: 0, moved: 0 };
  const run = (state: NamespaceState, wanted: object): NamespaceState => {
    let operations: ReturnType<typeof planDevices>["operations"];
    try {
      ({ operations } = planDevices(decodeDeviceSpec(wanted, "x"), state));
    } catch (error) {
      if (!(error instanceof CniError || error instanceof ConfigError)) throw error;
      seen.refused += 1;
      return state;
    }
    const after = applyAll(state, operations);
    expect(planDevices(decodeDeviceSpec(wanted, "x"), after).operations.map(formatOperation)).toEqual([]);
    expect(inventory(undoAll(after, operations))).toEqual(inventory(state));
    expect(after.addresses.length).toBe(state.addresses.length);
    seen.done += operations.length > 0 ? 1 : 0;
    seen.moved += operations.some(({ kind }) => kind === "add-address") ? 1 : 0;
    return after;
  };
  fc.assert(
    fc.property(node, fc.array(conf, { minLength: 1, maxLength: 4 }), (state, specs) => {
      specs.reduce(run, state);
    }),
    { numRuns: times(600) },
  );
  // It was about something.
  expect(Math.min(seen.done, seen.refused, seen.moved)).toBeGreaterThan(3);
});

it("an ADD that was cut off after any operation is completed by the next one", () => {
  let cut = 0;
  fc.assert(
    fc.property(node, conf, fc.nat(20), (state, wanted, count) => {
      const plan = (now: NamespaceState) => planDevices(decodeDeviceSpec(wanted, "x"), now).operations;
      let operations: ReturnType<typeof plan>;
      try {
        operations = plan(state);
      } catch (error) {
        if (!(error instanceof CniError || error instanceof ConfigError)) throw error;
        return;
      }
      const half = applyAll(state, operations.slice(0, count));
      cut += count > 0 && count < operations.length ? 1 : 0;
      expect(plan(applyAll(half, plan(half))).map(formatOperation)).toEqual([]);
    }),
    { numRuns: times(300) },
  );
  expect(cut).toBeGreaterThan(3);
});
