/** What happens to many agents at once, and the figures of it. Whether the figures are good enough is for the tests to say. */
import { setTimeout as sleep } from "node:timers/promises";
import { CniError, ErrorCode } from "../../../host/cni/error.ts";
import { type ApiUse, sumUse, useSince } from "../cluster/watched-api.ts";
import { inParallel } from "../parallel.ts";
import { daemonCpuMs } from "../statistics.ts";
import { createBare, deleteBare } from "./bare.ts";
import { type AttachedPod, attachPod, createPod, deletePod, detachPod, type SimPod } from "./pods.ts";
import type { World } from "./world.ts";

export interface ClaimRate {
  readonly claimsPerSecond: number;
  readonly barePerSecond: number;
  readonly addMs: readonly number[];
  readonly bareMs: readonly number[];
  readonly use: ApiUse;
  /** Processor time of API server and etcd for one claim, and for one bare create. */
  readonly serverMs: { readonly claim: number; readonly bare: number };
  /** Processor time of this process, agents, their threads, and the test, for one claim, and for one bare create. */
  readonly ownMs: { readonly claim: number; readonly bare: number };
}

/** How many calls for objects of pods are under way while nothing is measured. */
const PODS_AT_ONCE = 32;
/** How long the last release may take to be known everywhere. */
const EMPTY_MS = 60_000;
/** A kubelet tries again about once a second. */
const RETRY_MS = 1_000;
const MAX_RETRIES = 20;
/** How long a runtime takes from the pod's binding to its ADD. */
const SANDBOX_MS = 300;

/** `count` pods that are there, spread over all nodes. */
export function createPods(world: World, count: number, pool?: string, prefix = "pod"): Promise<SimPod[]> {
  const { nodes, plane } = world;
  const annotations = pool === undefined ? {} : { "ipam.vendor.io/ippool": JSON.stringify({ ipv4: [pool] }) };
  return inParallel(Array.from({ length: count }), PODS_AT_ONCE, (_, index) => {
    const node = nodes[index % nodes.length];
    if (node === undefined) throw new RangeError("A world without nodes");
    return createPod(plane.client, { name: `${prefix}-${index}`, node, annotations });
  });
}

/** DEL and the end of all pods' objects. */
export async function endPods(world: World, pods: readonly AttachedPod[]): Promise<number[]> {
  return inParallel(pods, PODS_AT_ONCE, async (pod) => {
    const tookMs = await detachPod(pod, world.history);
    await deletePod(world.plane.client, pod);
    return tookMs;
  });
}

/** Claims and bare creates in turns of `batch`, each with `atOnce` under way: what disturbs one disturbs the other. */
export async function measureClaims(
  world: World,
  pods: readonly SimPod[],
  { batch, atOnce }: { batch: number; atOnce: number },
): Promise<ClaimRate & { readonly attached: readonly AttachedPod[] }> {
  const attached: AttachedPod[] = [];
  const bareMs: number[] = [];
  const uses: ApiUse[] = [];
  const [claims, creates] = [new Meter(world), new Meter(world)];
  for (let first = 0; first < pods.length; first += batch) {
    const some = pods.slice(first, first + batch);
    await creates.run(async () =>
      bareMs.push(...(await createBare(world.nodes, { first, count: some.length, atOnce }))),
    );
    await world.history.caughtUp();
    const before = sumUse([world.use()]);
    await claims.run(async () =>
      attached.push(...(await inParallel(some, atOnce, (pod) => attachPod(pod, world.history)))),
    );
    uses.push(useSince(world.use(), before));
    await world.history.caughtUp();
  }
  await deleteBare(world.nodes, pods.length, atOnce);
  return {
    claimsPerSecond: (pods.length * 1000) / claims.wallMs,
    barePerSecond: (pods.length * 1000) / creates.wallMs,
    serverMs: { claim: claims.serverMs / pods.length, bare: creates.serverMs / pods.length },
    ownMs: { claim: claims.ownMs / pods.length, bare: creates.ownMs / pods.length },
    addMs: attached.map(({ tookMs }) => tookMs),
    bareMs,
    use: sumUse(uses),
    attached,
  };
}

/** How often each reason occurred, without what differs between pods. */
export function countReasons(refused: readonly Error[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { message } of refused) {
    const reason = message.replaceAll(/[0-9]+/g, "N").slice(0, 200);
    counts[reason] = (counts[reason] ?? 0) + 1;
  }
  return counts;
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await work();
  return performance.now() - startMs;
}

/** Time on the clock and on the processors while something is done. */
class Meter {
  readonly #pids: readonly number[];
  wallMs = 0;
  serverMs = 0;
  ownMs = 0;

  constructor({ plane }: World) {
    this.#pids = plane.pids;
  }

  async run(work: () => Promise<unknown>): Promise<void> {
    const serverMs = (): number => this.#pids.reduce((sum, pid) => sum + daemonCpuMs(pid), 0);
    const [own, server] = [process.cpuUsage(), serverMs()];
    this.wallMs += await timed(work);
    const { user, system } = process.cpuUsage(own);
    this.ownMs += (user + system) / 1000;
    this.serverMs += serverMs() - server;
  }
}

export interface Lives {
  readonly addMs: readonly number[];
  readonly delMs: readonly number[];
  /** ADDs that failed for something that may pass, and were tried again. */
  readonly retries: number;
  /** From the first pod's binding to the last one's end. */
  readonly seconds: number;
  readonly use: ApiUse;
}

export interface LifeOptions {
  readonly count: number;
  /** How many pods are bound in a second, evenly: what a scheduler sends, however busy the agents are. */
  readonly perSecond: number;
  readonly prefix: string;
}

/**
 * `count` pods from the binding to the end: the object, the time of the sandbox, the ADD, the DEL, the object's end; then the last
 * addresses' rest. With a network definition on the nodes the agents claim while the sandbox is made.
 */
export async function livePods(world: World, { count, perSecond, prefix }: LifeOptions): Promise<Lives> {
  const { nodes, plane, history } = world;
  const before = sumUse([world.use()]);
  const [addMs, delMs]: [number[], number[]] = [[], []];
  let retries = 0;
  const live = async (index: number): Promise<void> => {
    await sleep((index * 1000) / perSecond);
    const node = nodes[index % nodes.length];
    if (node === undefined) throw new RangeError("A world without nodes");
    const pod = await createPod(plane.client, { name: `${prefix}-${index}`, node });
    await sleep(SANDBOX_MS);
    const attached = await attachAgain(world, pod, () => retries++);
    addMs.push(attached.tookMs);
    delMs.push(await detachPod(attached, history));
    await deletePod(plane.client, pod);
  };
  const tookMs = await timed(() => Promise.all(Array.from({ length: count }, (_, index) => live(index))));
  await world.empty(EMPTY_MS);
  return { addMs, delMs, retries, seconds: tookMs / 1000, use: useSince(world.use(), before) };
}

/** What became of what all agents of the world claimed ahead, so far. */
export function sumPrefetches({ nodes }: World): {
  readonly adds: number;
  readonly used: number;
  readonly waited: number;
} {
  const all = nodes.map(({ cluster }) => cluster.prefetcher.stats());
  const sum = (key: "adds" | "used" | "waited"): number => all.reduce((total, stats) => total + stats[key], 0);
  return { adds: sum("adds"), used: sum("used"), waited: sum("waited") };
}

export interface Attached {
  readonly attached: readonly AttachedPod[];
  readonly refused: readonly Error[];
  /** ADDs that failed for something that may pass, and were tried again. */
  readonly retries: number;
  readonly seconds: number;
  readonly use: ApiUse;
}

/** A failure other than an exhausted pool is tried again, as a kubelet does it. Rejects with the final failure. */
async function attachAgain({ history }: World, pod: SimPod, onRetry: () => void): Promise<AttachedPod> {
  for (let triesLeft = MAX_RETRIES; ; triesLeft--) {
    try {
      return await attachPod(pod, history);
    } catch (error) {
      const isFinal = error instanceof CniError && error.code === ErrorCode.PoolExhausted;
      if (isFinal || triesLeft === 0) throw error;
    }
    onRetry();
    await sleep(RETRY_MS);
  }
}

/** `atOnce` at any time, by default all, each as often as it takes. Final failures are returned. */
export async function attachAll(world: World, pods: readonly SimPod[], atOnce = pods.length): Promise<Attached> {
  const before = sumUse([world.use()]);
  const attached: AttachedPod[] = [];
  const refused: Error[] = [];
  let retries = 0;
  const attach = async (pod: SimPod): Promise<void> => {
    try {
      attached.push(await attachAgain(world, pod, () => retries++));
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      refused.push(error);
    }
  };
  const tookMs = await timed(() => inParallel(pods, atOnce, attach));
  return { attached, refused, retries, seconds: tookMs / 1000, use: useSince(world.use(), before) };
}
