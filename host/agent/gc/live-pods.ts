/**
 * What the collector believes about pods and network namespaces: only what it has just been told, never a cache.
 * Effects: calls of the API server; looks into network namespaces.
 */
import { stat } from "node:fs/promises";
import { dirname } from "node:path";
import { ConfigError } from "../../config/config-error.ts";
import { type NetnsStatus, type PodStatus, podFacts } from "../../ipam/leaks.ts";
import { EINVAL, ENOENT, ENOTTY } from "../../kernel/errno.ts";
import { NetlinkError } from "../../kernel/netlink/error.ts";
import { NetnsError } from "../../kernel/netns.ts";
import { observeLink } from "../../kernel/observe-link.ts";
import { ApiError, isNotFound, type KubeApi } from "../../kubernetes/kube-api.ts";
import { listPages } from "../../kubernetes/list.ts";
import type { Log } from "../../lib/log.ts";
import { equalIp, type Ip } from "../../net/ip.ts";
import type { Allocation } from "../../registry/registry.ts";
import { decodePod } from "../../resources/pod.ts";

/** How long one question of a sweep is tried: milliseconds. Nobody waits for it, and the next sweep asks again. @limit */
export const SWEEP_PATIENCE_MS = 3_000;

/** A sweep that misses more pods than this reads all of the node in one LIST instead of one by one. @limit */
export const MAX_SINGLE_POD_READS = 16;

/** Pods on one page of such a LIST: some 10 KB each. @limit */
export const POD_PAGE = 100;

/** A pod by its name, as a row has it. */
export interface PodName {
  readonly namespace: string;
  readonly pod: string;
}

export interface PodReaderTools {
  readonly api: KubeApi;
  /** This node. */
  readonly node: string;
  readonly log: Log;
  readonly signal: AbortSignal;
}

const ABSENT: PodStatus = { kind: "absent" };
const UNKNOWN: PodStatus = { kind: "unknown" };

export function podKey({ namespace, pod }: PodName): string {
  return `${namespace}/${pod}`;
}

/** One GET. Rejects when the API server cannot be asked; "unknown" when it refuses to tell, or what it tells cannot be understood. */
export async function readPod({ api, signal, log }: PodReaderTools, name: PodName): Promise<PodStatus> {
  const path = `/api/v1/namespaces/${encodeURIComponent(name.namespace)}/pods/${encodeURIComponent(name.pod)}`;
  try {
    return decodeSighting(await api.call({ method: "GET", path, patienceMs: SWEEP_PATIENCE_MS, signal }), log);
  } catch (error) {
    if (isNotFound(error)) return ABSENT;
    if (!(error instanceof ApiError)) throw error;
    log.warn({ pod: podKey(name), reason: error.message }, "A pod cannot be read; its addresses stay");
    return UNKNOWN;
  }
}

/**
 * Each pod by its {@link podKey}: a GET each when they are few, else one consistent LIST of the node's pods. A pod that has an address
 * of this node is in that list or gone.
 */
export async function readPods(
  tools: PodReaderTools,
  names: readonly PodName[],
): Promise<ReadonlyMap<string, PodStatus>> {
  const wanted = new Map(names.map((name) => [podKey(name), name]));
  if (wanted.size > MAX_SINGLE_POD_READS) return listPods(tools);
  const found = new Map<string, PodStatus>();
  for (const [key, name] of wanted) found.set(key, await readPod(tools, name));
  return found;
}

async function listPods({ api, node, signal, log }: PodReaderTools): Promise<ReadonlyMap<string, PodStatus>> {
  const found = new Map<string, PodStatus>();
  const query = { fieldSelector: `spec.nodeName=${node}`, limit: POD_PAGE };
  for await (const { items } of listPages(api, {
    path: "/api/v1/pods",
    query,
    patienceMs: SWEEP_PATIENCE_MS,
    signal,
  })) {
    for (const item of items) found.set(nameOf(item), decodeSighting(item, log));
  }
  return found;
}

function decodeSighting(object: unknown, log: Log): PodStatus {
  try {
    return { kind: "present", pod: podFacts(decodePod(object, `pod ${nameOf(object)}`)) };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    log.warn({ err: error }, "A pod cannot be understood; its addresses stay");
    return UNKNOWN;
  }
}

function nameOf(object: unknown): string {
  const { namespace = "", name = "" } = metadataOf(object);
  return podKey({ namespace: String(namespace), pod: String(name) });
}

function metadataOf(object: unknown): Readonly<Record<string, unknown>> {
  const metadata = isRecord(object) ? object.metadata : undefined;
  return isRecord(metadata) ? metadata : {};
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

/** What is known of the NIC that an address was given to. */
export type AttachedNic = Pick<Allocation, "netns" | "ifName" | "ip">;

/**
 * Whether the network namespace of a NIC is still there, and the NIC still has its address. A path below a folder that is missing tells
 * nothing: the agent may see another /run than the runtime, or another /proc.
 */
export async function seeNetns({ netns, ifName, ip }: AttachedNic): Promise<NetnsStatus> {
  if (netns === undefined || netns === "") return "unknown";
  const found = await isThere(netns);
  if (found === undefined) return "unknown";
  if (found) return hasAddress(netns, ifName, ip) ? "inUse" : "there";
  return (await isThere(dirname(netns))) === true ? "gone" : "unknown";
}

/** False also where the path is no namespace any more. What the kernel cannot tell now keeps the address. */
function hasAddress(netns: string, ifName: string, ip: Ip): boolean {
  try {
    return observeLink(netns, ifName)?.addresses.some((address) => equalIp(address.ip, ip)) ?? false;
  } catch (error) {
    if (error instanceof NetlinkError) return true;
    if (error instanceof NetnsError) return !NO_NAMESPACE.has(error.errno);
    throw error;
  }
}

/** As the kernel answers for a path that leads into no network namespace. */
const NO_NAMESPACE: ReadonlySet<number> = new Set([ENOENT, EINVAL, ENOTTY]);

/** Undefined when the kernel does not tell. */
async function isThere(path: string): Promise<boolean | undefined> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
    return isMissing ? false : undefined;
  }
}
