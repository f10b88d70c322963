import { describe, expect, it } from "vitest";
import { findWithholding, takesFirstAddress, withheldFrom } from "../../../host/ipam/withheld.ts";
import { formatIp } from "../../../host/net/ip.ts";
import { pool } from "../../world/subjects.ts";
import { ip } from "../../world/values.ts";

const NIC = { ifName: "eth0", rule: "test", cleanGateway: false, families: [] };

describe("a main plugin", () => {
  it.each<[type: string, raw: Record<string, unknown>, takes: boolean]>([
    ["bridge", { isGateway: true }, true],
    ["bridge", { isDefaultGateway: true }, true],
    ["bridge", { isGateway: false }, false],
    ["bridge", {}, false],
    ["macvlan", { isGateway: true }, false],
  ])("%s with %j takes an address itself: %j", (type, raw, takes) =>
    expect(takesFirstAddress({ type, raw })).toBe(takes),
  );

  const taking = { ...NIC, takesFirst: true };
  it.each<[what: string, subnet: string, spec: object, cleanGateway: boolean, wanted: string[]]>([
    ["of a pool without gateway", "10.6.0.0/24", {}, false, ["10.6.0.1"]],
    ["of IPv6 as well", "fd00:6::/64", {}, false, ["fd00:6::1"]],
    ["not of a pool with one", "10.6.0.0/24", { gateway: "10.6.0.254" }, false, []],
    ["of a pool whose gateway the result leaves out", "10.6.0.0/24", { gateway: "10.6.0.254" }, true, ["10.6.0.1"]],
    ["not where the ranges lack it", "10.6.0.0/24", { ips: ["10.6.0.5"] }, false, []],
  ])("takes the first one %s", (_what, subnet, spec, cleanGateway, wanted) => {
    const found = withheldFrom({ ...taking, cleanGateway }, pool("blue", subnet, spec));
    expect(found.map((each) => formatIp(each.ip))).toEqual(wanted);
  });
});

it("what was refused is withheld in its address space, with the reason", () => {
  const nic = { ...NIC, refused: [{ space: "lab", ip: ip("10.6.0.7"), why: "it is another pod's" }] };
  const [blue, lab] = [pool("blue", "10.6.0.0/24"), pool("lab", "10.6.0.0/24", { addressSpace: "lab" })];
  expect(findWithholding(nic, blue, ip("10.6.0.7"))).toBeUndefined();
  expect(findWithholding(nic, lab, ip("10.6.0.8"))).toBeUndefined();
  expect(findWithholding(nic, lab, ip("10.6.0.7"))).toBe(
    "the coordinator refused it for this pod: it is another pod's",
  );
});
