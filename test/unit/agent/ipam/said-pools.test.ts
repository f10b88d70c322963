import { expect, it } from "vitest";
import { findUnsaid, isUnsaid } from "../../../../host/agent/ipam/said-pools.ts";
import { decodeIpPool } from "../../../../host/resources/ip-pool.ts";
import { decodedSnapshot, demandOf, ipPool } from "../../../world/subjects.ts";

const COORDINATOR = { apiVersion: "ipam.vendor.io/v1", kind: "Coordinator", metadata: { name: "default" }, spec: {} };
const ready = (observedGeneration: number) => ({
  status: { conditions: [{ type: "Ready", status: "True", message: "", observedGeneration }] },
});
/** Of generation 2. */
const blue = (status: object, spec: object = {}) => ({
  ...ipPool("blue", "10.6.0.0/24", spec),
  metadata: { name: "blue", resourceVersion: "1", generation: 2 },
  ...status,
});
const application = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "web", uid: "u1" };
const generated = { subnet: "s", application, interface: "eth0", wanted: 1, reason: "1 replica", reclaim: true };

it.each<[string, object[], boolean]>([
  ["is looked at when its generation is Ready", [COORDINATOR, blue(ready(2))], false],
  ["is not, after its specification was changed", [COORDINATOR, blue(ready(1))], true],
  ["is not, without a status", [COORDINATOR, blue({})], true],
  ["is looked at by whoever generates it", [COORDINATOR, blue({}, { generated, ips: [] })], false],
  ["is not waited for where no controller is expected", [blue({})], false],
])("a pool %s", (_, manifests, wanted) => {
  const snapshot = decodedSnapshot(...manifests);
  expect(findUnsaid(snapshot)).toBe(wanted ? "blue" : undefined);
  const other = demandOf({ ifName: "eth0", pools: [] }, snapshot.pools);
  const demand = { nics: [demandOf({ ifName: "eth0", pools: [["blue"]] }, snapshot.pools)] };
  expect([isUnsaid(snapshot, demand), isUnsaid(snapshot, { nics: [other] })]).toEqual([wanted, false]);
});

it("a pool of a file has no generation, and is not looked at", () =>
  expect(decodeIpPool(ipPool("blue", "10.6.0.0/24"), "the test").isSaid).toBeUndefined());
