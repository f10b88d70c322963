/** Decodes one call of the container runtime from the shim's HTTP request. The shim answers VERSION itself. */

import { describeValue } from "../lib/describe.ts";
import { tryOr } from "../lib/try-or.ts";
import { formatIp, type Ip } from "../net/ip.ts";
import { type Mac, parseMac } from "../net/mac.ts";
import { CniError, ErrorCode } from "./error.ts";
import {
  type ContainerId,
  IDENTIFIER_FORM,
  IF_NAME_FORM,
  type IfName,
  parseContainerId,
  parseIfName,
} from "./names.ts";
import {
  decodeNetConf,
  IP_REQUEST_FORM,
  type IpRequest,
  type NetConf,
  parseIpRequest,
  requireBounded,
} from "./net-conf.ts";

/**
 * `type` of the coordinator in network definitions: names of its executable. Another product may own the first one on
 * a host.
 */
export const COORDINATOR_TYPES = ["coordinator", "berth-coordinator"] as const;

/** The same of the ifacer. */
export const IFACER_TYPES = ["ifacer", "berth-ifacer"] as const;

interface Call {
  /** Name of the plugin, or of the driver of another runtime. */
  readonly plugin: string;
  readonly netConf: NetConf;
  readonly args: ReadonlyMap<string, string>;
  readonly path: string;
}

/** ADD and CHECK. */
export interface AttachRequest extends Call {
  readonly command: "ADD" | "CHECK";
  readonly containerId: ContainerId;
  readonly ifName: IfName;
  readonly netns: string;
  readonly netnsOverride: boolean;
}

/** DEL. The netns may be gone. */
export interface DetachRequest extends Call {
  readonly command: "DEL";
  readonly containerId: ContainerId;
  readonly ifName: IfName;
  readonly netns?: string | undefined;
  readonly netnsOverride: boolean;
}

/** GC and STATUS, which concern the node. */
export interface NodeRequest extends Call {
  readonly command: "GC" | "STATUS";
}

export type CniRequest = AttachRequest | DetachRequest | NodeRequest;

/** The pod's identity, which Kubernetes runtimes pass in CNI_ARGS. */
interface PodArgs {
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly uid?: string | undefined;
  readonly infraContainerId?: string | undefined;
}

export interface RequestedIp {
  readonly ip: Ip;
  readonly length?: number | undefined;
  readonly source:
    | "runtimeConfig.ips"
    | "args.cni.ips"
    | "CNI_ARGS IP"
    | `annotation ${string}`
    | `IPAMClaim ${string}`
    | `ReservedIP ${string}`;
  /** A ReservedIP has it for the pod, which keeps it from all others. */
  readonly isReserved?: boolean;
  /** Another address will do if another owner has this one: it was not requested. */
  readonly isPreference?: boolean;
}

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** The CNI plugins, by the names of their executables. */
export const PLUGINS = ["berth", "coordinator", "ifacer"] as const;

function refuse(message: string): never {
  throw new CniError(ErrorCode.InvalidEnvironment, message);
}

/** Headers by the variables that they carry. Made once: every request reads some twenty. */
const headerNames = new Map<string, string>();

function headerOf(variable: string): string {
  const known = headerNames.get(variable);
  if (known !== undefined) return known;
  const name = variable.toLowerCase().replaceAll("_", "-");
  headerNames.set(variable, name);
  return name;
}

/**
 * The header that carries an environment variable (docs/develop/shim-protocol.md); an empty variable is as good as
 * none.
 */
function readVariable(headers: Headers, variable: string): string | undefined {
  const value = headers[headerOf(variable)];
  if (Array.isArray(value)) refuse(`Environment variable ${variable} was given ${value.length} times`);
  return value === "" ? undefined : value;
}

/** The variables that each command needs (CNI 1.1, section 2, "Parameters"). */
const REQUIRED: Readonly<Record<CniRequest["command"], readonly string[]>> = {
  ADD: ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"],
  CHECK: ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"],
  DEL: ["CNI_CONTAINERID", "CNI_IFNAME"],
  GC: ["CNI_PATH"],
  STATUS: ["CNI_PATH"],
};

function readCommand(headers: Headers): CniRequest["command"] {
  const command = readVariable(headers, "CNI_COMMAND");
  const known = Object.keys(REQUIRED) as CniRequest["command"][];
  const found = known.find((name) => name === command);
  if (found !== undefined) return found;
  return refuse(`Environment variable CNI_COMMAND: found ${describeValue(command)}, want one of ${known.join(", ")}`);
}

function requireVariables(headers: Headers, command: CniRequest["command"]): void {
  const missing = REQUIRED[command].filter((variable) => readVariable(headers, variable) === undefined);
  if (missing.length === 0) return;
  refuse(
    `Missing environment variable${missing.length > 1 ? "s" : ""} ${missing.join(", ")}: ${command} needs ${missing.length > 1 ? "them" : "it"}`,
  );
}

function requireParsed<T>(headers: Headers, variable: string, parse: (text: string) => T | undefined, form: string): T {
  const text = readVariable(headers, variable);
  const value = parse(text ?? "");
  return value ?? refuse(`Environment variable ${variable}: found ${describeValue(text)}, want ${form}`);
}

/** The shim writes bytes that no header can have, and "%", as "%" and two hexadecimal digits. */
function decodeIfName(text: string): string {
  return tryOr(() => decodeURIComponent(text), text);
}

/**
 * Asks plugins to ignore unknown keys, which Berth always does. Multus sets it to `true` before the runtime's
 * arguments, in which containerd sets it to `1`.
 */
const IGNORE_UNKNOWN = "IgnoreUnknown";

/**
 * Decodes `K=V;K=V`; a value may contain `=`. A malformed piece or a second value of a key is refused, or ignored with
 * `forDelete`: a DEL must succeed although the ADD was refused for it. The first value of {@link IGNORE_UNKNOWN} is
 * kept.
 */
function decodeArgs(text: string | undefined, forDelete: boolean): ReadonlyMap<string, string> {
  const args = new Map<string, string>();
  for (const piece of text?.split(";") ?? []) {
    const equals = piece.indexOf("=");
    const [key, value] = [piece.slice(0, Math.max(equals, 0)), piece.slice(equals + 1)];
    const isRepeated = (args.get(key) ?? value) !== value;
    if (key !== "" && !isRepeated) args.set(key, value);
    else if (!forDelete && key !== IGNORE_UNKNOWN) {
      const wanted = isRepeated ? `one value for ${describeValue(key)}` : "KEY=VALUE";
      refuse(`Environment variable CNI_ARGS: found the piece ${describeValue(piece)}, want ${wanted}`);
    }
  }
  return args;
}

/** Returns whether the variable is set to a value that the reference library takes for true. */
function readOverride(headers: Headers): boolean {
  return /^(?:1|true)$/i.test(readVariable(headers, "CNI_NETNS_OVERRIDE") ?? "");
}

/**
 * Decodes a request; `headers` have lower-case names as `node:http` gives them.
 * Throws {@link CniError}: code 4 naming every missing or the first malformed variable, else what {@link
 * decodeNetConf} throws.
 */
export function decodeRequest(plugin: string, headers: Headers, body: Buffer | string): CniRequest {
  const command = readCommand(headers);
  requireVariables(headers, command);
  const args = decodeArgs(readVariable(headers, "CNI_ARGS"), command === "DEL");
  const path = readVariable(headers, "CNI_PATH") ?? "";
  if (command === "GC" || command === "STATUS") {
    return { plugin, command, args, path, netConf: decodeNetConf(String(body)) };
  }
  const attachment = {
    containerId: requireParsed(headers, "CNI_CONTAINERID", parseContainerId, IDENTIFIER_FORM),
    ifName: requireParsed(headers, "CNI_IFNAME", (text) => parseIfName(decodeIfName(text)), IF_NAME_FORM),
    netnsOverride: readOverride(headers),
  };
  const call = { plugin, args, path, netConf: decodeNetConf(String(body), command === "DEL") };
  const netns = readVariable(headers, "CNI_NETNS");
  if (command === "DEL") return { ...call, ...attachment, command, netns };
  if (command === "ADD") requireBounded(String(body), call.netConf);
  return { ...call, ...attachment, command, netns: netns ?? "" };
}

/** Returns whether the request is a DEL of an attachment that no ADD can have made. */
export function hasNothingToDelete(headers: Headers): boolean {
  if (headers[headerOf("CNI_COMMAND")] !== "DEL") return false;
  const { containerId, ifName } = describeRequest(headers);
  return parseContainerId(containerId) === undefined || parseIfName(ifName) === undefined;
}

/** Returns the pod's identity in CNI_ARGS (`K8S_POD_*`). Empty values count as unset. */
export function decodePodArgs(args: ReadonlyMap<string, string>): PodArgs {
  const find = (key: string) => args.get(`K8S_POD_${key}`) || undefined;
  return {
    namespace: find("NAMESPACE"),
    name: find("NAME"),
    uid: find("UID"),
    infraContainerId: find("INFRA_CONTAINER_ID"),
  };
}

/**
 * Returns what the variables of a request say, which may be one that cannot be decoded. Never throws. A text is empty
 * where the request has none.
 */
export function describeRequest(headers: Headers) {
  const find = (variable: string): string => {
    const value = headers[headerOf(variable)];
    return typeof value === "string" ? value : "";
  };
  return {
    ...decodePodArgs(decodeArgs(find("CNI_ARGS"), true)),
    command: find("CNI_COMMAND"),
    containerId: find("CNI_CONTAINERID"),
    ifName: decodeIfName(find("CNI_IFNAME")),
  };
}

function refuseIpRequest(source: RequestedIp["source"], found: string, wanted: string): never {
  throw new CniError(ErrorCode.InvalidNetworkConfig, `Requested address in ${source}: found ${found}, want ${wanted}`);
}

/** Returns the addresses of `IP=`, which are separated by commas. */
function ipRequestsInArgs(args: ReadonlyMap<string, string>): IpRequest[] {
  const pieces = args.get("IP")?.split(",") ?? [];
  return pieces.map(
    (piece) => parseIpRequest(piece) ?? refuseIpRequest("CNI_ARGS IP", describeValue(piece), IP_REQUEST_FORM),
  );
}

/**
 * Returns all addresses that the request asks for, without repetitions, in the order runtimeConfig, args, CNI_ARGS.
 * Throws {@link CniError} code 7 with the source of an address that is malformed or requested with two lengths.
 */
export function requestedIps(request: CniRequest): RequestedIp[] {
  const { runtimeConfig, args } = request.netConf;
  const bySource: [RequestedIp["source"], readonly IpRequest[]][] = [
    ["runtimeConfig.ips", runtimeConfig.ips ?? []],
    ["args.cni.ips", args.cni.ips ?? []],
    ["CNI_ARGS IP", ipRequestsInArgs(request.args)],
  ];
  const requested = new Map<string, RequestedIp>();
  for (const [source, wanted] of bySource) {
    for (const { ip, length } of wanted) {
      const key = formatIp(ip);
      const before = requested.get(key);
      if (before?.length !== undefined && length !== undefined && before.length !== length) {
        refuseIpRequest(source, `${key}/${length}`, `${key}/${before.length} as in ${before.source}`);
      }
      requested.set(key, { ip, source, ...before, length: before?.length ?? length });
    }
  }
  return [...requested.values()];
}

/**
 * Returns the MAC address that the request itself asks for. Throws {@link CniError} code 7 for a malformed one in
 * CNI_ARGS.
 */
export function requestedMac({ netConf: { runtimeConfig, args }, ...request }: CniRequest): Mac | undefined {
  const text = request.args.get("MAC") ?? "";
  const mac = runtimeConfig.mac ?? args.cni.mac ?? parseMac(text);
  if (mac !== undefined || text === "") return mac;
  const wanted = "a MAC address of six octets";
  throw new CniError(
    ErrorCode.InvalidNetworkConfig,
    `Requested MAC address in CNI_ARGS MAC: found ${describeValue(text)}, want ${wanted}`,
  );
}
