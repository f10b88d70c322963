/**
 * Tells the pods of a node whose agent is being replaced why they wait: plugins wait for the new agent for 20 seconds,
 * and the runtime says nothing meanwhile.
 */
import * as z from "zod";
import { collectionPath, PODS } from "../kubernetes/paths.ts";
import { followObjects } from "./follow-objects.ts";
import { startReconciling } from "./reconcile-loop.ts";
import type { StartController } from "./types.ts";

/** Time from which on a pod is told why it waits: milliseconds. */
const PATIENCE_MS = 5_000;

const LOOK_MS = 1_000;

const AGENTS = "app.kubernetes.io/name=berth,app.kubernetes.io/component=agent";

const agent = z
  .object({
    spec: z.object({ nodeName: z.string() }),
    status: z.object({ conditions: z.array(z.object({ type: z.string(), status: z.string() })).default([]) }),
  })
  .transform(({ spec, status }) => ({
    node: spec.nodeName,
    isReady: status.conditions.some((each) => each.type === "Ready" && each.status === "True"),
  }));

const pods = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ namespace: z.string(), name: z.string(), uid: z.string() }),
      spec: z.object({ hostNetwork: z.boolean().default(false) }),
      status: z.object({ podIP: z.string().default("") }),
    }),
  ),
});

export const startWaitingPods: StartController = (deps) => {
  const { api, caches, clock, events, leading: signal } = deps;
  /** By UID: since when it waits for the agent of its node. */
  let waiting = new Map<string, number>();
  const agents = followObjects(deps, () => loop.wake(), {
    name: "pods of agents",
    path: collectionPath(PODS, caches.configNamespace),
    labelSelector: AGENTS,
    decode: (object) => agent.safeParse(object).data,
  });
  const look = async (): Promise<number | undefined> => {
    const known = [...agents.items.values()];
    const ready = new Set(known.flatMap(({ node, isReady }) => (isReady ? [node] : [])));
    const away = new Set(known.flatMap(({ node }) => (ready.has(node) ? [] : [node])));
    const before = waiting;
    waiting = new Map();
    for (const node of away) {
      const query = { fieldSelector: `spec.nodeName=${node},status.phase=Pending` };
      const { items } = pods.parse(await api.call({ method: "GET", path: collectionPath(PODS), query, signal }));
      for (const { metadata, spec, status } of items) {
        if (spec.hostNetwork || status.podIP !== "") continue;
        const sinceMs = before.get(metadata.uid) ?? clock.nowMs();
        waiting.set(metadata.uid, sinceMs);
        if (clock.nowMs() - sinceMs < PATIENCE_MS) continue;
        events.emit({
          regarding: { kind: "Pod", apiVersion: "v1", ...metadata },
          ...{ reason: "WaitsForAgent", type: "Warning", action: "Attach" },
          note: `The pod waits for the Berth agent of node "${node}", which is being replaced or is not ready; it starts by itself when the agent is`,
        });
      }
    }
    return away.size === 0 ? undefined : LOOK_MS;
  };
  const loop = startReconciling(deps, {
    failure: "Telling pods that wait for their node's agent failed",
    work: look,
    restMs: () => LOOK_MS,
  });
  return {
    get problems() {
      return [...agents.problems, ...loop.problems];
    },
    close: async () => {
      await loop.close();
      await agents.close();
    },
  };
};
