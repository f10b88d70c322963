/**
 * The keys of the coordinator's configuration, in a network definition or the resource Coordinator (specification 2.3, Resolved D).
 * Each source decodes to what it says; coordinator-settings.ts lays them over one another.
 */

import { z } from "zod";
import { MAX_IF_NAME_BYTES, parseIfName } from "../cni/names.ts";
import { type CelRule, cel, matchRule } from "../lib/cel.ts";
import { parsedText, wholeNumber } from "../lib/schema.ts";
import { decodeConfig } from "./config-error.ts";
import { type CoordinatorSettings, LOG_LEVELS } from "./coordinator-settings.ts";
import { positiveDuration } from "./fields/duration.ts";
import { IF_NAME_RULE, ifName, prefixOrIp } from "./fields/network.ts";

/** First of the routing tables that Berth uses inside pods: the reply path's; each NIC's follow. @limit */
export const POD_TABLES_FIRST = 100;

/** Last of the routing tables that Berth uses inside pods. @limit */
export const POD_TABLES_LAST = 199;

/** Most networks in each of `overlayPodCIDR`, `serviceCIDR`, `hijackCIDR` and `hostRouteCIDR`: each is a route in every pod, and others wait meanwhile. @limit */
export const MAX_CIDRS = 1_024;

/** Highest routing table: the kernel's numbers have 32 bits. @limit */
export const MAX_ROUTE_TABLE = 4_294_967_295;

/** Most requests of one gateway detection (`detectOptions.retry`). @limit */
export const MAX_DETECT_RETRY = 100;

/** Longest `logOptions.logFile` of the resource Coordinator: characters. @limit */
export const MAX_LOG_FILE_LENGTH = 255;

/** Where log files must lie: definitions are written by tenants, the writer is root. */
export const LOG_DIRECTORY = "/var/log/vendor/";

/** Resolves `.` and `..` as text. Undefined outside {@link LOG_DIRECTORY}; links are the writer's to refuse. */
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

/** Two octets; the multicast bit is the lowest of the first. */
const MAC_PREFIX = /^(?:[0-9A-Fa-f][02468ACEace]:[0-9A-Fa-f]{2})?$/;

function parseMacPrefix(text: string): string | undefined {
  return MAC_PREFIX.test(text) ? text.toLowerCase() : undefined;
}

const MAC_PREFIX_FORM = 'two octets such as "0a:1b" with the multicast bit 0 (the first octet is even), or ""';

const ROUTE_TABLE_FORM =
  `a routing table from 1 to 252 or from 256 to ${MAX_ROUTE_TABLE}, ` +
  `not ${POD_TABLES_FIRST} to ${POD_TABLES_LAST} (Berth's own inside pods)`;

/** 253 to 255 are the kernel's default, main and local. */
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

const spellingWanted = (name: string) => `what "${name}" says, or only one of the two`;

/** The rule that mirrors {@link eitherOf}; `spelled` makes one expression of two spellings of a value. */
function eitherRule(name: string, alias: string, spelled = (text: string) => text): CelRule {
  return {
    rule: `!has(self.${name}) || !has(self.${alias}) || ${spelled(`self.${name}`)} == ${spelled(`self.${alias}`)}`,
    message: spellingWanted(name),
    fieldPath: `.${alias}`,
  };
}

/** Of the resource Coordinator's spec. */
export const MODE_RULE = eitherRule("mode", "tune_mode", (text) => `(${text} == 'disabled' ? 'disable' : ${text})`);

const RETRY_RULE = eitherRule("retry", "retries");

/** Reports two spellings of one setting that differ; gives the one that is there. */
function eitherOf<T>(context: z.RefinementCtx, [name, value]: [string, T], [alias, other]: [string, T]): T {
  if (value !== undefined && other !== undefined && value !== other) {
    context.addIssue({ code: "custom", path: [alias], message: spellingWanted(name) });
  }
  return value ?? other;
}

const detectOptions = z
  .strictObject({
    retry: wholeNumber(1, MAX_DETECT_RETRY).meta({
      description: "Requests to a gateway; without `window` also probes for a conflict. Default `3`.",
    }),
    retries: wholeNumber(1, MAX_DETECT_RETRY).meta({ description: "The same as `retry`." }),
    interval: positiveDuration.meta({ description: "Time between two of them. Default `1s`." }),
    timeout: positiveDuration.meta({ description: "Time to wait for each answer. Default `1s`." }),
    window: positiveDuration.meta({
      description: "Conflict: time over which three probes are spread. Default `200ms` when none of the above is set.",
    }),
    onConflict: z.enum(["fail", "next"]).meta({
      description: "Conflict: refuse the pod, or take the next address within the same ADD. Default `fail`.",
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

/** What `logOptions` is. */
export const LOG_OPTIONS = "The plugin's log.";

type LogFile = ReturnType<typeof parsedText<string>>;

function logOptionsWith(logFile: LogFile) {
  return z
    .strictObject({
      logLevel: z.enum(LOG_LEVELS).meta({ description: "Least level that is written. Default `debug`." }),
      logFile: logFile.meta({
        description: `File inside \`${LOG_DIRECTORY}\`, no symbolic link. Default \`coordinator.log\` there.`,
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

/** Of the resource: CEL cannot resolve `..`, so the path has none. */
export const resolvedLogOptions = logOptionsWith(resolvedLogFile);

const ROUTE_NIC_FORM = 'an interface name, or "" for the first NIC';

/**
 * The keys of a coordinator entry, all optional; the resource Coordinator has the same and its own.
 * Their defaults are told, not set: what a source leaves out is the next source's to say.
 */
export const coordinatorKeys = z
  .strictObject({
    type: z.literal("coordinator").meta({ description: "Plugin name. Default `coordinator`." }),
    mode: mode.meta({ description: "Operating mode; `disabled` is `disable`. Default `auto`." }),
    tune_mode: mode.meta({ description: "The same as `mode`, with a warning." }),
    tunePodRoutes: z.boolean().meta({ description: "Tune the routes of a pod with several NICs. Default `true`." }),
    podDefaultRouteNic: parsedText(
      (text) => (text === "" ? "" : parseIfName(text)),
      ROUTE_NIC_FORM,
      MAX_IF_NAME_BYTES,
    ).meta({
      ...cel({ rule: `self == '' || (${IF_NAME_RULE.rule})`, message: ROUTE_NIC_FORM }),
      description: "NIC that carries the pod's default route; empty: the first keeps it. Default empty.",
    }),
    podDefaultCniNic: ifName.meta({ description: "Name of the pod's first NIC. Default `eth0`." }),
    detectGateway: z.boolean().meta({ description: "An unreachable gateway prevents the pod. Default `false`." }),
    detectIPConflict: z.boolean().meta({ description: "An address conflict prevents the pod. Default `false`." }),
    podMACPrefix: parsedText(parseMacPrefix, MAC_PREFIX_FORM, "0a:1b".length).meta({
      ...cel(matchRule(MAC_PREFIX, MAC_PREFIX_FORM)),
      description: "First two octets of the pods' MAC addresses; empty: left alone. Default empty.",
    }),
    overlayPodCIDR: networks.meta({
      description:
        "Cluster pod networks; collected unless a definition has a list, or the Coordinator one that is not empty.",
    }),
    serviceCIDR: networks.meta({
      description:
        "Service networks; collected unless a definition has a list, or the Coordinator one that is not empty.",
    }),
    hijackCIDR: networks.meta({ description: "Networks reached through the host. Default empty." }),
    hostRuleTable: wholeNumber(1, MAX_ROUTE_TABLE)
      .refine(isFreeTable, { error: ROUTE_TABLE_FORM })
      .meta({ ...cel(ROUTE_TABLE_RULE), description: "Host's routing table for the pods' addresses. Default `500`." }),
    hostRPFilter: z
      .literal([-1, 0, 1, 2])
      .meta({ description: "`rp_filter` of interfaces that carry pod traffic; -1 leaves it alone. Default `0`." }),
    serviceSnat: z
      .enum(["auto", "on", "off"])
      .meta({ description: "Masquerade of service connections that leave the node. Default `auto`." }),
    detectOptions: detectOptions.meta({ ...cel(RETRY_RULE), description: "Settings of both detections." }),
    logOptions: logOptions.meta({ description: LOG_OPTIONS }),
  })
  .partial();

const TUNE_MODE_WARNING = 'Key "tune_mode" is an alias; write "mode" instead';

/** Folds the aliases; see {@link CoordinatorSettings}. */
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

/** Whether the entry says that the coordinator has nothing to do. What else it holds does not matter then, and may be anything. */
function isDisabled(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { mode, tune_mode } = value as Readonly<Record<string, unknown>>;
  return ["disable", "disabled"].some((word) => word === (mode ?? tune_mode));
}

/** Decodes a plugin entry's own keys (cni/net-conf.ts, `pluginKeys`). Throws ConfigError, but not for an entry that says `disable`. */
export function decodeCoordinatorConf(value: unknown, source: string): CoordinatorSettings {
  if (isDisabled(value)) return { mode: "disable", warnings: [] };
  return decodeConfig(coordinatorEntry, value, source);
}
