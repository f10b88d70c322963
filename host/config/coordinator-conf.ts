/**
 * The coordinator's settings, from a network definition or the resource Coordinator (spec.md 2.3, Resolved D).
 * Each source decodes to what it says; {@link resolveCoordinatorConf} lays them over one another and the defaults.
 * Effects: none.
 */
import type { IfName } from "../cni/names.ts";
import type { Prefix } from "../net/prefix.ts";

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "fatal";

export interface DetectOptions {
  /** Gateway: requests sent before it counts as unreachable. */
  readonly retry: number;
  /** Gateway: between two requests. */
  readonly intervalMs: number;
  /** Gateway: how long each answer is awaited. */
  readonly timeoutMs: number;
  /** Conflict: the time over which probes are spread; silence is judged at its end. */
  readonly windowMs: number;
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
