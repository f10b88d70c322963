/** Decodes one call of the container runtime from the shim's HTTP request. The shim answers VERSION itself. */

import { describeValue } from "../lib/describe.ts";
import { tryOr } from "../lib/try-or.ts";
import { formatIp, type Ip } from "../net/ip.ts";
import { type Mac, parseLinkAddress } from "../net/mac.ts";
import { CniError, ErrorCode } from "./error.ts";
import {
  type ContainerId,
  IDENTIFIER_FORM,
  IF_NAME_FORM,
  type IfName,
  parseContainerId,
  parseIfName,
} from "./names.ts";
import { decodeNetConf, IP_REQUEST_FORM, type IpRequest, type NetConf, parseIpRequest } from "./net-conf.ts";

/** `type` of the coordinator in definitions: its executable's names. Another product may own the first. */
export const COORDINATOR_TYPES = ["coordinator", "berth-coordinator"] as const;

/** The same of the ifacer. */
export const IFACER_TYPES = ["ifacer", "berth-ifacer"] as const;

export const isCoordinator = (type: unknown): boolean => COORDINATOR_TYPES.some((each) => each === type);
export const isIfacer = (type: unknown): boolean => IFACER_TYPES.some((each) => each === type);

interface Call {
  /** Name of the plugin, or of the driver of another runtime. */
  readonly plugin: string;
  readonly netConf: NetConf;
  readonly args: ReadonlyMap<string, string>;
}

/** ADD and CHECK. */
export interface AttachRequest extends Call {
  readonly command: "ADD" | "CHECK";
  readonly containerId: ContainerId;
  readonly ifName: IfName;
  readonly netns: string;
  /** The cookie of the namespace, which the caller of a plugin's ADD reads; undefined if it is unknown. */
  readonly netnsCookie?: bigint | undefined;
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
  /** The address space in which a ReservedIP has it for the pod, which keeps it from all others. */
  readonly reservedIn?: string;
  /** Another address will do if another owner has this one: it was not requested. */
  readonly isPreference?: boolean;
}

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** The CNI plugins, by the names of their executables. */
export const PLUGINS = ["berth", "coordinator", "ifacer"] as const;

function refuse(message: string): never {
  throw new CniError(ErrorCode.InvalidEnvironment, message);
}

type Command = CniRequest["command"];

const VARIABLES = [
  "CNI_COMMAND",
  "CNI_CONTAINERID",
  "CNI_NETNS",
  "CNI_IFNAME",
  "CNI_ARGS",
  "CNI_PATH",
  "CNI_NETNS_OVERRIDE",
] as const;

type Variable = (typeof VARIABLES)[number];
type Variables = { [name in Variable]?: string };

/** The header of each variable (docs/develop/shim-protocol.md), which the shim sends at most once. */
const HEADERS = VARIABLES.map((name) => ({ name, header: name.toLowerCase().replaceAll("_", "-") }));

/** An empty variable is as good as none. */
function readVariables(headers: Headers): Variables {
  const variables: Variables = {};
  for (const { name, header } of HEADERS) {
    const value = headers[header];
    if (typeof value === "string" && value !== "") variables[name] = value;
  }
  return variables;
}

/** The variables that each command needs (CNI 1.1, section 2, "Parameters"); of a DEL see {@link decodeRequest}. */
const REQUIRED: Readonly<Record<Command, readonly Variable[]>> = {
  ADD: ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"],
  CHECK: ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"],
  DEL: [],
  GC: ["CNI_PATH"],
  STATUS: ["CNI_PATH"],
};

/** The commands of CNI that a runtime sends to the agent. */
export const COMMANDS = Object.keys(REQUIRED) as Command[];

function refuseVariable(variable: Variable, found: string | undefined, wanted: string): never {
  return refuse(`Environment variable ${variable}: found ${describeValue(found)}, want ${wanted}`);
}

/** Returns the command, all of whose variables are there. */
function requireCommand(variables: Variables): Command {
  const command = variables.CNI_COMMAND as Command;
  if (!COMMANDS.includes(command)) refuseVariable("CNI_COMMAND", command, `one of ${COMMANDS.join(", ")}`);
  const missing = REQUIRED[command].filter((variable) => variables[variable] === undefined);
  if (missing.length === 0) return command;
  return refuse(
    `Missing environment variable${missing.length > 1 ? "s" : ""} ${missing.join(", ")}: ${command} needs ${missing.length > 1 ? "them" : "it"}`,
  );
}

/** The shim writes bytes that no header can have, and "%", as "%" and two hexadecimal digits. */
function decodeIfName(text = ""): string {
  return text.includes("%") ? tryOr(() => decodeURIComponent(text), text) : text;
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

/** Values of CNI_NETNS_OVERRIDE that the reference library takes for true. */
const TRUE = /^(?:1|true)$/i;

/**
 * Decodes a request; `headers` have lower-case names as `node:http` gives them. Returns undefined for a DEL of an
 * attachment that no ADD can have made. Throws {@link CniError}: code 4 naming every missing or the first malformed
 * variable, else what {@link decodeNetConf} throws.
 */
export function decodeRequest(plugin: string, headers: Headers, body: string): CniRequest | undefined {
  const variables = readVariables(headers);
  const { CNI_CONTAINERID: givenId = "", CNI_IFNAME: givenName, CNI_NETNS: netns } = variables;
  const command = requireCommand(variables);
  const containerId = parseContainerId(givenId);
  const ifName = parseIfName(decodeIfName(givenName));
  if (command === "DEL" && (containerId === undefined || ifName === undefined)) return undefined;
  const call = { plugin, args: decodeArgs(variables.CNI_ARGS, command === "DEL") };
  if (command === "GC" || command === "STATUS") return { ...call, command, netConf: decodeNetConf(body) };
  if (containerId === undefined) return refuseVariable("CNI_CONTAINERID", givenId, IDENTIFIER_FORM);
  if (ifName === undefined) return refuseVariable("CNI_IFNAME", givenName, IF_NAME_FORM);
  const netnsOverride = TRUE.test(variables.CNI_NETNS_OVERRIDE ?? "");
  const attachment = { ...call, containerId, ifName, netnsOverride, netConf: decodeNetConf(body, command === "DEL") };
  if (command === "DEL") return { ...attachment, command, netns };
  return { ...attachment, command, netns: netns ?? "" };
}

/** Returns the pod in CNI_ARGS (`K8S_POD_*`), which Kubernetes runtimes pass. Empty values count as unset. */
export function decodePodArgs(args: ReadonlyMap<string, string>) {
  return {
    namespace: args.get("K8S_POD_NAMESPACE") || undefined,
    name: args.get("K8S_POD_NAME") || undefined,
    uid: args.get("K8S_POD_UID") || undefined,
  };
}

/**
 * Returns the variables of a request, which may be one that cannot be decoded. Never throws. A text is empty where the
 * request has none.
 */
export function describeRequest(headers: Headers) {
  const { CNI_COMMAND: command = "", CNI_CONTAINERID: containerId = "", CNI_IFNAME, CNI_ARGS } = readVariables(headers);
  return { ...decodePodArgs(decodeArgs(CNI_ARGS, true)), command, containerId, ifName: decodeIfName(CNI_IFNAME) };
}

function refuseIpRequest(source: RequestedIp["source"], found: string, wanted: string): never {
  throw new CniError(ErrorCode.InvalidNetworkConfig, `Requested address in ${source}: found ${found}, want ${wanted}`);
}

function requireIpRequest(text: string): IpRequest {
  return parseIpRequest(text) ?? refuseIpRequest("CNI_ARGS IP", describeValue(text), IP_REQUEST_FORM);
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
    ["CNI_ARGS IP", request.args.get("IP")?.split(",").map(requireIpRequest) ?? []],
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

/** Returns the MAC that the request itself asks for. Throws {@link CniError} 7 for a malformed one in CNI_ARGS. */
export function requestedMac({ netConf: { runtimeConfig, args }, ...request }: CniRequest): Mac | undefined {
  const text = request.args.get("MAC") ?? "";
  const mac = runtimeConfig.mac ?? args.cni.mac ?? parseLinkAddress(text)?.mac;
  if (mac !== undefined || text === "") return mac;
  const found = `found ${describeValue(text)}, want a MAC address of six octets`;
  throw new CniError(ErrorCode.InvalidNetworkConfig, `Requested MAC address in CNI_ARGS MAC: ${found}`);
}
