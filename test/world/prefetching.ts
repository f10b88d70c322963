/**
 * Prefetch on a {@link TestNode}, with a door before its registry at which claims wait until a test lets them through.
 */
import { addAddresses } from "../../host/agent/ipam/add.ts";
import { identifyRequest } from "../../host/agent/ipam/pod-identity.ts";
import { Prefetcher } from "../../host/agent/ipam/prefetch/prefetcher.ts";
import type { AttachRequest } from "../../host/cni/request.ts";
import { type AnnouncedNic, ownerOfPod } from "../../host/ipam/plan-prefetch.ts";
import { formatIp } from "../../host/net/ip.ts";
import type { Claim } from "../../host/registry/registry.ts";
import { decodePod, type Pod } from "../../host/resources/pod.ts";
import { openDisk } from "../fakes/memory-journal.ts";
import { clusterIpam } from "./cluster-ipam.ts";
import { addRequest, openNode, type TestNode } from "./node.ts";
import { decodedSnapshot, ipPool, vendorConf } from "./subjects.ts";

export const POOLS = [ipPool("blue", "10.6.0.0/24", { default: true }), ipPool("green", "10.7.0.0/24")];

export interface PodParts {
  readonly uid?: string;
  readonly annotations?: Readonly<Record<string, unknown>>;
  /** `k8s.v1.cni.cncf.io/networks`. */
  readonly networks?: string;
  readonly metadata?: object;
  readonly spec?: object;
  readonly status?: object;
}

/** A pod `shop/<name>` bound to node n1 a moment ago; its UID is `uid-<name>`. */
export function podOf(name: string, parts: PodParts = {}): Pod {
  const { uid = `uid-${name}`, annotations = {}, networks, metadata, spec, status = { phase: "Pending" } } = parts;
  const texts = Object.entries(annotations).map(([key, value]) => [`ipam.vendor.io/${key}`, JSON.stringify(value)]);
  const announced = networks === undefined ? {} : { "k8s.v1.cni.cncf.io/networks": networks };
  const own = { namespace: "shop", name, uid, annotations: { ...Object.fromEntries(texts), ...announced } };
  return decodePod({ metadata: { ...own, ...metadata }, spec: { nodeName: "n1", ...spec }, status }, name);
}

/** A NIC of Berth's, unless `ipamConf` says otherwise. */
export function nic(ifName: string, parts: Partial<AnnouncedNic> = {}): AnnouncedNic {
  return { ifName, network: "lab", ipamConf: { type: "berth" }, isAsking: false, ...parts };
}

/** A claim of a pod in `closed` waits until it is let through, or its caller gives up. */
class Door {
  readonly claims: Claim[] = [];
  readonly closed = new Set<string>();
  /** Claims of these pods fail. */
  readonly broken = new Set<string>();
  /** Nothing is undone. */
  isFull = false;
  /** Waiting work does not hear that its caller gives up. */
  isDeaf = false;
  underWay = 0;
  mostAtOnce = 0;
  #opened = Promise.withResolvers<void>();

  readonly around = (method: string, args: readonly unknown[], run: () => unknown): unknown => {
    if (method === "undo" && this.isFull) return Promise.reject(new Error("the disk is full"));
    return method === "claim" ? this.#claim(args[0] as Claim, args[1] as AbortSignal | undefined, run) : run();
  };

  async #claim(claim: Claim, signal: AbortSignal | undefined, run: () => unknown): Promise<unknown> {
    this.claims.push(claim);
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.underWay);
    try {
      while (this.closed.has(claim.pod)) await orAborted(this.#opened.promise, this.isDeaf ? undefined : signal);
      if (this.broken.has(claim.pod)) throw new Error("the API server does not answer");
      return await run();
    } finally {
      this.underWay--;
    }
  }

  open(): void {
    this.closed.clear();
    this.#opened.resolve();
    this.#opened = Promise.withResolvers();
  }
}

async function orAborted(work: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  signal?.addEventListener("abort", () => aborted.reject(signal.reason));
  await Promise.race([work, aborted.promise]);
}

/** Returns the runtime's request of an ADD for the pod. */
function requestOf(pod: Pod, ifName: string, body?: object): AttachRequest {
  const runtimeConfig = { "io.kubernetes.cri.pod-annotations": pod.annotations };
  const { name } = pod;
  return addRequest(ifName, {
    ...{ pod: name, uid: ownerOfPod(pod), containerId: `c-${name}`, body: { runtimeConfig, ...body } },
  });
}

interface PrefetchingOptions {
  /** Returns the NICs of a pod by the definitions. */
  readonly nics?: (pod: Pod) => readonly AnnouncedNic[];
  readonly mayBegin?: Promise<unknown>;
}

export class Prefetching {
  readonly node: TestNode;
  readonly door: Door;
  readonly prefetcher: Prefetcher;
  readonly #deps: Parameters<typeof addAddresses>[0];

  constructor(node: TestNode, door: Door, options: PrefetchingOptions) {
    const { nics = () => [nic("eth0")], mayBegin = Promise.resolve() } = options;
    const deps = node.ipam();
    const identityOf = async (pod: Pod) => identifyRequest(requestOf(pod, "eth0"), node.snapshot);
    this.node = node;
    this.door = door;
    this.prefetcher = new Prefetcher({ ...deps, identityOf }, { nics, ready: mayBegin });
    this.#deps = { ...deps, cluster: clusterIpam({ prefetched: this.prefetcher }) };
  }

  /** The addresses that the ADD of the pod's NIC gets. */
  async add(pod: Pod, ifName = "eth0", options: { signal?: AbortSignal; body?: object } = {}): Promise<string> {
    const { signal = new AbortController().signal, body } = options;
    const { result } = await addAddresses(this.#deps, requestOf(pod, ifName, body), signal);
    return result.ips.map(({ address }) => formatIp(address.ip)).join(" ");
  }

  /** The pools and the settings are these now. */
  follow(manifests: readonly object[], settings = SETTINGS): void {
    this.node.follow(decodedSnapshot(vendorConf(settings), ...manifests));
  }

  /** `web-0 eth0 10.6.0.1 Bound c-web-0`, the last word only when a NIC has it. */
  async rows(): Promise<string[]> {
    const rows = await this.node.registry.list(undefined, 1_000);
    return rows.map((row) => `${row.pod} ${row.ifName} ${formatIp(row.ip)} ${row.state} ${row.containerId}`.trim());
  }

  /** Does the maintenance, after so long. */
  async later(milliseconds: number): Promise<void> {
    const { clock, registry } = this.node;
    await clock.advance(milliseconds);
    await registry.expire();
  }

  async close(): Promise<void> {
    this.door.open();
    await this.prefetcher.close();
    await this.node.close();
  }
}

const SETTINGS = "enableIPv6: false";

const snapshotWith = (manifests: readonly object[]) => decodedSnapshot(vendorConf(SETTINGS), ...manifests);

/** An agent on the disk. */
export async function openPrefetching(options: PrefetchingOptions = {}, disk = openDisk()): Promise<Prefetching> {
  const door = new Door();
  return new Prefetching(await openNode({ disk, around: door.around, snapshot: snapshotWith(POOLS) }), door, options);
}
