/**
 * The coordinator's settings as values: complete ones, what one source says of them, and their defaults.
 */
import type { IfName } from "../cni/names.ts";
import type { Prefix } from "../net/prefix.ts";

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal"] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];

export interface DetectOptions {
  /** Requests sent before a gateway counts as unreachable; without `windowMs` also the probes for a conflict. */
  readonly retry: number;
  /** Between two requests. */
  readonly intervalMs: number;
  /** How long each answer is awaited. */
  readonly timeoutMs: number;
  /** Conflict: the time over which probes are spread; silence is judged at its end. Undefined: `retry`, `intervalMs` and `timeoutMs` govern. */
  readonly windowMs: number | undefined;
  readonly onConflict: "fail" | "next";
}

export interface CoordinatorConf {
  readonly mode: "auto" | "underlay" | "overlay" | "disable";
  readonly tunePodRoutes: boolean;
  /** "" keeps the default route where it is. */
  readonly podDefaultRouteNic: IfName | "";
  readonly podDefaultCniNic: IfName;
  readonly detectGateway: boolean;
  readonly detectIPConflict: boolean;
  /** Two octets as `0a:1b`; "" leaves the MAC alone. */
  readonly podMACPrefix: string;
  readonly overlayPodCIDR: readonly Prefix[];
  readonly serviceCIDR: readonly Prefix[];
  readonly hijackCIDR: readonly Prefix[];
  readonly hostRuleTable: number;
  /** -1 leaves the sysctl alone. */
  readonly hostRPFilter: -1 | 0 | 1 | 2;
  readonly serviceSnat: "auto" | "on" | "off";
  readonly detectOptions: DetectOptions;
  readonly logOptions: { readonly logLevel: LogLevel; readonly logFile: string };
}

type Settings<T> = { readonly [K in keyof T]?: T[K] | undefined };

/** What one source says; what it leaves out is absent. `warnings` are sentences for the log and for `explain`. */
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
  serviceSnat: "auto",
  detectOptions: { retry: 3, intervalMs: 1_000, timeoutMs: 1_000, windowMs: 200, onConflict: "fail" },
  logOptions: { logLevel: "debug", logFile: "/var/log/vendor/coordinator.log" },
};

/** Of these an empty list in the resource Coordinator says nothing: the cluster's networks are collected when nobody names any. */
export const COLLECTED_KEYS = ["serviceCIDR", "overlayPodCIDR"] as const satisfies (keyof CoordinatorConf)[];

export type CollectedKey = (typeof COLLECTED_KEYS)[number];

/** What several sources say, the strongest first. */
type Layers<T> = readonly (Settings<T> | undefined)[];

/** For each key of `defaults` what the first layer says that says anything. */
function layOver<T extends object>(layers: Layers<T>, defaults: T): T {
  const entries = Object.entries(defaults).map(([key, fallback]) => {
    const said = layers.find((layer) => layer?.[key as keyof T] !== undefined);
    return [key, said === undefined ? fallback : said[key as keyof T]];
  });
  return Object.fromEntries(entries) as T;
}

/** Whether conflicts go by `retry`, `interval` and `timeout`: one of them is written out, and `window` is not (specification, Resolved D). */
function isPaced(layers: Layers<DetectOptions>): boolean {
  const isSaid = (key: keyof DetectOptions): boolean => layers.some((layer) => layer?.[key] !== undefined);
  return !isSaid("windowMs") && (["retry", "intervalMs", "timeoutMs"] as const).some(isSaid);
}

function resolveDetectOptions(layers: Layers<DetectOptions>): DetectOptions {
  const options = layOver(layers, DEFAULT_COORDINATOR_CONF.detectOptions);
  return isPaced(layers) ? { ...options, windowMs: undefined } : options;
}

/** Complete settings; the first layer wins key by key, also inside `detectOptions` and `logOptions`. */
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
