import { expect, it } from "vitest";
import { ConfigError } from "../../../host/config/config-error.ts";
import { DEFAULT_VENDOR_CONF, decodeVendorConf } from "../../../host/config/vendor-conf.ts";

const DEFAULTS = {
  ...{ enableIPv4: true, enableIPv6: true, allowSingleFamily: false, enableSubnet: true, enableFencing: true },
  ...{ enableStatefulSet: true, enableKubevirt: true, retainByName: [], allocationCooldownMs: 30_000 },
  garbageCollection: { intervalMs: 300_000, graceMs: 60_000, nodeLostMs: 600_000 },
  ...{ maxGeneratedPoolSize: 1_024, maxGeneratedAddressesPerNamespace: 4_096, maxAddressesPerPod: 32 },
  ...{ maxAddressesPerNamespace: 16_384, ifacer: { interfaces: [], vlanIDs: [] } },
  ...{ hostRouteCIDR: [], tenantDefinitions: "open" },
};

it.each([[undefined], [null], [{}]])("%j is the defaults of the specification, Resolved C", (value) => {
  expect(decodeVendorConf(value, "x")).toEqual(DEFAULTS);
  expect(DEFAULT_VENDOR_CONF).toEqual(DEFAULTS);
});

it("decodeVendorConf changes the written keys and nothing else", () => {
  const value = { enableIPv6: false, allocationCooldown: "0s", garbageCollection: { grace: "2m" } };
  expect(decodeVendorConf(value, "x")).toEqual({
    ...DEFAULTS,
    enableIPv6: false,
    allocationCooldownMs: 0,
    garbageCollection: { ...DEFAULTS.garbageCollection, graceMs: 120_000 },
  });
});

it("a kind whose pods' names come again has a plural by default", () => {
  const kruise = { apiVersion: "apps.kruise.io/v1beta1", kind: "StatefulSet" };
  const other = { apiVersion: "db.example/v1", kind: "Proxy", plural: "proxies" };
  const { retainByName } = decodeVendorConf({ retainByName: [kruise, other] }, "x");
  expect(retainByName).toEqual([{ ...kruise, plural: "statefulsets" }, other]);
});

it.each([
  ["apps/v1", "StatefulSet"],
  ["kubevirt.io/v1", "VirtualMachineInstance"],
  ["apps.kruise.io/v1alpha1", "CloneSet"],
])("of %s no %s retains by name", (apiVersion, kind) => {
  expect(() => decodeVendorConf({ retainByName: [{ apiVersion, kind }] }, "x")).toThrow(
    `field "retainByName[0].kind": found "${kind}", want a kind of another project whose pods' names come again`,
  );
});

const VLAN = 'want a VLAN id from 1 to 4094, or a range such as "100-199"';

it.each<[value: unknown, message: string]>([
  [{ enableIPV4: true }, 'file x: field "enableIPV4": found an unknown key, want the key "enableIPv4"'],
  [{ ifacer: { vlanIDs: [0] } }, `field "ifacer.vlanIDs[0]": found 0, ${VLAN}`],
  [{ ifacer: { vlanIDs: ["9-5"] } }, `field "ifacer.vlanIDs[0]": found "9-5", ${VLAN}`],
  [{ ifacer: { interfaces: ["a/b"] } }, 'field "ifacer.interfaces[0]": found "a/b", want'],
  [{ retainByName: [{ apiVersion: "v1", kind: "Pod" }] }, 'field "retainByName[0].apiVersion": found "v1", want GROUP'],
  [{ retainByName: [{ apiVersion: "a.b/v1", kind: "set" }] }, 'field "retainByName[0].kind": found "set", want the'],
  [{ tenantDefinitions: "shut" }, 'field "tenantDefinitions": found "shut", want'],
  [{ hostRouteCIDR: ["10.0.0.0/33"] }, 'field "hostRouteCIDR[0]": found "10.0.0.0/33", want'],
  [{ enableIPv4: false, enableIPv6: false }, 'field "enableIPv4": found false, want true here or for "enableIPv6"'],
  [{ allocationCooldown: 30 }, 'field "allocationCooldown": found 30, want a duration such as'],
  [{ garbageCollection: { interval: "0s" } }, 'field "garbageCollection.interval": found "0s", want a duration'],
  [{ maxGeneratedPoolSize: 0 }, 'field "maxGeneratedPoolSize": found 0, want a whole number of at least 1'],
  [{ maxGeneratedAddressesPerNamespace: -1 }, "found -1, want a whole number of at least 0"],
])("decodeVendorConf refuses %j", (value, message) => expect(() => decodeVendorConf(value, "file x")).toThrow(message));

it("a ConfigError has its fields and all that is wrong", () => {
  const decode = () => decodeVendorConf({ enableIPv4: 1, enableSubnet: 2 }, "file x");
  expect(decode).toThrow(ConfigError);
  const [first, second] = ["enableIPv4", "enableSubnet"].map(
    (key, at) => `field "${key}": found ${at + 1}, want true or false`,
  );
  const fields = { source: "file x", path: "enableIPv4", got: "1", wanted: "true or false" };
  expect(decode).toThrow(expect.objectContaining({ ...fields, message: `file x: ${first}; ${second}` }));
});
