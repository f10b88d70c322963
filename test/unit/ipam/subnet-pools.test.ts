import { expect, it } from "vitest";
import { findSubnetPool } from "../../../host/ipam/subnet-pools.ts";
import { pool, poolsByName } from "../../world/subjects.ts";

const WEB = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "web", uid: "u-web" };
const GENERATED = { subnet: "blue", application: WEB, interface: "eth0", reclaim: true, wanted: 2, reason: "" };
const made = (name: string, change: Partial<typeof GENERATED> = {}, cidr = "10.1.0.0/24") =>
  pool(name, cidr, { generated: { ...GENERATED, ...change } });

const POOLS = poolsByName(
  made("z-red", { subnet: "red" }),
  made("z-blue"),
  made("a-blue"),
  made("a-grey", { subnet: "grey" }),
  made("of-net1", { interface: "net1" }),
  made("of-db", { application: { ...WEB, uid: "u-db" } }),
  made("of-lab", { application: { ...WEB, namespace: "lab" } }),
  made("six", {}, "fd00::/64"),
  pool("by-hand", "10.1.0.0/24"),
);

it("a workload's pools for a NIC come in the order of its Subnets, then by name", () => {
  const request = { application: WEB, ifName: "eth0", family: 4 as const };
  const find = (...subnets: string[]) => findSubnetPool(POOLS, { ...request, subnets }).map(({ name }) => name);
  expect(find("blue", "red")).toEqual(["a-blue", "z-blue", "z-red"]);
  expect(find("red", "blue")).toEqual(["z-red", "a-blue", "z-blue"]);
  expect(find("grey")).toEqual(["a-grey"]);
  expect(find("white")).toEqual([]);
});

it.each([
  ["its namespace", { application: { ...WEB, namespace: "lab" } }, ["of-lab"]],
  ["its UID", { application: { ...WEB, uid: "u-db" } }, ["of-db"]],
  ["its NIC", { ifName: "net1" }, ["of-net1"]],
  ["its family", { family: 6 as const }, ["six"]],
])("a workload's pools are those of %s", (_, change, names) => {
  const request = { application: WEB, ifName: "eth0", family: 4 as const, subnets: ["blue"], ...change };
  expect(findSubnetPool(POOLS, request).map(({ name }) => name)).toEqual(names);
});
