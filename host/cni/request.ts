/**
 * One call of the container runtime, from the shim's HTTP request to checked values.
 * Called by the agent's dispatcher before anything else; VERSION never comes here, the shim answers it.
 * Effects: none.
 */
import type { Ip } from "../net/ip.ts";
import type { ContainerId, IfName } from "./names.ts";
import type { NetConf } from "./net-conf.ts";

export type PluginName = "berth" | "coordinator" | "ifacer";

interface Call {
  readonly plugin: PluginName;
  readonly netConf: NetConf;
  readonly args: ReadonlyMap<string, string>;
  readonly path: string;
}

/** ADD and CHECK: everything is there. */
export interface AttachRequest extends Call {
  readonly command: "ADD" | "CHECK";
  readonly containerId: ContainerId;
  readonly ifName: IfName;
  readonly netns: string;
  readonly netnsOverride: boolean;
}

/** DEL: the netns may be gone. */
export interface DetachRequest extends Call {
  readonly command: "DEL";
  readonly containerId: ContainerId;
  readonly ifName: IfName;
  readonly netns?: string | undefined;
  readonly netnsOverride: boolean;
}

/** GC and STATUS speak of the node, not of one attachment. */
export interface NodeRequest extends Call {
  readonly command: "GC" | "STATUS";
}

export type CniRequest = AttachRequest | DetachRequest | NodeRequest;

/** Who the pod is, as Kubernetes runtimes say it in CNI_ARGS. */
export interface PodArgs {
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly uid?: string | undefined;
  readonly infraContainerId?: string | undefined;
}

export interface RequestedIp {
  readonly ip: Ip;
  readonly length?: number | undefined;
  readonly source: "runtimeConfig.ips" | "args.cni.ips" | "CNI_ARGS IP";
}

/**
 * Decodes a request; `headers` have lower-case names as `node:http` gives them.
 * Throws {@link CniError}: code 4 naming every missing or malformed variable, else what {@link decodeNetConf} throws.
 */
export function decodeRequest(
  _plugin: string,
  _headers: Readonly<Record<string, string | string[] | undefined>>,
  _body: Buffer | string,
): CniRequest {
  throw new Error("decodeRequest is under construction");
}

/** The pod's identity in CNI_ARGS (`K8S_POD_*`); what is not set or empty is absent. */
export function decodePodArgs(_args: ReadonlyMap<string, string>): PodArgs {
  throw new Error("decodePodArgs is under construction");
}

/**
 * All addresses that this request asks for, each once, in the order runtimeConfig, args, CNI_ARGS.
 * Throws {@link CniError} code 7 naming the field of a malformed one.
 */
export function requestedIps(_request: CniRequest): RequestedIp[] {
  throw new Error("requestedIps is under construction");
}
