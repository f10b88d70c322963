import { describe, expect, it } from "vitest";
import { buildNicResult, type NicResultOptions, routesOfNic } from "../../../host/ipam/nic-result.ts";
import { formatIp } from "../../../host/net/ip.ts";
import { formatPrefix } from "../../../host/net/prefix.ts";
import { pool, poolsByName, proposal } from "../../world/subjects.ts";
import { ip, prefix } from "../../world/values.ts";

const routes = [{ dst: prefix("172.16.0.0/12"), gw: ip("10.0.0.9") }];
const blue = pool("blue", "10.0.0.0/24", { gatewayIp: "10.0.0.1", routes });
const six = pool("six", "fd00::/64", { gatewayIp: "fd00::1" });
const pools = poolsByName(blue, six);
const heldBlue = proposal("10.0.0.7");
const heldSix = proposal("fd00::7", { prefixLength: 64, pool: "six" });

/** `10.0.0.7/24 via 10.0.0.1` and `0.0.0.0/0 via 10.0.0.1`. */
function check(options: Partial<NicResultOptions>, ips: string[], routes: string[]) {
  const result = buildNicResult({ held: [heldBlue], pools, cleanGateway: false, podRoutes: [], ...options });
  const via = (gateway: ReturnType<typeof ip> | undefined) =>
    gateway === undefined ? "" : ` via ${formatIp(gateway)}`;
  expect(result.ips.map(({ address, gateway }) => formatPrefix(address) + via(gateway))).toEqual(ips);
  expect(result.routes.map(({ dst, gw }) => formatPrefix(dst) + via(gw))).toEqual(routes);
  expect(result.interfaces).toEqual([]);
}

describe("the result of a NIC", () => {
  it("has the gateway as default route, then the pool's routes", () =>
    check({}, ["10.0.0.7/24 via 10.0.0.1"], ["0.0.0.0/0 via 10.0.0.1", "172.16.0.0/12 via 10.0.0.9"]));

  it("lists v4 before v6", () =>
    check(
      { held: [heldSix, heldBlue] },
      ["10.0.0.7/24 via 10.0.0.1", "fd00::7/64 via fd00::1"],
      ["0.0.0.0/0 via 10.0.0.1", "172.16.0.0/12 via 10.0.0.9", "::/0 via fd00::1"],
    ));

  it("has no gateway with cleangateway", () =>
    check({ cleanGateway: true }, ["10.0.0.7/24"], ["172.16.0.0/12 via 10.0.0.9"]));

  it.each([
    ["of one family", ["0.0.0.0/0"], ["::/0 via fd00::1", "0.0.0.0/0 via 10.0.0.9"]],
    ["of both", ["0.0.0.0/0", "::/0"], ["0.0.0.0/0 via 10.0.0.9", "::/0 via fd00::9"]],
  ])("has the pod's default route in place of the pools' %s", (_what, defaults, expected) => {
    const podRoutes = defaults.map((dst) => ({ dst: prefix(dst), gw: ip(dst === "::/0" ? "fd00::9" : "10.0.0.9") }));
    check(
      { held: [heldBlue, heldSix], podRoutes },
      ["10.0.0.7/24 via 10.0.0.1", "fd00::7/64 via fd00::1"],
      ["172.16.0.0/12 via 10.0.0.9", ...expected],
    );
  });

  it("knows the length of an address whose pool is gone", () =>
    check({ pools: poolsByName(six) }, ["10.0.0.7/24"], []));
});

describe("a route of the pod", () => {
  const green = pool("green", "10.5.0.0/24");
  const unnumbered = pool("unnumbered", "fd01::/64", { gatewayIp: "fe80::1" });
  const overOther = [{ dst: prefix("fd09::/16"), gw: ip("fe80::1") }];
  const other = pool("other", "fd02::/64", { gatewayIp: "fe80::9", routes: overOther });
  const pools = poolsByName(blue, six, green, unnumbered, other);
  const addresses = {
    ...{ blue: "10.0.0.7/24", six: "fd00::7/64", green: "10.5.0.7/24" },
    ...{ unnumbered: "fd01::7/64", other: "fd02::7/64", gone: "fd03::7/64" },
  };
  type Held = keyof typeof addresses;

  /** NICs in their order, each with the pools of its addresses; returns those that carry the route. */
  function carriers(gw: string, nics: Record<string, readonly Held[]>, areAll = true): string[] {
    const route = { dst: prefix(gw.includes(":") ? "fd0a::/16" : "192.168.0.0/16"), gw: ip(gw) };
    const held = Object.entries(nics).flatMap(([ifName, names]) =>
      names.map((name) => {
        const [address = "", length] = addresses[name].split("/");
        return proposal(address, { prefixLength: Number(length), pool: name, ifName });
      }),
    );
    return Object.keys(nics).filter((name) => routesOfNic([route], name, { held, pools, areAll }).length > 0);
  }

  it.each<[what: string, gw: string, nics: Record<string, readonly Held[]>, wanted: string[]]>([
    ["goes to the NIC whose network has its gateway", "10.5.0.254", { eth0: ["blue"], net1: ["green"] }, ["net1"]],
    ["goes to all such NICs", "10.5.0.254", { eth0: ["green"], net1: ["green"] }, ["eth0", "net1"]],
    ["link-local: to the NIC whose pool has it", "fe80::1", { eth0: ["six"], net1: ["unnumbered"] }, ["net1"]],
    ["link-local: to the NIC whose pool has a route over it", "fe80::1", { eth0: ["six"], net1: ["other"] }, ["net1"]],
    ["link-local: to the first of them", "fe80::1", { eth0: ["other"], net1: ["unnumbered"] }, ["eth0"]],
    ["link-local: to the pod's only NIC, whatever its pool", "fe80::2", { eth0: ["blue", "six"] }, ["eth0"]],
    ["link-local: to the pod's only NIC, whose pool is gone", "fe80::2", { eth0: ["gone"] }, ["eth0"]],
  ])("%s", (_what, gw, nics, wanted) => expect(carriers(gw, nics)).toEqual(wanted));

  it("waits while more NICs are to come", () => {
    expect(carriers("10.9.0.1", { eth0: ["blue"] }, false)).toEqual([]);
    expect(carriers("fe80::1", { eth0: ["six"] }, false)).toEqual([]);
    expect(carriers("fe80::1", { eth0: ["unnumbered"] }, false)).toEqual(["eth0"]);
  });

  const outside = (gw: string) => `${gw} lies in none of 10.0.0.7/24, or is the first or last address of one`;
  const unnamed = "fe80::1 is link-local, and no pool of the pod's NICs names it";
  it.each<[gw: string, nics: Record<string, readonly Held[]>, reason: string]>([
    ["10.5.0.254", { eth0: ["blue"] }, outside("10.5.0.254")],
    ["10.0.0.255", { eth0: ["blue"] }, outside("10.0.0.255")],
    ["fe80::1", { eth0: ["blue"] }, unnamed],
    ["fe80::1", { eth0: ["six"], net1: ["gone"] }, unnamed],
  ])("over %s that no NIC can carry is an error that names it", (gw, nics, reason) => {
    expect(() => carriers(gw, nics)).toThrow(
      /^Annotation "ipam.vendor.io\/routes": no NIC of the pod can carry the route to [^ ]+: its gateway /,
    );
    expect(() => carriers(gw, nics)).toThrow(reason);
  });
});
