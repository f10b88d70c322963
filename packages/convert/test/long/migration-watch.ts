/**
 * Invariants at every moment of a migration: pods that are not moved answer each other, and no sample of the kernel
 * state shows an address on two NICs. The three migrations of this folder bring the cluster and the other IPAM.
 */
import { expect } from "vitest";
import type { KubeObject } from "../../../../test/lab/kube-client.ts";
import { type Census, startCensus } from "../../../../test/lab/nodes/census.ts";
import { NAMESPACE, type RealCluster } from "../../../../test/lab/nodes/cluster.ts";
import { type Observer, ownerOf } from "../../../../test/lab/nodes/observe.ts";
import { type Stream, startStream } from "../../../../test/lab/nodes/stream.ts";
import { paths } from "../../../../test/lab/nodes/workloads.ts";
import type { Operator } from "../../../../test/nodes/operator.ts";

/** Throws unless the command of `kubectl berth` succeeds; returns its output. */
export async function berth(operator: Operator, ...words: readonly string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await operator.berth(...words);
  expect(exitCode, `${words.join(" ")}: ${stdout}${stderr}`).toBe(0);
  return `${stdout}${stderr}`;
}

/** Returns the number of addresses that `berthctl adopt` lists with that outcome. */
export function countOf(text: string, outcome: string): number {
  return text.split("\n").filter((line) => line.endsWith(`: ${outcome}`)).length;
}

export function isNoneOf(gone: readonly KubeObject[]) {
  const uids = gone.map(({ metadata }) => metadata.uid);
  return ({ metadata }: KubeObject): boolean => !uids.includes(metadata.uid);
}

interface Flow {
  readonly what: string;
  readonly stream: Stream;
}

export class MigrationWatch {
  readonly #cluster: RealCluster;
  readonly #seen: Observer;
  readonly #census: Census;
  #flows: Flow[] = [];
  #sent = 0;

  constructor(cluster: RealCluster, seen: Observer) {
    this.#cluster = cluster;
    this.#seen = seen;
    this.#census = startCensus(cluster);
  }

  /** Pings from the pod to the addresses, until the next {@link expectUnharmed}. */
  async connect(
    from: KubeObject,
    to: readonly KubeObject[],
    addressOf = (pod: KubeObject): string => pod.status.podIP,
  ) {
    const node = this.#cluster.node(from.spec.nodeName);
    for (const pod of to.filter(({ metadata }) => metadata.uid !== from.metadata.uid)) {
      const stream = await startStream(node, ownerOf(from), addressOf(pod));
      this.#flows.push({ what: `${from.metadata.name} to ${pod.metadata.name}`, stream });
    }
  }

  /** Ends the pings, each of which must have been answered. */
  async expectUnharmed(): Promise<void> {
    const ended = await Promise.all(
      this.#flows.splice(0).map(async ({ what, stream }) => ({ what, ...(await stream.stop()) })),
    );
    for (const { sent } of ended) this.#sent += sent;
    expect(ended.filter(({ lost }) => lost > 0)).toEqual([]);
    expect(this.#census.duplicates()).toEqual([]);
  }

  /** As `kubectl rollout restart` does, and waits for its end. Returns the new pods. */
  async restart(kind: "deployments" | "statefulSets", name: string, annotations: object = {}): Promise<KubeObject[]> {
    const before = await this.#seen.pods(name);
    const at = { "kubectl.kubernetes.io/restartedAt": new Date().toISOString() };
    const template = { metadata: { annotations: { ...at, ...annotations } } };
    await this.#cluster.client.patch(`${paths[kind](NAMESPACE)}/${name}`, { spec: { template } });
    return this.#seen.untilReady(name, before.length, isNoneOf(before));
  }

  /** Deletes the workloads, and returns the observations once all of their addresses are back. */
  async deleteWorkloads(): Promise<void> {
    const { deployments, statefulSets } = paths;
    for (const [collection, name] of [
      [deployments(NAMESPACE), "web"],
      [deployments(NAMESPACE), "still"],
      [statefulSets(NAMESPACE), "db"],
    ] as const) {
      await this.#cluster.client.delete(`${collection}/${name}`, { propagationPolicy: "Background" });
      await this.#seen.untilGone(name);
    }
    await this.#seen.untilReturned();
    await this.expectUnharmed();
    console.log(this.#summary());
  }

  /** One line of figures. */
  #summary(): string {
    const { samples, longestPauseMs } = this.#census;
    return `${this.#sent} pings, none lost; ${samples} samples of the kernel state, at most ${longestPauseMs.toFixed(0)} ms apart, no duplicate`;
  }

  async end(): Promise<void> {
    await Promise.all(this.#flows.splice(0).map(({ stream }) => stream.stop().catch(() => {})));
    this.#census.stop();
  }
}
