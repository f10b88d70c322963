import { expect, it } from "vitest";
import { isServedByBerth } from "../../../../host/controller/owners/plan-nic-requests.ts";

const served = { type: "macvlan", ipam: { type: "berth" } };

it.each<[config: unknown, expected: boolean]>([
  [JSON.stringify(served), true],
  [JSON.stringify({ cniVersion: "1.0.0", name: "x", plugins: [{ type: "tuning" }, served] }), true],
  [JSON.stringify({ ...served, ipam: { type: "host-local" } }), false],
  [JSON.stringify({ type: "macvlan" }), false],
  // The nodes' own files have it: nobody here can tell.
  ["", true],
  [" \n", true],
  [undefined, true],
  // No pod can be attached to what cannot be understood.
  ["{", false],
  ["[]", false],
  [JSON.stringify({ plugins: [] }), false],
  [JSON.stringify({ ...served, ipam: { type: "berth", no_such_key: 1 } }), false],
  [7, false],
])("a network with the configuration %j is Berth's: %s", (config, expected) => {
  expect(isServedByBerth({ metadata: { name: "lan", namespace: "shop" }, spec: { config } })).toBe(expected);
});

it("a network with a larger configuration than is used is not Berth's", () => {
  const config = JSON.stringify({ ...served, padding: "x".repeat(65_536) });
  expect(isServedByBerth({ metadata: { name: "lan", namespace: "shop" }, spec: { config } })).toBe(false);
});

it("an object without a name is nobody's", () => expect(isServedByBerth({ metadata: {} })).toBe(false));
