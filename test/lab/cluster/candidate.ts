/** A process that wants to lead, with the default times of `berth-controller`. */
import { setTimeout as sleep } from "node:timers/promises";
import { openElection } from "../../../host/kubernetes/lease/election.ts";
import { openLog } from "../../../host/lib/log.ts";
import type { ControlPlane } from "../control-plane.ts";
import { connectClient } from "./in-process.ts";

export async function openCandidate(plane: ControlPlane, identity: string, name: string) {
  const client = await connectClient(plane.kubeconfig, `berth-${identity}`);
  const terms: string[] = [];
  /** When it led, by this process's clock: milliseconds. */
  const spans: { readonly fromMs: number; toMs: number }[] = [];
  const election = openElection({
    ...{ api: client, namespace: "default", name, identity },
    timings: { durationMs: 30_000, renewDeadlineMs: 25_000, retryMs: 2_000 },
    clock: { nowMs: () => performance.now(), pause: (waitMs, signal) => sleep(waitMs, undefined, { signal }) },
    now: () => new Date(),
    random: Math.random,
    lead: ({ signal }) => {
      terms.push(identity);
      const span = { fromMs: performance.now(), toMs: Number.POSITIVE_INFINITY };
      spans.push(span);
      return new Promise((resolve) => {
        const end = (): void => {
          span.toMs = performance.now();
          resolve();
        };
        signal.addEventListener("abort", end, { once: true });
      });
    },
    log: openLog("test", "silent"),
  });
  const close = async (): Promise<void> => {
    await election.close();
    await client.close();
  };
  return { election, terms, spans, close };
}
