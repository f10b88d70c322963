import { describe, expect, it } from "vitest";
import { buildNicResult, type HeldIp, type NicResultOptions, requireCarriers } from "../../../host/ipam/nic-result.ts";
import { formatIp } from "../../../host/net/ip.ts";
import { formatPrefix } from "../../../host/net/prefix.ts";
import { pool } from "../../world/subjects.ts";
import { ip, prefix } from "../../world/values.ts";

const blue = pool("blue", "10.0.0.0/24", {
  gatewayIp: "10.0.0.1",
  routes: [{ dst: prefix("172.16.0.0/12"), gw: ip("10.0.0.9") }],
});
const six = pool("six", "fd00::/64", { gatewayIp: "fd00::1" });
const heldBlue: HeldIp = { ip: ip("10.0.0.7"), prefixLength: 24, pool: blue };
const heldSix: HeldIp = { ip: ip("fd00::7"), prefixLength: 64, pool: six };

/** `10.0.0.7/24 via 10.0.0.1` and `0.0.0.0/0 via 10.0.0.1`. */
function check(options: Partial<NicResultOptions>, ips: string[], routes: string[]) {
  const result = buildNicResult({ held: [heldBlue], cleanGateway: false, podRoutes: [], ...options });
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

  it("carries the pod's routes whose gateway is on this NIC", () =>
    check(
      {
        podRoutes: [
          { dst: prefix("192.168.0.0/16"), gw: ip("10.0.0.254") },
          { dst: prefix("192.169.0.0/16"), gw: ip("10.5.0.254") },
        ],
      },
      ["10.0.0.7/24 via 10.0.0.1"],
      ["0.0.0.0/0 via 10.0.0.1", "172.16.0.0/12 via 10.0.0.9", "192.168.0.0/16 via 10.0.0.254"],
    ));

  it("knows the length of an address whose pool is gone", () =>
    check({ held: [{ ...heldBlue, pool: undefined }] }, ["10.0.0.7/24"], []));
});

describe("a route that no NIC can carry", () => {
  const route = { dst: prefix("192.168.0.0/16"), gw: ip("10.5.0.254") };

  it("is an error that names it", () => {
    expect(() => requireCarriers([route], [prefix("10.0.0.7/24")])).toThrow(
      'Annotation "ipam.vendor.io/routes": no NIC of the pod can carry the route to 192.168.0.0/16: ' +
        "its gateway 10.5.0.254 lies in none of 10.0.0.7/24",
    );
  });

  it("is none when another NIC carries it", () => {
    expect(() => requireCarriers([route], [prefix("10.0.0.7/24"), prefix("10.5.0.7/24")])).not.toThrow();
  });
});
