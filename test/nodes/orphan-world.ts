/**
 * The one pod of a StatefulSet that is forced away from its node while its sandbox lives on there, and its successor
 * on another node.
 */
import { expect } from "vitest";
import type { KubeObject } from "../lab/kube-client.ts";
import { type Census, type NicAddress, startCensus } from "../lab/nodes/census.ts";
import { NAMESPACE, type RealCluster } from "../lab/nodes/cluster.ts";
import type { NetworkName } from "../lab/nodes/networks.ts";
import type { RealNode } from "../lab/nodes/node.ts";
import type { Observer } from "../lab/nodes/observe.ts";
import { paths, statefulSetOf, type WorkloadSpec } from "../lab/nodes/workloads.ts";
import { untilDefined } from "../lab/waiting.ts";

const SET = "orphan";
const POD = `${paths.pods(NAMESPACE)}/${SET}-0`;
const FENCED_MS = 60_000;
/** Between two samples of the census. */
const PERIOD_MS = 100;

export interface OrphanScene {
  readonly cluster: RealCluster;
  readonly seen: Observer;
  readonly census: Census;
  /** Node of the earlier pod. */
  readonly node: RealNode;
  readonly earlier: KubeObject;
  readonly address: string;
  /** Deletes the pod by force; by default its node takes no more. */
  forceAway(options?: { readonly mayComeBack?: boolean }): Promise<void>;
  /**
   * Resolves when the successor runs with the same address; gives the milliseconds from {@link forceAway} until its
   * NIC had it.
   */
  untilSucceeded(limitMs?: number): Promise<number>;
  /** The nodes on whose NICs the census has just found the address. */
  holders(): string[];
  /** Refusals of the successor, by its events. */
  refusals(): Promise<string[]>;
}

/**
 * Runs `play` with a StatefulSet of one on that network. No sample of the kernel state may show its address twice,
 * and nothing may be left, also when `play` fails.
 */
export async function withOrphan(
  { cluster, seen }: Pick<OrphanScene, "cluster" | "seen">,
  network: NetworkName,
  play: (scene: OrphanScene) => Promise<void>,
  spec: Partial<WorkloadSpec> = {},
): Promise<void> {
  const { client } = cluster;
  await cluster.setNetwork(network);
  const sets = paths.statefulSets(NAMESPACE);
  await client.create(sets, statefulSetOf({ name: SET, replicas: 1, ...spec }));
  const [earlier] = await seen.untilReady(SET, 1);
  const node = cluster.node(earlier.spec.nodeName);
  await using census = startCensus(cluster, PERIOD_MS);
  const open = () => client.patch(`/api/v1/nodes/${node.name}`, { spec: { unschedulable: null } });
  try {
    await play(sceneOf({ cluster, seen, census, node, earlier }));
    await open();
    await seen.untilConsistent();
  } finally {
    await open();
    await client.delete(`${sets}/${SET}`, { propagationPolicy: "Background" });
    await client.delete(POD, { gracePeriodSeconds: 1 }).catch(() => {});
    await seen.untilGone(SET);
    await seen.untilReturned();
    await untilEnded(node);
    await cluster.setNetwork("berth");
  }
  expect(census.duplicates()).toEqual([]);
}

/** The runtime removes a namespace when all its DELs have succeeded, that of the orphan, too. */
async function untilEnded({ machine }: RealNode): Promise<void> {
  const list = () => machine.run(["ls", "/run/netns"]);
  await untilDefined(async () => (await list()).trim() === "" || undefined, list, FENCED_MS);
}

function sceneOf(given: Pick<OrphanScene, "cluster" | "seen" | "census" | "node" | "earlier">): OrphanScene {
  const { cluster, seen, census, node, earlier } = given;
  const { client } = cluster;
  const address: string = earlier.status.podIP;
  /** NIC of the earlier pod, which alone has the address now. */
  const home = census.latest().find((each) => each.address === address);
  let startMs = 0;
  const holders = (): string[] => census.latest().flatMap((each) => (each.address === address ? [each.node] : []));
  const isSuccessor = ({ metadata }: KubeObject): boolean => metadata.uid !== earlier.metadata.uid;
  const refusals = async (): Promise<string[]> => {
    const events: KubeObject[] = (await client.get(`/api/v1/namespaces/${NAMESPACE}/events`)).items;
    const [successor] = (await seen.pods(SET)).filter(isSuccessor);
    const own = events.filter(({ involvedObject }) => involvedObject.uid === successor?.metadata.uid);
    return own.filter(({ type }) => type === "Warning").map(({ message }) => String(message));
  };
  return {
    ...given,
    ...{ address, holders, refusals },
    forceAway: async ({ mayComeBack = false } = {}) => {
      if (!mayComeBack) await client.patch(`/api/v1/nodes/${node.name}`, { spec: { unschedulable: true } });
      startMs = performance.now();
      await client.delete(POD, { gracePeriodSeconds: 0, preconditions: { uid: earlier.metadata.uid } });
    },
    untilSucceeded: async (limitMs = FENCED_MS) => {
      const describe = async () => `${address} is on ${holders().join()}; ${(await refusals()).join("\n")}`;
      const isOther = ({ address: own, netns }: NicAddress): boolean => own === address && netns !== home?.netns;
      await untilDefined(async () => census.latest().some(isOther) || undefined, describe, limitMs);
      const tookMs = performance.now() - startMs;
      const [successor] = await seen.untilReady(SET, 1, isSuccessor);
      expect(successor.status.podIP).toBe(address);
      return tookMs;
    },
  };
}

/** Returns the agent's notes that `kubectl describe statefulset` shows. */
export async function fencingNotes({ cluster }: Pick<OrphanScene, "cluster">): Promise<string[]> {
  const events: KubeObject[] = (await cluster.client.get(`/apis/events.k8s.io/v1/namespaces/${NAMESPACE}/events`))
    .items;
  return events.filter(({ reason }) => reason === "OrphanFenced").map(({ note }) => String(note));
}
