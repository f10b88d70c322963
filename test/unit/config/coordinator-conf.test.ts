import { describe, expect, it } from "vitest";
import { decodeCoordinatorConf, MAX_CIDRS } from "../../../host/config/coordinator-conf.ts";
import { DEFAULT_COORDINATOR_CONF, resolveCoordinatorConf } from "../../../host/config/coordinator-settings.ts";
import { parsePrefix } from "../../../host/net/prefix.ts";

function resolve(...sources: object[]) {
  return resolveCoordinatorConf(...sources.map((source) => decodeCoordinatorConf(source, "x")));
}

it("nothing written means the defaults of the specification 2.3", () => {
  expect(resolve()).toEqual(DEFAULT_COORDINATOR_CONF);
  expect(resolve({}, {})).toEqual({
    mode: "auto",
    tunePodRoutes: true,
    podDefaultRouteNic: "",
    podDefaultCniNic: "eth0",
    detectGateway: false,
    detectIPConflict: false,
    podMACPrefix: "",
    overlayPodCIDR: [],
    serviceCIDR: [],
    hijackCIDR: [],
    hostRuleTable: 500,
    hostRPFilter: 0,
    vethMTU: 0,
    vethLinkAddress: "",
    serviceSnat: "auto",
    detectOptions: { retry: 3, intervalMs: 1_000, timeoutMs: 1_000, windowMs: 200, onConflict: "fail" },
    logOptions: { logLevel: "debug", logFile: "/var/log/vendor/coordinator.log" },
  });
});

describe("one key changes one setting", () => {
  const rows: [value: object, expected: object][] = [
    [{ type: "coordinator" }, {}],
    [{ type: "berth-coordinator" }, {}],
    [{ mode: "disabled" }, { mode: "disable" }],
    [{ tune_mode: "underlay" }, { mode: "underlay" }],
    [{ mode: "disable", tune_mode: "disabled" }, { mode: "disable" }],
    [{ tunePodRoutes: false }, { tunePodRoutes: false }],
    [{ podDefaultRouteNic: "" }, { podDefaultRouteNic: "" }],
    [{ podDefaultRouteNic: "net1" }, { podDefaultRouteNic: "net1" }],
    [{ podMACPrefix: "0A:1b" }, { podMACPrefix: "0a:1b" }],
    [{ podMACPrefix: "" }, { podMACPrefix: "" }],
    [{ hijackCIDR: ["169.254.20.10"] }, { hijackCIDR: [parsePrefix("169.254.20.10/32")] }],
    [{ serviceCIDR: ["fd00::1"] }, { serviceCIDR: [parsePrefix("fd00::1/128")] }],
    [
      { overlayPodCIDR: ["10.0.0.0/8", "fd00::/48"] },
      { overlayPodCIDR: [parsePrefix("10.0.0.0/8"), parsePrefix("fd00::/48")] },
    ],
    [{ hostRuleTable: 1 }, { hostRuleTable: 1 }],
    [{ hostRuleTable: 99 }, { hostRuleTable: 99 }],
    [{ hostRuleTable: 200 }, { hostRuleTable: 200 }],
    [{ hostRuleTable: 252 }, { hostRuleTable: 252 }],
    [{ hostRuleTable: 256 }, { hostRuleTable: 256 }],
    [{ hostRuleTable: 4_294_967_295 }, { hostRuleTable: 4_294_967_295 }],
    [{ hostRPFilter: -1 }, { hostRPFilter: -1 }],
    [{ hostRPFilter: 2 }, { hostRPFilter: 2 }],
    [{ serviceSnat: "off" }, { serviceSnat: "off" }],
    [
      { logOptions: { logFile: "/var/log/vendor/../vendor//a/./b.log" } },
      { logOptions: { logLevel: "debug", logFile: "/var/log/vendor/a/b.log" } },
    ],
  ];
  it.each(rows)("%j", (value, expected) => {
    expect(resolve(value)).toEqual({ ...DEFAULT_COORDINATOR_CONF, ...expected });
  });

  const five = { retry: 5, windowMs: undefined };
  it.each<[value: object, expected: object]>([
    [{}, {}],
    [{ retry: 5 }, five],
    [{ retries: 5 }, five],
    [{ retry: 5, retries: 5 }, five],
    [{ retry: 3 }, { windowMs: undefined }],
    [{ interval: "2s" }, { intervalMs: 2_000, windowMs: undefined }],
    [{ timeout: "1s" }, { windowMs: undefined }],
    [
      { retry: 5, window: "200ms" },
      { ...five, windowMs: 200 },
    ],
    [{ window: "3s" }, { windowMs: 3_000 }],
    [
      { interval: "10ms", timeout: "2s" },
      { intervalMs: 10, timeoutMs: 2_000, windowMs: undefined },
    ],
    [{ onConflict: "next" }, { onConflict: "next" }],
  ])("detectOptions %j", (value, expected) => {
    const wanted = { ...DEFAULT_COORDINATOR_CONF.detectOptions, ...expected };
    expect(resolve({ detectOptions: value }).detectOptions).toEqual(wanted);
  });
});

it("the first source wins key by key, also inside the objects", () => {
  const network = { detectGateway: false, detectOptions: { window: "3s" }, hijackCIDR: [] };
  const global = {
    detectGateway: true,
    tunePodRoutes: false,
    detectOptions: { window: "1s", retry: 9 },
    hijackCIDR: ["10.0.0.1"],
  };
  expect(resolve(network, global)).toEqual({
    ...DEFAULT_COORDINATOR_CONF,
    tunePodRoutes: false,
    detectOptions: { ...DEFAULT_COORDINATOR_CONF.detectOptions, windowMs: 3_000, retry: 9 },
  });
});

it.each([
  [{ retry: 9 }, {}, undefined],
  [{}, { retry: 9 }, undefined],
  [{ retry: 9 }, { window: "1s" }, 1_000],
  [{ window: "1s" }, { timeout: "3s" }, 1_000],
  [{ onConflict: "next" }, {}, 200],
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
  expect(decodeCoordinatorConf({ tune_mode: "auto" }, "x").warnings).toEqual([
    'Key "tune_mode" is an alias; write "mode" instead',
  ]);
  expect(decodeCoordinatorConf({ mode: "auto" }, "x").warnings).toEqual([]);
});

const TABLE = "want a routing table from 1 to 252 or from 256 to 4294967295, not 100 to 199";
const MAC = 'want two octets such as "0a:1b" with the multicast bit 0';
const LOG = "want a path inside /var/log/vendor/";

describe("decodeCoordinatorConf refuses", () => {
  const rows: [value: unknown, message: string][] = [
    [null, "net: found null, want an object"],
    [{ type: "berth" }, 'field "type": found "berth", want one of "coordinator", "berth-coordinator"'],
    [
      { mode: "Underlay" },
      'field "mode": found "Underlay", want one of "auto", "underlay", "overlay", "disable", "disabled"',
    ],
    [{ mode: "auto", tune_mode: "underlay" }, 'field "tune_mode": found "underlay", want the value of "mode"'],
    [{ detectGatway: true }, 'field "detectGatway": found an unknown key, want the key "detectGateway"'],
    [{ detectGateway: "true" }, 'field "detectGateway": found "true", want true or false'],
    [{ podDefaultCniNic: "" }, 'field "podDefaultCniNic": found "", want an interface name'],
    [{ podMACPrefix: "0a" }, MAC],
    [{ podMACPrefix: "0a:1b:2c" }, MAC],
    [{ podMACPrefix: "01:00" }, MAC],
    [{ podMACPrefix: "0a-1b" }, MAC],
    [{ podMACPrefix: "zz:00" }, MAC],
    [{ hijackCIDR: "10.0.0.0/8" }, 'field "hijackCIDR": found "10.0.0.0/8", want a list'],
    [
      { hijackCIDR: ["10.0.0.1/8"] },
      'field "hijackCIDR[0]": found "10.0.0.1/8" (that is "10.0.0.0/8"), want its canonical form',
    ],
    [{ hijackCIDR: ["10.0.0.0/33"] }, 'found "10.0.0.0/33", want a network in CIDR form'],
    [{ serviceCIDR: [""] }, 'field "serviceCIDR[0]": found ""'],
    [{ hostRuleTable: 0 }, 'field "hostRuleTable": found 0, want a whole number from 1 to 4294967295'],
    [{ hostRuleTable: 253 }, `found 253, ${TABLE}`],
    [{ hostRuleTable: 255 }, `found 255, ${TABLE}`],
    [{ hostRuleTable: 100 }, `found 100, ${TABLE}`],
    [{ hostRuleTable: 199 }, `found 199, ${TABLE}`],
    [{ hostRuleTable: 4_294_967_296 }, "found 4294967296, want a whole number from 1 to 4294967295"],
    [{ hostRPFilter: 3 }, 'field "hostRPFilter": found 3, want one of -1, 0, 1, 2'],
    [{ serviceSnat: true }, 'field "serviceSnat": found true, want one of "auto", "on", "off"'],
    [{ detectOptions: null }, 'field "detectOptions": found null, want an object'],
    [{ detectOptions: { retry: 0 } }, 'field "detectOptions.retry": found 0, want a whole number from 1 to 100'],
    [{ detectOptions: { retry: 101 } }, "found 101, want a whole number from 1 to 100"],
    [{ detectOptions: { retry: 3, retries: 4 } }, 'field "detectOptions.retries": found 4, want the value of "retry"'],
    [{ detectOptions: { interval: 1 } }, 'field "detectOptions.interval": found 1, want a duration'],
    [{ detectOptions: { window: "0s" } }, 'field "detectOptions.window": found "0s", want a duration'],
    [{ detectOptions: { windows: "1s" } }, 'found an unknown key, want the key "window"'],
    [{ detectOptions: { onConflict: "retry" } }, 'want one of "fail", "next"'],
    [{ logOptions: { logLevel: "verbose" } }, 'field "logOptions.logLevel": found "verbose", want one of "trace"'],
    [{ logOptions: { logFile: "coordinator.log" } }, LOG],
    [{ logOptions: { logFile: "/var/log/vendor" } }, LOG],
    [{ logOptions: { logFile: "/var/log/vendor/" } }, LOG],
    [{ logOptions: { logFile: "/var/log/vendor/a/.." } }, LOG],
    [{ logOptions: { logFile: "/var/log/vendor/../../etc/passwd" } }, LOG],
    [{ logOptions: { logFile: "/var/log/vendor2/a" } }, LOG],
    [{ logOptions: { logFile: "/var/log/vendor/a\u0000b" } }, LOG],
    [{ tune_mode: "x" }, 'field "tune_mode": found "x", want one of "auto"'],
    [{ tunePodRoutes: "yes" }, 'field "tunePodRoutes": found "yes", want true or false'],
    [{ detectIPConflict: "false" }, 'field "detectIPConflict": found "false", want true or false'],
    [{ podDefaultRouteNic: "eth0:1" }, 'field "podDefaultRouteNic": found "eth0:1", want an interface name, or ""'],
    [{ overlayPodCIDR: {} }, 'field "overlayPodCIDR": found an object, want a list'],
    [{ hostRuleTable: 1.5 }, 'field "hostRuleTable": found 1.5, want a whole number from 1'],
    [{ hostRPFilter: -2 }, 'field "hostRPFilter": found -2, want one of -1, 0, 1, 2'],
    [{ detectOptions: { timeout: "1 s" } }, 'field "detectOptions.timeout": found "1 s", want a duration'],
    [{ logOptions: "debug" }, 'field "logOptions": found "debug", want an object'],
    [{ logOptions: { logfile: "x" } }, 'field "logOptions.logfile": found an unknown key, want the key "logFile"'],
    [{ vethLink: "x" }, "found an unknown key, want one of the keys type, mode, tune_mode, tunePodRoutes"],
    [
      { vethLinkAddress: "169.254.256.1" },
      'field "vethLinkAddress": found "169.254.256.1", want an address of 169.254',
    ],
    [
      { hijackCIDR: Array(MAX_CIDRS + 1).fill("10.0.0.1") },
      'field "hijackCIDR": found a list, want a list of at most 1024 entries',
    ],
    [JSON.parse('{"__proto__":{"mode":"disable"}}'), 'field "__proto__": found an unknown key'],
  ];
  it.each(rows)("%.100j", (value, message) => expect(() => decodeCoordinatorConf(value, "net")).toThrow(message));
});
