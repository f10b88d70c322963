/**
 * Five minutes of churn on three real nodes, with agents that restart: `kubectl berth check` finds nothing that is no
 * damage.
 *
 *   BERTH_CHURN_S=60 vitest run --project long test/long/check-churn.test.ts
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { NAMESPACE, type RealCluster, startRealCluster } from "../lab/nodes/cluster.ts";
import { type Observer, observe } from "../lab/nodes/observe.ts";
import { deploymentOf, paths, statefulSetOf } from "../lab/nodes/workloads.ts";
import { Operator } from "../nodes/operator.ts";

const DURATION_MS = Number(process.env.BERTH_CHURN_S ?? 120) * 1_000;
const NODES = ["node1", "node2", "node3"];
const ROUND_MS = 4_000;

let cluster: RealCluster;
let seen: Observer;
let operator: Operator;
beforeAll(async () => {
  cluster = await startRealCluster({ nodes: NODES.length, isObserved: true });
  seen = observe(cluster);
  operator = new Operator(cluster, NODES);
}, 300_000);
afterAll(async () => {
  operator?.[Symbol.dispose]();
  await cluster?.stop();
}, 120_000);

/** Scales a deployment up and down, replaces its pods, and restarts members of a set, until the signal. */
async function churn(signal: AbortSignal): Promise<void> {
  const deployment = `${paths.deployments(NAMESPACE)}/web`;
  for (let round = 0; !signal.aborted; round++) {
    await cluster.client.patch(deployment, {
      spec: { replicas: 2 + (round % 5), template: { metadata: { labels: { version: `${Math.floor(round / 3)}` } } } },
    });
    if (round % 2 === 0) await cluster.client.delete(`${paths.pods(NAMESPACE)}/db-${(round / 2) % 3}`).catch(() => {});
    await sleep(ROUND_MS, undefined, { signal }).catch(() => {});
  }
}

/** From time to time an agent ends and starts again: attachments are then compared by their definitions. */
async function restartAgents(signal: AbortSignal): Promise<void> {
  for (let round = 0; !signal.aborted; round++) {
    await sleep(15 * ROUND_MS, undefined, { signal }).catch(() => {});
    if (!signal.aborted) await cluster.node(NODES[round % NODES.length] ?? "").restartAgent();
  }
}

it(
  "nothing is found",
  async () => {
    await cluster.client.create(paths.deployments(NAMESPACE), deploymentOf({ name: "still", replicas: 6 }));
    await cluster.client.create(paths.deployments(NAMESPACE), deploymentOf({ name: "web", replicas: 3 }));
    await cluster.client.create(paths.statefulSets(NAMESPACE), statefulSetOf({ name: "db", replicas: 3 }));
    await seen.untilReady("still", 6);
    const ending = new AbortController();
    const work = [churn(ending.signal), restartAgents(ending.signal)];
    const endMs = performance.now() + DURATION_MS;
    let checks = 0;
    let compared = 0;
    const away = new Set<string>();
    try {
      while (performance.now() < endMs) {
        const { report, found } = await operator.check();
        expect(found).toEqual([]);
        // An agent that starts does not answer.
        for (const { node, reason } of report.notCompared) away.add(`${node}: ${reason}`);
        compared += report.nodes.reduce((sum, node) => sum + node.attachments, 0);
        checks++;
      }
    } finally {
      ending.abort();
      await Promise.all(work);
    }
    console.log(
      `${checks} checks, ${compared} comparisons of attachments, not compared: ${[...away].join("; ") || "none"}`,
    );
    expect(compared).toBeGreaterThan(checks);
  },
  DURATION_MS + 180_000,
);
