import { describe, expect, it } from "vitest";
import { decodeCoordinatorConf } from "../../../host/config/coordinator-conf.ts";
import { DEFAULT_COORDINATOR_CONF, resolveCoordinatorConf } from "../../../host/config/coordinator-settings.ts";
import { parsePrefix } from "../../../host/net/prefix.ts";

function resolve(...sources: object[]) {
  return resolveCoordinatorConf(...sources.map((source) => decodeCoordinatorConf(source, "x")));
}

it("nothing written means the defaults of the specification 2.3", () => {
  expect(resolve()).toEqual(DEFAULT_COORDINATOR_CONF);
  expect(resolve({}, {})).toEqual({
    ...{ mode: "auto", tunePodRoutes: true, podDefaultRouteNic: "", podDefaultCniNic: "eth0", podMACPrefix: "" },
    ...{ detectGateway: false, detectIPConflict: false, overlayPodCIDR: [], serviceCIDR: [], hijackCIDR: [] },
    ...{ hostRuleTable: 500, hostRPFilter: 0, vethMTU: 0, vethLinkAddress: "", acceptRA: false, serviceSnat: "auto" },
    detectOptions: { retry: 3, intervalMs: 1_000, timeoutMs: 1_000, windowMs: 200, onConflict: "fail" },
    logOptions: { logLevel: "debug", logFile: "/var/log/vendor/coordinator.log" },
  });
});

describe("one key changes one setting", () => {
  const networks = ["10.0.0.0/8", "fd00::/48"];
  const log = (logFile: string, more: object = {}) => ({ logOptions: { logFile, ...more } });
  it.each<[value: object, expected: object]>([
    [{ type: "coordinator" }, {}],
    [{ mode: "disabled" }, { mode: "disable" }],
    [{ tune_mode: "underlay" }, { mode: "underlay" }],
    [{ mode: "disable", tune_mode: "disabled" }, { mode: "disable" }],
    [{ tunePodRoutes: false }, { tunePodRoutes: false }],
    [{ podDefaultRouteNic: "net1" }, { podDefaultRouteNic: "net1" }],
    [{ podMACPrefix: "0A:1b" }, { podMACPrefix: "0a:1b" }],
    [{ hijackCIDR: ["169.254.20.10"] }, { hijackCIDR: [parsePrefix("169.254.20.10/32")] }],
    [{ overlayPodCIDR: networks }, { overlayPodCIDR: networks.map(parsePrefix) }],
    [{ hostRPFilter: -1 }, { hostRPFilter: -1 }],
    [log("/var/log/vendor/../vendor//a/./b.log"), log("/var/log/vendor/a/b.log", { logLevel: "debug" })],
  ])("%j", (value, expected) => {
    expect(resolve(value)).toEqual({ ...DEFAULT_COORDINATOR_CONF, ...expected });
  });

  const five = { retry: 5, windowMs: undefined };
  it.each<[value: object, expected: object]>([
    [{}, {}],
    [{ retry: 5 }, five],
    [{ retries: 5 }, five],
    [{ retry: 3 }, { windowMs: undefined }],
    [{ interval: "2s" }, { intervalMs: 2_000, windowMs: undefined }],
    [{ timeout: "2s" }, { timeoutMs: 2_000, windowMs: undefined }],
    [{ window: "3s" }, { windowMs: 3_000 }],
    [{ onConflict: "next" }, { onConflict: "next" }],
  ])("detectOptions %j", (value, expected) => {
    const wanted = { ...DEFAULT_COORDINATOR_CONF.detectOptions, ...expected };
    expect(resolve({ detectOptions: value }).detectOptions).toEqual(wanted);
  });
});

it("the first source wins key by key, also inside the objects", () => {
  const network = { detectGateway: false, detectOptions: { window: "3s" }, hijackCIDR: [] };
  const options = { detectOptions: { window: "1s", retry: 9 }, hijackCIDR: ["10.0.0.1"] };
  expect(resolve(network, { detectGateway: true, tunePodRoutes: false, ...options })).toEqual({
    ...DEFAULT_COORDINATOR_CONF,
    tunePodRoutes: false,
    detectOptions: { ...DEFAULT_COORDINATOR_CONF.detectOptions, windowMs: 3_000, retry: 9 },
  });
});

it.each([
  [{}, { retry: 9 }, undefined],
  [{ retry: 9 }, { window: "1s" }, 1_000],
  [{ window: "1s" }, { timeout: "3s" }, 1_000],
])("detectOptions %j over %j have the window %s", (network, global, windowMs) => {
  const { detectOptions } = resolve({ detectOptions: network }, { detectOptions: global });
  expect(detectOptions.windowMs).toBe(windowMs);
});

it.each([
  { mode: "disable", detectOptions: 7, unknown: true, hostRuleTable: "x", podMACPrefix: null },
  { mode: "disabled", tune_mode: "underlay" },
  { tune_mode: "disabled", logOptions: { logFile: "/etc/passwd" } },
])("%j has nothing to do, whatever else it holds", (entry) => {
  expect(decodeCoordinatorConf(entry, "x")).toEqual({ mode: "disable", warnings: [] });
});

it("tune_mode is accepted with a warning", () => {
  const warning = 'Key "tune_mode" is an alias; write "mode" instead';
  expect(decodeCoordinatorConf({ tune_mode: "auto" }, "x").warnings).toEqual([warning]);
  expect(decodeCoordinatorConf({ mode: "auto" }, "x").warnings).toEqual([]);
});

const LOG = "want a path inside /var/log/vendor/";

/** test/cluster/crds has the rows of the other keys, for the same schema and an API server. */
it.each<[value: unknown, message: string]>([
  [null, "net: found null, want an object"],
  [{ type: "berth" }, 'field "type": found "berth", want one of "coordinator", "berth-coordinator"'],
  [{ mode: "auto", tune_mode: "underlay" }, 'field "tune_mode": found "underlay", want the value of "mode"'],
  [{ hijackCIDR: ["10.0.0.1/8"] }, 'field "hijackCIDR[0]": found "10.0.0.1/8" (that is "10.0.0.0/8"), want its'],
  [{ logOptions: { logFile: "coordinator.log" } }, LOG],
  [{ logOptions: { logFile: "/var/log/vendor/a/.." } }, LOG],
  [{ logOptions: { logFile: "/var/log/vendor/../../etc/passwd" } }, LOG],
  [{ logOptions: { logFile: "/var/log/vendor2/a" } }, LOG],
  [{ logOptions: { logFile: "/var/log/vendor/a\u0000b" } }, LOG],
  [{ vethLink: "x" }, "found an unknown key, want one of the keys type, mode, tune_mode, tunePodRoutes"],
])("decodeCoordinatorConf refuses %j", (value, message) =>
  expect(() => decodeCoordinatorConf(value, "net")).toThrow(message),
);
