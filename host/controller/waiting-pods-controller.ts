/**
 * Tells the pods of a node whose agent is being replaced why they wait: plugins wait for the new agent for 20 seconds,
 * and the runtime reports nothing meanwhile.
 */
import * as z from "zod";
import { AGENT_LABELS } from "../kubernetes/labels.ts";
import { collectionPath, PODS } from "../kubernetes/paths.ts";
import { followObjects } from "./follow-objects.ts";
import { startReconciling } from "./reconcile-loop.ts";
import type { StartController } from "./types.ts";

/** Time after which a pod is told why it waits: milliseconds. */
const PATIENCE_MS = 5_000;

const LOOK_MS = 1_000;

const pod = z.object({
  metadata: z.object({ namespace: z.string(), name: z.string(), uid: z.string() }),
  spec: z.object({ nodeName: z.string(), hostNetwork: z.boolean().default(false) }),
  status: z.object({
    podIP: z.string().optional(),
    conditions: z.array(z.object({ type: z.string(), status: z.string() })).default([]),
  }),
});

const isReady = ({ status }: z.output<typeof pod>): boolean =>
  status.conditions.some((each) => each.type === "Ready" && each.status === "True");

export const startWaitingPods: StartController = (deps) => {
  const { api, caches, clock, events, leading: signal } = deps;
  /** Start of the wait for the node's agent, by the pod's UID. */
  let waiting = new Map<string, number>();
  const agents = followObjects(deps, () => loop.wake(), {
    name: "pods of agents",
    path: collectionPath(PODS, caches.configNamespace),
    labelSelector: AGENT_LABELS,
    decode: (object) => pod.safeParse(object).data,
  });
  const look = async (): Promise<number | undefined> => {
    const byNode = Map.groupBy(agents.items.values(), ({ spec }) => spec.nodeName);
    const away = [...byNode].flatMap(([node, all]) => (all.some(isReady) ? [] : [node]));
    const before = waiting;
    waiting = new Map();
    for (const node of away) {
      const query = { fieldSelector: `spec.nodeName=${node},status.phase=Pending` };
      const list = await api.call({ method: "GET", path: collectionPath(PODS), query, signal });
      for (const { metadata, spec, status } of z.object({ items: z.array(pod) }).parse(list).items) {
        if (spec.hostNetwork || status.podIP !== undefined) continue;
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
    return away.length === 0 ? undefined : LOOK_MS;
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
