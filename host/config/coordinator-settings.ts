/** The coordinator's settings: of one source, their defaults, and the complete ones merged from all sources. */
import type { IfName } from "../cni/names.ts";
import type { Prefix } from "../net/prefix.ts";

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal"] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];

export interface DetectOptions {
  /** Number of requests to a gateway; without `windowMs` also the number of probes for a conflict. */
  readonly retry: number;
  /** Time between two requests. */
  readonly intervalMs: number;
  /** Time to wait for each answer. */
  readonly timeoutMs: number;
  /**
   * Conflict detection: time in which the probes are sent and answers awaited. If undefined, `retry`, `intervalMs`
   * and `timeoutMs` apply.
   */
  readonly windowMs: number | undefined;
  readonly onConflict: "fail" | "next";
}

export interface CoordinatorConf {
  readonly mode: "auto" | "underlay" | "overlay" | "disable";
  readonly tunePodRoutes: boolean;
  /** With "" the default route is not moved. */
  readonly podDefaultRouteNic: IfName | "";
  readonly podDefaultCniNic: IfName;
  readonly detectGateway: boolean;
  readonly detectIPConflict: boolean;
  /** Two octets as in `0a:1b`; with "" the MAC address is not changed. */
  readonly podMACPrefix: string;
  readonly overlayPodCIDR: readonly Prefix[];
  readonly serviceCIDR: readonly Prefix[];
  readonly hijackCIDR: readonly Prefix[];
  readonly hostRuleTable: number;
  /** With -1 the sysctl is not changed. */
  readonly hostRPFilter: -1 | 0 | 1 | 2;
  /** MTU of the pair; 0: that of the NIC. */
  readonly vethMTU: number;
  /** With "" the pair's end in the pod has no IPv4 address. */
  readonly vethLinkAddress: string;
  /** Whether router advertisements and redirects give the NIC addresses and routes. */
  readonly acceptRA: boolean;
  readonly serviceSnat: "auto" | "on" | "off";
  readonly detectOptions: DetectOptions;
  readonly logOptions: { readonly logLevel: LogLevel; readonly logFile: string };
}

type Settings<T> = { readonly [K in keyof T]?: T[K] | undefined };

/** The settings of one source, which may omit any. `warnings` are sentences for the log and for `explain`. */
export interface CoordinatorSettings extends Settings<Omit<CoordinatorConf, "detectOptions" | "logOptions">> {
  readonly detectOptions?: Settings<DetectOptions> | undefined;
  readonly logOptions?: Settings<CoordinatorConf["logOptions"]> | undefined;
  readonly warnings: readonly string[];
}

export const DEFAULT_COORDINATOR_CONF: CoordinatorConf = {
  mode: "auto",
  tunePodRoutes: true,
  podDefaultRouteNic: "",
  podDefaultCniNic: "eth0" as IfName,
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
  acceptRA: false,
  serviceSnat: "auto",
  detectOptions: { retry: 3, intervalMs: 1_000, timeoutMs: 1_000, windowMs: 200, onConflict: "fail" },
  logOptions: { logLevel: "debug", logFile: "/var/log/vendor/coordinator.log" },
};

/** Keys with networks that the controller collects: an empty list in the resource Coordinator means "not set". */
export const COLLECTED_KEYS = ["serviceCIDR", "overlayPodCIDR"] as const satisfies (keyof CoordinatorConf)[];

export type CollectedKey = (typeof COLLECTED_KEYS)[number];

/** The settings of several sources, strongest first. */
type Layers<T> = readonly (Settings<T> | undefined)[];

/** Returns for each key of `defaults` the value of the first layer that has one, else the default. */
function layOver<T extends object>(layers: Layers<T>, defaults: T): T {
  const entries = Object.entries(defaults).map(([key, fallback]) => {
    const layer = layers.find((each) => each?.[key as keyof T] !== undefined);
    return [key, layer === undefined ? fallback : layer[key as keyof T]];
  });
  return Object.fromEntries(entries) as T;
}

/** Returns whether conflict detection uses `retry`, `interval` and `timeout`: one is set, and no `window`. */
function isPaced(layers: Layers<DetectOptions>): boolean {
  const isSet = (key: keyof DetectOptions): boolean => layers.some((layer) => layer?.[key] !== undefined);
  return !isSet("windowMs") && (["retry", "intervalMs", "timeoutMs"] as const).some(isSet);
}

function resolveDetectOptions(layers: Layers<DetectOptions>): DetectOptions {
  const options = layOver(layers, DEFAULT_COORDINATOR_CONF.detectOptions);
  return isPaced(layers) ? { ...options, windowMs: undefined } : options;
}

/** Returns the complete settings. For each key, also in `detectOptions` and `logOptions`, the first layer wins. */
export function resolveCoordinatorConf(...layers: readonly CoordinatorSettings[]): CoordinatorConf {
  const { detectOptions: _, logOptions, ...scalars } = DEFAULT_COORDINATOR_CONF;
  return {
    ...layOver<Omit<CoordinatorConf, "detectOptions" | "logOptions">>(layers, scalars),
    detectOptions: resolveDetectOptions(layers.map((layer) => layer.detectOptions)),
    logOptions: layOver(
      layers.map((layer) => layer.logOptions),
      logOptions,
    ),
  };
}
