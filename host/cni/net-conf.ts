/**
 * The network configuration on a plugin's stdin: what every plugin reads from it.
 * Called by the request decoder; the plugin's own keys stay raw and are decoded by host/config.
 * Effects: none.
 */
import type { Ip } from "../net/ip.ts";
import type { ContainerId, IfName } from "./names.ts";
import type { CniResult } from "./result.ts";
import type { CniVersion } from "./version.ts";

/** An address that somebody asks for; `length` when it was written as `address/length`. */
export interface AskedIp {
  readonly ip: Ip;
  readonly length?: number | undefined;
}

export interface Attachment {
  readonly containerId: ContainerId;
  readonly ifName: IfName;
}

export interface NetConf {
  readonly cniVersion: CniVersion;
  readonly name: string;
  readonly type: string;
  /** The `ipam` object as it came; decoded by config/ipam-conf.ts. */
  readonly ipam: unknown;
  readonly prevResult?: CniResult | undefined;
  /** Absent: the caller sent no list, and GC has nothing to do. */
  readonly validAttachments?: readonly Attachment[] | undefined;
  readonly runtimeConfig: {
    readonly ips?: readonly AskedIp[] | undefined;
    readonly mac?: string | undefined;
    readonly podAnnotations?: Readonly<Record<string, string>> | undefined;
  };
  readonly args: { readonly cni: { readonly ips?: readonly AskedIp[] | undefined } };
  readonly raw: Readonly<Record<string, unknown>>;
}

/** Throws {@link CniError}: code 6 for malformed JSON, 1 for the version, 7 for all else. */
export function decodeNetConf(_text: string): NetConf {
  throw new Error("decodeNetConf is under construction");
}
