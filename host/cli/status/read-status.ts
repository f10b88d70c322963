/** Berth's state in a cluster, from the API server alone: its programs, full pools, repairs, and pods that wait. */
import * as z from "zod";
import { DAEMON_SETS, daemonSetProgress } from "../../install/node-pods.ts";
import type { KubeApi, KubeObject } from "../../kubernetes/kube-api.ts";
import { AGENT_LABELS } from "../../kubernetes/labels.ts";
import type { Resource } from "../../kubernetes/paths.ts";
import { orNote } from "../../lib/try-or.ts";
import type { PoolRecord } from "../../records/pool-record.ts";
import { type BerthPod, readBerthPods } from "../berth-pods.ts";
import type { ClusterSource } from "../cluster-source.ts";
import { readLeader } from "../read-leader.ts";
import { listObjects } from "../read-objects.ts";
import type { VersionRecord } from "../source.ts";

/** An Event of Berth's. */
export interface Incident {
  /** When it was last seen: RFC 3339. */
  readonly time: string;
  readonly reason: string;
  readonly text: string;
  /** Of the object, `Node` or `Pod`. */
  readonly kind: string;
  /** "" of a node. */
  readonly namespace: string;
  readonly name: string;
  /** As in the Event. */
  readonly type: string;
  readonly action: string;
}

export interface StatusRecord {
  /** All wanted agents are ready and of one revision, and a ready controller leads. */
  readonly isReady: boolean;
  readonly agents: {
    readonly wanted: number;
    readonly ready: number;
    /** Those of the newest revision of the DaemonSet. */
    readonly updated: number;
    readonly notReady: readonly BerthPod[];
  };
  readonly controllers: {
    readonly wanted: number;
    readonly ready: number;
    readonly notReady: readonly BerthPod[];
    /** Its pod; undefined if none leads, or that cannot be read. */
    readonly leader?: string;
  };
  readonly versions: readonly VersionRecord[];
  /** The fullest first. */
  readonly pools: readonly PoolRecord[];
  readonly quarantined: number;
  /** Repairs of agents on their nodes in the last hour, the newest first. */
  readonly repairs: readonly Incident[];
  /** Pods that exist, have not started, and were refused; the newest first. */
  readonly waiting: readonly Incident[];
  /** Sentences about objects that could not be read. */
  readonly problems: readonly string[];
}

const CORE_EVENTS: Resource = { apiVersion: "v1", plural: "events" };

/** Action of the events about agents' repairs. */
const RESTORE = "Restore";

/** Age of the oldest repairs that are shown; an API server may keep Events for longer: milliseconds. */
const REPAIRS_MS = 3_600_000;

/** Rejects if the API server does not answer. */
export async function readStatus({ api, source, now }: StatusDeps): Promise<StatusRecord> {
  const problems: string[] = [];
  const readOr = <T>(what: string, objects: Promise<T>) => orNote(problems, what, objects);
  const pods = await readBerthPods(api);
  const labels = { labelSelector: AGENT_LABELS };
  const sets = await readOr("The agents' DaemonSet", listObjects(api, { resource: DAEMON_SETS, query: labels }));
  const agents = agentsOf(pods, sets);
  const controllerPods = pods.filter(({ component }) => component === "controller");
  const leader = await readOr("The controllers' Lease", readLeader(api, pods, now));
  const [versions, pools] = [await source.versions(), poolsWorstFirst(await source.pools())];
  const ours = { fieldSelector: "source=berth-agent" };
  const events = await readOr("Events", listObjects(api, { resource: CORE_EVENTS, query: ours }));
  const found = (events ?? []).flatMap((object) => incidentOf(object) ?? []);
  const incidents = found.sort((a, b) => (a.time < b.time ? 1 : -1));
  const refused = newestOfEach(incidents.filter(({ kind, type }) => kind === "Pod" && type === "Warning"));
  const isRecent = ({ time }: Incident) => Date.parse(time) > now.getTime() - REPAIRS_MS;
  const pending = refused.length === 0 ? [] : await readOr("Pods", source.waitingPods());
  const names = new Set((pending ?? []).map(({ namespace, name }) => `${namespace}/${name}`));
  const notReady = controllerPods.filter(({ isReady }) => !isReady);
  const controllers = {
    wanted: controllerPods.length,
    ready: controllerPods.length - notReady.length,
    notReady,
    ...(leader ? { leader } : {}),
  };
  const { wanted, ready, updated } = agents;
  const areReady = wanted > 0 && ready >= wanted && updated >= wanted;
  return {
    isReady: areReady && controllers.ready > 0 && leader !== "",
    agents,
    controllers,
    versions,
    pools,
    quarantined: pools.reduce((sum, { states }) => sum + (states.Quarantined ?? 0), 0),
    repairs: incidents.filter((incident) => incident.action === RESTORE && isRecent(incident)),
    waiting: refused.filter(({ namespace, name }) => names.has(`${namespace}/${name}`)),
    problems,
  };
}

interface StatusDeps {
  readonly api: KubeApi;
  readonly source: Pick<ClusterSource, "pools" | "versions" | "waitingPods">;
  readonly now: Date;
}

/** Without DaemonSets, or the right to read them, the present agents are the wanted ones. */
function agentsOf(pods: readonly BerthPod[], sets: readonly KubeObject[] | undefined): StatusRecord["agents"] {
  const agents = pods.filter(({ component }) => component === "agent");
  const ready = agents.filter(({ isReady }) => isReady).length;
  const notReady = agents.filter(({ isReady }) => !isReady);
  const decoded = (sets ?? []).flatMap((object) => daemonSetProgress.safeParse(object).data ?? []);
  if (decoded.length === 0) return { wanted: agents.length, ready, updated: agents.length, notReady };
  const known = { wanted: 0, ready: 0, updated: 0, notReady };
  for (const { metadata, status } of decoded) {
    known.wanted += status.desiredNumberScheduled;
    known.ready += status.numberReady;
    if (status.observedGeneration >= metadata.generation) known.updated += status.updatedNumberScheduled;
  }
  return known;
}

const coreEvent = z.object({
  involvedObject: z.object({ kind: z.string(), namespace: z.string().default(""), name: z.string() }),
  reason: z.string(),
  message: z.string().default(""),
  type: z.string(),
  action: z.string().default(""),
  eventTime: z.string().nullish(),
  lastTimestamp: z.string().nullish(),
  series: z.object({ lastObservedTime: z.string() }).nullish(),
});

function incidentOf(object: KubeObject): Incident | undefined {
  const { data } = coreEvent.safeParse(object);
  if (data === undefined) return undefined;
  const { involvedObject, reason, message, type, action, series, eventTime, lastTimestamp } = data;
  const time = series?.lastObservedTime ?? eventTime ?? lastTimestamp ?? "";
  return { time, reason, text: message, ...involvedObject, type, action };
}

/** Of incidents of which the newest is the first. */
function newestOfEach(incidents: readonly Incident[]): Incident[] {
  const ofPods = Map.groupBy(incidents, ({ namespace, name }) => `${namespace}/${name}`);
  return [...ofPods.values()].flatMap((each) => each.slice(0, 1));
}

/** Returns the pools that allocate nothing although they should, then by how full they are, then by name. */
export function poolsWorstFirst(pools: readonly PoolRecord[]): PoolRecord[] {
  const rank = (pool: PoolRecord): number => (pool.refused === undefined ? permilleOf(pool) : 1_001);
  return pools.toSorted((a, b) => rank(b) - rank(a) || (a.name < b.name ? -1 : 1));
}

function permilleOf({ used = "0", total = "0" }: PoolRecord): number {
  return total === "0" ? 0 : Number((BigInt(used) * 1_000n) / BigInt(total));
}
