/** Decodes the common keys of the network configuration on stdin. host/config decodes the plugins' own keys. */
import * as z from "zod";
import { BoundedMap } from "../lib/bounded-map.ts";
import { JsonError, parseJson } from "../lib/json.ts";
import { decode, formatMismatches, orAbsent, parsedText, textMap } from "../lib/schema.ts";
import { insteadOf } from "../lib/try-or.ts";
import { type Ip, parseIp } from "../net/ip.ts";
import { type LinkAddress, type Mac, parseLinkAddress } from "../net/mac.ts";
import { parsePrefix } from "../net/prefix.ts";
import { CniError, ErrorCode } from "./error.ts";
import {
  type ContainerId,
  IDENTIFIER_FORM,
  IF_NAME_FORM,
  type IfName,
  parseContainerId,
  parseIfName,
  parseNetworkName,
} from "./names.ts";
import type { CniResult } from "./result.ts";
import { decodeResult } from "./result-versions.ts";
import { type CniVersion, decodeCniVersion, LATEST_VERSION } from "./version.ts";

/** A requested address; `length` if it was written as `address/length`. */
export interface IpRequest {
  readonly ip: Ip;
  readonly length?: number | undefined;
}

interface Attachment {
  readonly containerId: ContainerId;
  readonly ifName: IfName;
}

interface RuntimeConfig {
  readonly ips?: readonly IpRequest[] | undefined;
  /** Undefined if the runtime asks for none, or for one that is not Ethernet's. */
  readonly mac?: Mac | undefined;
  /** From the capability `io.kubernetes.cri.pod-annotations`. */
  readonly podAnnotations?: Readonly<Record<string, string>> | undefined;
}

export interface NetConf {
  readonly cniVersion: CniVersion;
  /** "" for a DEL whose configuration names no network. */
  readonly name: string;
  readonly type: string;
  /** The raw `ipam` object; config/ipam-conf.ts decodes it. */
  readonly ipam: unknown;
  readonly prevResult?: CniResult | undefined;
  /** Undefined if the caller sent no list; GC does nothing then. */
  readonly validAttachments?: readonly Attachment[] | undefined;
  readonly runtimeConfig: RuntimeConfig;
  readonly args: { readonly cni: { readonly ips?: readonly IpRequest[] | undefined; readonly mac?: Mac | undefined } };
  readonly raw: Readonly<Record<string, unknown>>;
}

/**
 * Largest network configuration: bytes. Every agent caches those in NetworkAttachmentDefinitions; on stdin of an ADD it
 * is counted without the runtime's additions (prevResult, runtimeConfig, args).
 * @limit
 */
export const MAX_NETWORK_CONFIG_BYTES = 65_536;

/** The form that {@link parseIpRequest} accepts, for error texts. */
export const IP_REQUEST_FORM = "an address, or an address with its length";

/** Parses `a` or `a/length`. Returns undefined if the text is neither. */
export function parseIpRequest(text: string): IpRequest | undefined {
  const ip = parseIp(text);
  return ip === undefined ? parsePrefix(text) : { ip };
}

const ipRequests = orAbsent(z.array(parsedText(parseIpRequest, IP_REQUEST_FORM)));

/** The reference library writes a list without entries as `null`. */
const attachments = z
  .array(
    z
      .object({
        containerID: parsedText(parseContainerId, IDENTIFIER_FORM),
        ifname: parsedText(parseIfName, IF_NAME_FORM),
      })
      .transform(({ containerID, ifname }): Attachment => ({ containerId: containerID, ifName: ifname })),
  )
  .nullish()
  .transform((list) => (list === null ? [] : list));

const headSchema = z.object({
  name: parsedText(parseNetworkName, IDENTIFIER_FORM),
  type: z.string(),
  "cni.dev/valid-attachments": attachments,
  /** The key in early texts of CNI 1.1. The reference library sends both. */
  "cni.dev/attachments": attachments,
});

/** Main plugins read it so: as net.ParseMAC does, and empty text is no request. */
function parseRequestedMac(text: string): LinkAddress | undefined {
  return text === "" ? { mac: undefined } : parseLinkAddress(text);
}

const macRequest = orAbsent(parsedText(parseRequestedMac, "a MAC address")).transform((address) => address?.mac);

/** The fields that the runtime adds for ADD. See {@link decodeNetConf} for DEL. */
const callSchema = z.object({
  runtimeConfig: orAbsent(
    z.object({
      ips: ipRequests,
      mac: macRequest,
      "io.kubernetes.cri.pod-annotations": orAbsent(textMap()),
    }),
  ),
  args: orAbsent(z.object({ cni: orAbsent(z.object({ ips: ipRequests, mac: macRequest })) })),
});

function decodePart<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const decoded = decode(schema, value);
  if (decoded.ok) return decoded.value;
  throw new CniError(
    ErrorCode.InvalidNetworkConfig,
    `Invalid network configuration: ${formatMismatches(decoded.mismatches)}`,
  );
}

const objectSchema = z.record(z.string(), z.unknown());

/** Returns whether the schema would change nothing: it copies each key of every request, without `__proto__`. */
function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !Object.hasOwn(value, "__proto__");
}

/** {@link parseJson} looks at every token, which takes ten times as long: only to explain the error. */
function parseFast(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return parseJson(text);
  }
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value = parseFast(text);
    if (isPlainObject(value)) return value;
    const decoded = decode(objectSchema, value);
    if (decoded.ok) return decoded.value;
    throw new CniError(ErrorCode.DecodeFailure, `Network configuration: ${formatMismatches(decoded.mismatches)}`);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new CniError(ErrorCode.DecodeFailure, `Network configuration: ${error.message}`, { cause: error });
  }
}

/** Decodes prevResult, possibly of another version than the configuration. Throws CniError 1 if unsupported. */
function decodePrevResult(value: unknown): CniResult {
  const named = typeof value === "object" && value !== null && "cniVersion" in value ? value.cniVersion : undefined;
  if (named != null && named !== "") decodeCniVersion(named, "prevResult.cniVersion");
  return decodeResult(value);
}

type CallParts = Pick<NetConf, "prevResult" | "runtimeConfig" | "args">;

function decodeCallParts(raw: Record<string, unknown>): CallParts {
  const isPlain = raw.runtimeConfig == null && raw.args == null;
  const { runtimeConfig, args } = isPlain ? {} : decodePart(callSchema, raw);
  const { ips, mac, "io.kubernetes.cri.pod-annotations": podAnnotations } = runtimeConfig ?? {};
  return {
    prevResult: raw.prevResult == null ? undefined : decodePrevResult(raw.prevResult),
    runtimeConfig: { ips, mac, podAnnotations },
    args: { cni: { ips: args?.cni?.ips, mac: args?.cni?.mac } },
  };
}

/**
 * Most configurations that are remembered, by their text. A node has a few, and calls of one network for an IPAM
 * plugin have the same text.
 */
export const MAX_REMEMBERED_CONFS = 16;

/** Longest configuration that is remembered: UTF-16 units. */
export const MAX_REMEMBERED_LENGTH = 4_096;

const remembered = new BoundedMap<string, NetConf>(MAX_REMEMBERED_CONFS);

/** Returns whether the configuration says nothing of one pod, or of others: the next call may have the same text. */
function isOfNetwork({ raw, validAttachments }: NetConf): boolean {
  return raw.prevResult == null && raw.runtimeConfig == null && raw.args == null && validAttachments === undefined;
}

/**
 * Decodes a configuration. Throws {@link CniError}: code 6 unless it is a JSON object whose version is text, 1 for an
 * unsupported version, else 7. With `forDelete` it never throws, and malformed parts count as absent; a name that no
 * network has is "". A DEL must succeed although the ADD was refused, or the configuration has changed since.
 */
export function decodeNetConf(text: string, forDelete = false): NetConf {
  const known = remembered.get(text);
  if (known !== undefined) return known;
  const conf = decodeNew(text, forDelete);
  if (!forDelete && text.length <= MAX_REMEMBERED_LENGTH && isOfNetwork(conf)) remembered.set(text, conf);
  return conf;
}

function decodeNew(text: string, forDelete: boolean): NetConf {
  const orElse = <T>(otherwise: T, decodeIt: () => T): T => insteadOf(() => forDelete, otherwise, decodeIt);
  const raw = orElse({}, () => parseObject(text));
  const cniVersion = orElse(LATEST_VERSION, () => decodeCniVersion(raw.cniVersion));
  const name = (typeof raw.name === "string" ? parseNetworkName(raw.name) : undefined) ?? "";
  const none = { "cni.dev/valid-attachments": undefined, "cni.dev/attachments": undefined };
  const head = orElse({ name, type: "", ...none }, () => decodePart(headSchema, raw));
  return {
    cniVersion,
    name: head.name,
    type: head.type,
    ipam: raw.ipam,
    validAttachments: head["cni.dev/valid-attachments"] ?? head["cni.dev/attachments"],
    ...orElse<CallParts>({ runtimeConfig: {}, args: { cni: {} } }, () => decodeCallParts(raw)),
    raw,
  };
}

/** Throws {@link CniError} code 7 if the configuration is too long. */
export function requireBounded({ raw }: Pick<NetConf, "raw">): void {
  const { prevResult: _, runtimeConfig: __, args: ___, ...own } = raw;
  const bytes = Buffer.byteLength(JSON.stringify(own));
  if (bytes <= MAX_NETWORK_CONFIG_BYTES) return;
  const found = `${bytes} bytes without prevResult, runtimeConfig and args, want at most ${MAX_NETWORK_CONFIG_BYTES}`;
  throw new CniError(ErrorCode.InvalidNetworkConfig, `Invalid network configuration: found ${found}`);
}

/** Keys of the protocol, as opposed to the plugin's own (CNI 1.1 §1). */
const PROTOCOL_KEYS: ReadonlySet<string> = new Set([
  "cniVersion",
  "name",
  "type",
  "ipam",
  "dns",
  "args",
  "capabilities",
  "runtimeConfig",
  "prevResult",
]);

/** Returns the plugin's own keys: the configuration without the keys of the protocol and those under `cni.dev/`. */
export function pluginKeys({ raw }: Pick<NetConf, "raw">): Record<string, unknown> {
  const own = Object.entries(raw).filter(([key]) => !PROTOCOL_KEYS.has(key) && !key.startsWith("cni.dev/"));
  return Object.fromEntries(own);
}
