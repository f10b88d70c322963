import { describe, expect, it } from "vitest";
import { ErrorCode } from "../../../host/cni/error.ts";
import type { CniResult } from "../../../host/cni/result.ts";
import { decodeResult, formatResult } from "../../../host/cni/result-versions.ts";
import { type CniVersion, SUPPORTED_VERSIONS } from "../../../host/cni/version.ts";
import { ip, prefix } from "../../world/values.ts";

const RESULT: CniResult = {
  interfaces: [
    { name: "veth1", mac: "0a:00:00:00:00:01" },
    { name: "eth0", mac: "0a:00:00:00:00:02", sandbox: "/run/netns/a", mtu: 1500, socketPath: "/s", pciId: "0000:00" },
  ],
  ips: [
    { address: prefix("10.0.0.2/24"), gateway: ip("10.0.0.1"), interface: 1 },
    { address: prefix("fd00::2/64"), interface: 0 },
  ],
  routes: [
    { dst: prefix("0.0.0.0/0") },
    { dst: prefix("fd01::/48"), gw: ip("fd00::1"), mtu: 1400, advmss: 1300, priority: 5, table: 7, scope: 0 },
  ],
  dns: { nameservers: ["10.0.0.53"], domain: "a.b" },
};

const EMPTY: CniResult = { interfaces: [], ips: [], routes: [] };
const before10: readonly CniVersion[] = ["0.3.0", "0.3.1", "0.4.0"];

const written = (...of: Parameters<typeof formatResult>) => JSON.parse(JSON.stringify(formatResult(...of)));

describe.each(SUPPORTED_VERSIONS)("in version %s", (version) => {
  const isOld = before10.includes(version);

  it("a result has that version's shape", () => {
    const more = { mtu: 1500, socketPath: "/s", pciID: "0000:00" };
    expect(written(RESULT, version)).toStrictEqual({
      cniVersion: version,
      interfaces: [
        { name: "veth1", mac: "0a:00:00:00:00:01" },
        { name: "eth0", mac: "0a:00:00:00:00:02", sandbox: "/run/netns/a", ...more },
      ],
      ips: [
        { ...(isOld ? { version: "4" } : {}), address: "10.0.0.2/24", gateway: "10.0.0.1", interface: 1 },
        { ...(isOld ? { version: "6" } : {}), address: "fd00::2/64", interface: 0 },
      ],
      routes: [
        { dst: "0.0.0.0/0" },
        { dst: "fd01::/48", gw: "fd00::1", mtu: 1400, advmss: 1300, priority: 5, table: 7, scope: 0 },
      ],
      dns: { nameservers: ["10.0.0.53"], domain: "a.b" },
    });
  });

  it("an IPAM result has no interfaces and no index of one", () => {
    const result = { ...EMPTY, ips: [{ address: prefix("10.0.0.2/24") }] };
    const address = { ...(isOld ? { version: "4" } : {}), address: "10.0.0.2/24" };
    expect(written(result, version)).toStrictEqual({ cniVersion: version, ips: [address] });
  });

  it("null and empty text are read as absent", () => {
    const value = {
      interfaces: [{ name: "eth0", mac: "", sandbox: null }],
      ips: [{ address: "10.0.0.2/24", gateway: null, interface: null }],
      routes: [{ dst: "10.1.0.0/16", gw: "" }],
      dns: null,
    };
    expect(decodeResult(value)).toEqual({
      interfaces: [{ name: "eth0" }],
      ips: [{ address: prefix("10.0.0.2/24") }],
      routes: [{ dst: prefix("10.1.0.0/16") }],
    });
    expect(decodeResult({ interfaces: null, ips: null, routes: null })).toEqual(EMPTY);
  });
});

it.each<[value: unknown, message: string]>([
  [undefined, "Invalid prevResult: found nothing, want an object"],
  ["x", 'Invalid prevResult: found "x", want an object'],
  [[], "Invalid prevResult: found an empty list, want an object"],
  [{ ips: {} }, 'field "ips": found an object, want a list'],
  [{ ips: [{}] }, 'field "ips[0].address": found nothing, want an address with its length'],
  [{ ips: [{ address: "10.0.0.2" }] }, 'field "ips[0].address": found "10.0.0.2"'],
  [{ ips: [{ address: "10.0.0.2/24", gateway: "10.0.0" }] }, 'field "ips[0].gateway": found "10.0.0", want an address'],
  [{ ips: [{ address: "10.0.0.2/24", interface: -1 }] }, 'field "ips[0].interface": found -1, want a whole number'],
  [
    { interfaces: [{ name: "eth0" }], ips: [{ address: "10.0.0.2/24", interface: 7 }] },
    'field "ips[0].interface": found 7, want the position of one of 1 interfaces, counted from 0',
  ],
  [{ ips: [{ address: "10.0.0.2/24", interface: 0 }] }, "found 0, want the position of one of 0 interfaces"],
  [{ ips: [{ address: "fd00::2/64", version: "4" }] }, 'field "ips[0].version": found "4", want the family'],
  [{ interfaces: [{ mac: "x" }] }, 'field "interfaces[0].name": found nothing, want text'],
  [{ routes: [{ dst: "x" }] }, 'field "routes[0].dst": found "x"'],
  [{ dns: { search: "a" } }, 'field "dns.search": found "a", want a list'],
])("decodeResult refuses %j with code 7", (value, message) => {
  expect(() => decodeResult(value)).toThrow(
    expect.objectContaining({ code: ErrorCode.InvalidNetworkConfig, message: expect.stringContaining(message) }),
  );
});

it("decodeResult names the place it is given", () => {
  expect(() => decodeResult(3, "IPAM result")).toThrow("Invalid IPAM result: found 3, want an object");
});
