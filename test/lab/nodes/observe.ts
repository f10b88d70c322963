/**
 * A real cluster seen from outside: pods by their kubelets' reports, addresses by the API server, and contradictions,
 * as sentences.
 *
 *   const seen = observe(cluster);
 *   const pods = await seen.untilReady("web", 50);
 *   await seen.untilConsistent();
 *   await seen.reach(pods[0], pods);                  // throws those it cannot reach
 *   await seen.untilReturned();
 *
 * Effects: calls of the API server; pings in the pods' namespaces.
 */
import type { KubeObject } from "../kube-client.ts";
import { untilDefined } from "../waiting.ts";
import { NAMESPACE, type RealCluster } from "./cluster.ts";
import { paths } from "./workloads.ts";

const ALLOCATIONS = "/apis/ipam.vendor.io/v1/ipallocations";
const READY_MS = 90_000;
const RETURNED_MS = 90_000;
const CONSISTENT_MS = 20_000;
/** Number of last warnings that a failure shows. */
const EVENTS = 8;
/** Longest time until a pod answers. */
const PING_S = 8;
/** Pings side by side. */
const PINGS = 8;

export interface Observer {
  /** Returns the pods of the namespace, with that label `app`; default: all. */
  pods(app?: string): Promise<KubeObject[]>;
  allocations(): Promise<KubeObject[]>;
  /**
   * Resolves with the pods of that label when there are exactly `count` and all are Ready. Each read is checked: no
   * two live ones have one address.
   */
  untilReady(app: string, count: number, isWanted?: (pod: KubeObject) => boolean): Promise<KubeObject[]>;
  /** Resolves when no pod of that label is left. */
  untilGone(app: string): Promise<void>;
  /** Resolves when no address is in use, and gives how long that took. */
  untilReturned(): Promise<number>;
  /**
   * Resolves when every pod's address is an object Bound to it, once, and every Bound object has its pod; throws the
   * faults. An object may outlive its pod for a moment: a DEL is answered before the API server is updated.
   */
  untilConsistent(): Promise<void>;
  /** The same for one moment, as sentences. */
  audit(): Promise<string[]>;
  /** Pings each of them from that pod; throws those that do not answer. */
  reach(from: KubeObject, to: readonly KubeObject[]): Promise<void>;
}

export function observe({ client, node }: Pick<RealCluster, "client" | "node">): Observer {
  const pods = async (app?: string): Promise<KubeObject[]> => {
    const query = app === undefined ? "" : `?labelSelector=app%3D${app}`;
    return (await client.get(`${paths.pods(NAMESPACE)}${query}`)).items;
  };
  const allocations = async (): Promise<KubeObject[]> => (await client.get(ALLOCATIONS)).items;
  const describePods = async (app?: string): Promise<string> => {
    const events: KubeObject[] = (await client.get(`/api/v1/namespaces/${NAMESPACE}/events`)).items;
    const warnings = events.filter(({ type }) => type === "Warning").slice(-EVENTS);
    const texts = warnings.map(({ involvedObject, message }) => `${involvedObject.name}: ${message}`);
    return [...(await pods(app)).map(describePod), ...texts].join("\n");
  };
  const describeAllocations = async (): Promise<string> =>
    (await allocations()).map(({ spec }) => JSON.stringify(spec)).join("\n");
  const audit = async (): Promise<string[]> => auditPods(await pods(), await allocations());
  const describeAudit = async (): Promise<string> => (await audit()).join("\n");
  return {
    pods,
    allocations,
    untilReady: (app, count, isWanted = () => true) =>
      untilDefined(
        async () => {
          const all = await pods(app);
          const twice = sharedAddresses(await pods());
          if (twice.length > 0) throw new Error(twice.join("\n"));
          return all.length === count && all.every((pod) => isReady(pod) && isWanted(pod)) ? all : undefined;
        },
        () => describePods(app),
        READY_MS,
      ),
    untilGone: async (app) =>
      void (await untilDefined(
        async () => (await pods(app)).length === 0 || undefined,
        () => describePods(app),
        READY_MS,
      )),
    untilReturned: async () => {
      const startMs = performance.now();
      const isEmpty = async () => (await allocations()).length === 0 || undefined;
      await untilDefined(isEmpty, describeAllocations, RETURNED_MS);
      return performance.now() - startMs;
    },
    untilConsistent: async () =>
      void (await untilDefined(async () => (await audit()).length === 0 || undefined, describeAudit, CONSISTENT_MS)),
    audit,
    reach: async (from, to) => {
      const source = node(from.spec.nodeName);
      const queue = to.flatMap((pod) => (pod.metadata.uid === from.metadata.uid ? [] : [pod.status.podIP as string]));
      const silent: string[] = [];
      const work = async (): Promise<void> => {
        for (let address = queue.shift(); address !== undefined; address = queue.shift()) {
          // Asks five times in a second, until one is answered.
          const argv = ["ping", "-c", "1", "-i", "0.2", "-w", String(PING_S), address];
          const { exitCode, stdout } = await source.execInPod(ownerOf(from), argv);
          if (exitCode !== 0) silent.push(`${from.metadata.name} cannot reach ${address}: ${stdout}`);
        }
      };
      await Promise.all(Array.from({ length: PINGS }, work));
      if (silent.length > 0) throw new Error(silent.join("\n"));
    },
  };
}

export function isReady({ metadata, status }: KubeObject): boolean {
  if (metadata.deletionTimestamp !== undefined) return false;
  return status.conditions?.some(({ type, status }: KubeObject) => type === "Ready" && status === "True") === true;
}

/** The UID under which the runtime knows it: of a static pod the hash of its manifest (allocation rule 9). */
export function ownerOf({ metadata }: KubeObject): string {
  return metadata.annotations?.["kubernetes.io/config.mirror"] ?? metadata.uid;
}

function describePod({ metadata, spec, status }: KubeObject): string {
  const conditions = status.conditions?.filter(({ status }: KubeObject) => status !== "True");
  const ready = conditions?.map(({ type }: KubeObject) => type);
  const waiting = status.containerStatuses?.map(({ state }: KubeObject) => state.waiting ?? state.terminated);
  const ending = metadata.deletionTimestamp === undefined ? "" : " ending";
  const text = `${metadata.name} on ${spec.nodeName}${ending}: ${status.phase} ${status.podIP}`;
  return `${text} ${JSON.stringify(ready)} ${JSON.stringify(waiting)}`;
}

/**
 * Returns addresses shared by pods that run and are not about to end: the addresses of ending ones may be other pods'
 * already.
 */
function sharedAddresses(pods: readonly KubeObject[]): string[] {
  const live = pods.filter(
    ({ metadata, status }) => metadata.deletionTimestamp === undefined && status.phase === "Running",
  );
  const seen = new Map<string, string>();
  return live.flatMap(({ metadata, status }) => {
    const other = seen.get(status.podIP);
    if (status.podIP !== undefined) seen.set(status.podIP, metadata.name);
    return other === undefined ? [] : [`${status.podIP} is that of ${other} and of ${metadata.name}`];
  });
}

function auditPods(pods: readonly KubeObject[], allocations: readonly KubeObject[]): string[] {
  const bound = allocations.filter(({ spec }) => spec.state === "Bound");
  const live = pods.filter(({ status }) => status.phase === "Running" || status.phase === "Pending");
  const unheld = live.flatMap((pod) => {
    const own = bound.filter(({ spec }) => spec.address === pod.status.podIP);
    const holders: KubeObject[] = own.flatMap(({ spec }) => spec.holders);
    const isHeld = holders.some((each) => each.podUID === ownerOf(pod) && each.node === pod.spec.nodeName);
    return isHeld ? [] : [`${describePod(pod)} is not what the API server has: ${JSON.stringify(own)}`];
  });
  const owners = new Set(live.map(ownerOf));
  const unexplained = bound.flatMap(({ spec }) => {
    const strangers = spec.holders.filter((each: KubeObject) => !owners.has(each.podUID));
    return strangers.length === 0 && spec.holders.length === 1 ? [] : [`No pod explains ${JSON.stringify(spec)}`];
  });
  return [...sharedAddresses(pods), ...unheld, ...unexplained];
}
