/**
 * Decodes the coordinator's settings from one source: a network definition or the resource Coordinator.
 * coordinator-settings.ts merges the sources.
 */
import * as z from "zod";
import { MAX_IF_NAME_BYTES, parseIfName } from "../cni/names.ts";
import { COORDINATOR_TYPES } from "../cni/request.ts";
import { type CelRule, cel, matchRule } from "../lib/cel.ts";
import { parsedText, wholeNumber } from "../lib/schema.ts";
import { decodeConfig } from "./config-error.ts";
import { type CoordinatorSettings, LOG_LEVELS } from "./coordinator-settings.ts";
import { positiveDuration } from "./fields/duration.ts";
import { IF_NAME_RULE, ifName, prefixOrIp } from "./fields/network.ts";

/** First routing table that Berth uses inside pods: that of the reply path. The tables of the NICs follow. */
export const POD_TABLES_FIRST = 100;

/** Last routing table that Berth uses inside pods. */
export const POD_TABLES_LAST = 199;

/**
 * Most networks in each of `overlayPodCIDR`, `serviceCIDR`, `hijackCIDR` and `hostRouteCIDR`. Each becomes a route in
 * every pod, and adding routes delays other requests. @limit
 */
export const MAX_CIDRS = 1_024;

/** Highest routing table: the kernel uses 32 bits. */
const MAX_ROUTE_TABLE = 4_294_967_295;

/** Largest MTU of a veth (drivers/net/veth.c): bytes. */
const MAX_MTU = 65_535;

/** Most requests of one gateway detection (`detectOptions.retry`). @limit */
const MAX_DETECT_RETRY = 100;

/** Longest `logOptions.logFile` of the resource Coordinator: characters. */
const MAX_LOG_FILE_LENGTH = 255;

/** Directory of log files, the only one allowed: the agent writes as root, and tenants write network definitions. */
export const LOG_DIRECTORY = "/var/log/vendor/";

/** Returns the path, resolved; undefined outside {@link LOG_DIRECTORY}. The writer refuses symbolic links. */
function parseLogFile(text: string): string | undefined {
  if (!text.startsWith("/") || /\p{Cc}/u.test(text)) return undefined;
  const parts: string[] = [];
  for (const part of text.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  const path = `/${parts.join("/")}`;
  return path.startsWith(LOG_DIRECTORY) ? path : undefined;
}

/** Two octets. The lowest bit of the first is the multicast bit. */
const MAC_PREFIX = /^(?:[0-9A-Fa-f][02468ACEace]:[0-9A-Fa-f]{2})?$/;

function parseMacPrefix(text: string): string | undefined {
  return MAC_PREFIX.test(text) ? text.toLowerCase() : undefined;
}

const MAC_PREFIX_FORM = 'two octets such as "0a:1b" with the multicast bit 0 (the first octet is even), or ""';

const LINK_ADDRESS = /^(?:169\.254(?:\.(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])){2})?$/;

const LINK_ADDRESS_FORM = 'an address of 169.254.0.0/16, or ""';

const ROUTE_TABLE_FORM =
  `a routing table from 1 to 252 or from 256 to ${MAX_ROUTE_TABLE}, ` +
  `not ${POD_TABLES_FIRST} to ${POD_TABLES_LAST} (Berth's own inside pods)`;

/** Tables 253 to 255 are the kernel's default, main and local. */
function isFreeTable(table: number): boolean {
  const isKernels = table >= 253 && table <= 255;
  const isPods = table >= POD_TABLES_FIRST && table <= POD_TABLES_LAST;
  return !isKernels && !isPods;
}

/** The rule that mirrors {@link isFreeTable}. */
const ROUTE_TABLE_RULE: CelRule = {
  rule: `(self < 253 || self > 255) && (self < ${POD_TABLES_FIRST} || self > ${POD_TABLES_LAST})`,
  message: ROUTE_TABLE_FORM,
};

const networks = z.array(prefixOrIp).max(MAX_CIDRS);

const mode = z.enum(["auto", "underlay", "overlay", "disable", "disabled"]);

const spellingWanted = (name: string) => `the value of "${name}", or only one of the two keys`;

/** Returns the CEL rule that mirrors {@link eitherOf}; `spelled` maps aliases of a value to one expression. */
function eitherRule(name: string, alias: string, spelled = (text: string) => text): CelRule {
  return {
    rule: `!has(self.${name}) || !has(self.${alias}) || ${spelled(`self.${name}`)} == ${spelled(`self.${alias}`)}`,
    message: spellingWanted(name),
    fieldPath: `.${alias}`,
  };
}

/** Rule of the spec of a Coordinator. */
export const MODE_RULE = eitherRule("mode", "tune_mode", (text) => `(${text} == 'disabled' ? 'disable' : ${text})`);

const RETRY_RULE = eitherRule("retry", "retries");

/** Returns the value of a setting or of its alias. Reports an issue if both are set and differ. */
function eitherOf<T>(context: z.RefinementCtx, [name, value]: [string, T], [alias, other]: [string, T]): T {
  if (value !== undefined && other !== undefined && value !== other) {
    context.addIssue({ code: "custom", path: [alias], message: spellingWanted(name) });
  }
  return value ?? other;
}

const detectOptions = z
  .strictObject({
    retry: wholeNumber(1, MAX_DETECT_RETRY).meta({
      description: "Number of requests to a gateway and, without `window`, of probes for a conflict. Default `3`.",
    }),
    retries: wholeNumber(1, MAX_DETECT_RETRY).meta({ description: "Alias of `retry`." }),
    interval: positiveDuration.meta({ description: "Time between two requests. Default `1s`." }),
    timeout: positiveDuration.meta({ description: "Time to wait for each answer. Default `1s`." }),
    window: positiveDuration.meta({
      description:
        "Conflict detection: time in which three probes are sent. Default `200ms` if none of the above is set.",
    }),
    onConflict: z.enum(["fail", "next"]).meta({
      description: "Conflict detection: fail the ADD, or try another address within it. Default `fail`.",
    }),
  })
  .partial()
  .transform(({ retry, retries, interval, timeout, window, onConflict }, context) => ({
    retry: eitherOf(context, ["retry", retry], ["retries", retries]),
    intervalMs: interval,
    timeoutMs: timeout,
    windowMs: window,
    onConflict,
  }));

/** Description of `logOptions`. */
export const LOG_OPTIONS = "The plugin's log.";

type LogFile = ReturnType<typeof parsedText<string>>;

function logOptionsWith(logFile: LogFile) {
  return z
    .strictObject({
      logLevel: z.enum(LOG_LEVELS).meta({ description: "Lowest level that is logged. Default `debug`." }),
      logFile: logFile.meta({
        description: `File inside \`${LOG_DIRECTORY}\`, not a symbolic link. Default \`coordinator.log\`.`,
      }),
    })
    .partial();
}

const RESOLVED_FORM = `a path inside ${LOG_DIRECTORY} without ".", ".." and empty parts, at most ${MAX_LOG_FILE_LENGTH} characters`;

function parseResolvedLogFile(text: string): string | undefined {
  return parseLogFile(text) === text ? text : undefined;
}

const resolvedLogFile = parsedText(parseResolvedLogFile, RESOLVED_FORM, MAX_LOG_FILE_LENGTH).meta(
  cel({
    rule: `self.matches(r'^${LOG_DIRECTORY}[^/\\p{Cc}]+(/[^/\\p{Cc}]+)*$') && !self.matches('/[.]{1,2}(/|$)')`,
    message: RESOLVED_FORM,
  }),
);

const logOptions = logOptionsWith(parsedText(parseLogFile, `a path inside ${LOG_DIRECTORY}`));

/** `logOptions` of the resource Coordinator. The path has no `..`, because CEL cannot resolve it. */
export const resolvedLogOptions = logOptionsWith(resolvedLogFile);

const ROUTE_NIC_FORM = 'an interface name, or "" for the first NIC';

/**
 * The keys of a coordinator entry, all optional; the resource Coordinator adds its own. Defaults are only described
 * here, because another source may set a key that this one omits.
 */
export const coordinatorKeys = z
  .strictObject({
    type: z.literal(COORDINATOR_TYPES).meta({ description: "Plugin name. Default `coordinator`." }),
    mode: mode.meta({ description: "Operating mode. `disabled` is an alias of `disable`. Default `auto`." }),
    tune_mode: mode.meta({ description: "Alias of `mode`; logs a warning." }),
    tunePodRoutes: z.boolean().meta({ description: "Tune the routes of a pod with several NICs. Default `true`." }),
    podDefaultRouteNic: parsedText(
      (text) => (text === "" ? "" : parseIfName(text)),
      ROUTE_NIC_FORM,
      MAX_IF_NAME_BYTES,
    ).meta({
      ...cel({ rule: `self == '' || (${IF_NAME_RULE.rule})`, message: ROUTE_NIC_FORM }),
      description: "NIC that carries the pod's default route. If empty, the first NIC keeps it. Default empty.",
    }),
    podDefaultCniNic: ifName.meta({ description: "Name of the pod's first NIC. Default `eth0`." }),
    detectGateway: z
      .boolean()
      .meta({ description: "Whether the ADD fails if the gateway does not answer. Default `false`." }),
    detectIPConflict: z
      .boolean()
      .meta({ description: "Whether the ADD fails if another machine has the address. Default `false`." }),
    podMACPrefix: parsedText(parseMacPrefix, MAC_PREFIX_FORM, "0a:1b".length).meta({
      ...cel(matchRule(MAC_PREFIX, MAC_PREFIX_FORM)),
      description: "First two octets of the pods' MAC addresses. If empty, they are not changed. Default empty.",
    }),
    overlayPodCIDR: networks.meta({
      description:
        "Pod networks of the cluster. Collected unless the definition has the list, or the Coordinator entries.",
    }),
    serviceCIDR: networks.meta({
      description: "Service networks of the cluster. Collected likewise.",
    }),
    hijackCIDR: networks.meta({ description: "Networks that pods reach through the node. Default empty." }),
    hostRuleTable: wholeNumber(1, MAX_ROUTE_TABLE)
      .refine(isFreeTable, { error: ROUTE_TABLE_FORM })
      .meta({
        ...cel(ROUTE_TABLE_RULE),
        description: "The node's routing table for the addresses of pods. Default `500`.",
      }),
    hostRPFilter: z.literal([-1, 0, 1, 2]).meta({
      description: "`rp_filter` of interfaces that carry pod traffic. With -1 it is not changed. Default `0`.",
    }),
    vethMTU: wholeNumber(0, MAX_MTU).meta({
      description: "MTU of the pair. With 0 it has that of the pod's NIC. Default `0`.",
    }),
    vethLinkAddress: parsedText(
      (text) => (LINK_ADDRESS.test(text) ? text : undefined),
      LINK_ADDRESS_FORM,
      "169.254.255.255".length,
    ).meta({
      ...cel(matchRule(LINK_ADDRESS, LINK_ADDRESS_FORM)),
      description: "Address of `veth0`, which netfilter's `redirect` needs. Default empty.",
    }),
    acceptRA: z.boolean().meta({
      description:
        "Whether router advertisements and ICMP redirects give the pod's NIC addresses and routes. Default `false`.",
    }),
    serviceSnat: z
      .enum(["auto", "on", "off"])
      .meta({ description: "Whether service connections that leave the node are masqueraded. Default `auto`." }),
    detectOptions: detectOptions.meta({
      ...cel(RETRY_RULE),
      description: "Settings of gateway and conflict detection.",
    }),
    logOptions: logOptions.meta({ description: LOG_OPTIONS }),
  })
  .partial();

const TUNE_MODE_WARNING = 'Key "tune_mode" is an alias; write "mode" instead';

/** Resolves the aliases. */
export function settingsOf(keys: z.output<typeof coordinatorKeys>, context: z.RefinementCtx): CoordinatorSettings {
  const { type: _, tune_mode, ...settings } = keys;
  const spelled = (value: typeof keys.mode) => (value === "disabled" ? "disable" : value);
  return {
    ...settings,
    mode: eitherOf(context, ["mode", spelled(settings.mode)], ["tune_mode", spelled(tune_mode)]),
    warnings: tune_mode === undefined ? [] : [TUNE_MODE_WARNING],
  };
}

const coordinatorEntry = coordinatorKeys.transform(settingsOf);

/** Returns whether the entry disables the coordinator. Its other keys are not validated then. */
function isDisabled(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { mode, tune_mode } = value as Readonly<Record<string, unknown>>;
  return ["disable", "disabled"].some((word) => word === (mode ?? tune_mode));
}

/**
 * Decodes a plugin entry's own keys (cni/net-conf.ts, `pluginKeys`). Throws ConfigError, except for an entry that
 * disables the coordinator.
 */
export function decodeCoordinatorConf(value: unknown, source: string): CoordinatorSettings {
  if (isDisabled(value)) return { mode: "disable", warnings: [] };
  return decodeConfig(coordinatorEntry, value, source);
}
