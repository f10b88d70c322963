import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { KubeClient } from "../../host/kubernetes/client.ts";
import { type Election, openElection } from "../../host/kubernetes/lease/election.ts";
import { openLog } from "../../host/lib/log.ts";
import { type ApiProxy, startApiProxy } from "../lab/cluster/api-proxy.ts";
import { connectClient } from "../lab/cluster/in-process.ts";
import type { ControlPlane } from "../lab/control-plane.ts";
import { itLong, ofRun } from "../world/long-cases.ts";
import { until } from "../world/recorded-log.ts";
import { borrowPlane } from "./borrow-plane.ts";

/** A fifth of the defaults: the same in less time. */
const TIMINGS = { durationMs: 3_000, renewDeadlineMs: 2_000, retryMs: 400 };
/** Longest wait, on a machine that has much else to do. */
const PATIENCE_MS = 30_000;

interface Candidate {
  readonly name: string;
  readonly proxy: ApiProxy;
  readonly client: KubeClient;
  readonly election: Election;
  /** When it led, by the clock of this process, which all of them share. */
  readonly terms: { readonly fromMs: number; toMs?: number }[];
}

let plane: ControlPlane;
let leases = 0;
const opened: Candidate[] = [];
beforeAll(async () => {
  plane = await borrowPlane();
});
afterAll(() => plane.stop());
afterEach(async () => {
  for (const { election, client, proxy } of opened.splice(0)) {
    await election.close();
    await client.close();
    await proxy.stop();
  }
});

async function open(lease: string, name: string): Promise<Candidate> {
  const proxy = await startApiProxy(plane);
  const client = await connectClient(proxy.kubeconfig, `berth-${name}`);
  const terms: Candidate["terms"] = [];
  const election = openElection({
    ...{ api: client, namespace: "default", name: lease, identity: name, timings: TIMINGS },
    clock: { nowMs: () => performance.now(), pause: (waitMs, signal) => sleep(waitMs, undefined, { signal }) },
    now: () => new Date(),
    random: Math.random,
    lead: ({ signal }) =>
      new Promise<void>((resolve) => {
        const term: Candidate["terms"][number] = { fromMs: performance.now() };
        terms.push(term);
        signal.addEventListener("abort", () => {
          term.toMs = performance.now();
          resolve();
        });
      }),
    log: openLog("test", "silent"),
  });
  const candidate = { name, proxy, client, election, terms };
  opened.push(candidate);
  return candidate;
}

/** Two of a Lease of their own; the first of them leads. */
async function openTwo(): Promise<{ a: Candidate; b: Candidate; lease: string }> {
  const lease = `lease-${++leases}`;
  const a = await open(lease, "a");
  await until(() => a.election.isLeading, "the first one leads", PATIENCE_MS);
  const b = await open(lease, "b");
  await until(() => b.election.holder === "a", "the second one has seen who leads", PATIENCE_MS);
  return { a, b, lease };
}

/** Sentences: who led while another did. */
function overlaps(candidates: readonly Candidate[]): string[] {
  const nowMs = performance.now();
  const all = candidates.flatMap(({ name, terms }) =>
    terms.map(({ fromMs, toMs = nowMs }) => ({ name, fromMs, toMs })),
  );
  return all.flatMap((one, index) =>
    all.slice(index + 1).flatMap((other) => {
      const ms = Math.min(one.toMs, other.toMs) - Math.max(one.fromMs, other.fromMs);
      return ms > 0 ? [`${one.name} and ${other.name} led together for ${ms.toFixed(1)} ms`] : [];
    }),
  );
}

const logDuration = (text: string, ms: number) =>
  console.log(`lease (3 s, 2 s, 0.4 s): ${text} after ${ms.toFixed(0)} ms`);

describe("a Lease on a real API server", () => {
  it.each(ofRun(["refused", "silent"] as const, (how) => how === "silent"))(
    "passes on when the leader is cut off (%s), and the leader has stopped before",
    async (kind) => {
      const { a, b } = await openTwo();
      const startMs = performance.now();
      if (kind === "refused") a.proxy.refuse();
      else a.proxy.rules.add({ path: /leases/, fault: { kind: "hang-before" } });
      await until(() => b.election.isLeading, "the other one leads", PATIENCE_MS);
      const [first] = a.terms;
      const [second] = b.terms;
      logDuration(`${kind}: the old leader stopped`, (first?.toMs ?? Number.NaN) - startMs);
      logDuration(`${kind}: the new one led`, (second?.fromMs ?? Number.NaN) - startMs);
      expect((second?.fromMs ?? 0) - (first?.toMs ?? 0)).toBeGreaterThan(
        (TIMINGS.durationMs - TIMINGS.renewDeadlineMs) / 2,
      );
      expect(a.election.problem).toMatch(/^Cannot read or write the Lease default\/lease-/);
      if (kind === "refused") await a.proxy.accept();
      else {
        a.proxy.rules.clear();
        a.proxy.breakHanging();
      }
      await until(
        () => a.election.holder === "b" && a.election.problem === undefined,
        "the old one has seen it",
        PATIENCE_MS,
      );
      expect(overlaps([a, b])).toEqual([]);
      expect(b.election.isLeading).toBe(true);
    },
  );

  itLong("has one leader after etcd was restored from a copy in which another one led", async () => {
    const { a, b } = await openTwo();
    const copy = await plane.snapshot();
    a.proxy.refuse();
    await until(() => b.election.isLeading, "the other one leads", PATIENCE_MS);
    await a.proxy.accept();
    await until(() => a.election.holder === "b", "the old one has seen it", PATIENCE_MS);
    await plane.restore(copy);
    await until(() => a.election.isLeading || b.election.isLeading, "one of them leads", PATIENCE_MS);
    await sleep(TIMINGS.durationMs);
    await until(() => [a, b].filter(({ election }) => election.isLeading).length === 1, "one leads", PATIENCE_MS);
    expect(overlaps([a, b])).toEqual([]);
  });

  itLong("never has two leaders while half of their calls fail or lose their answers", async () => {
    const { a, b } = await openTwo();
    for (const { proxy } of [a, b]) {
      for (const kind of ["reset-before", "reset-after"] as const)
        proxy.rules.add({ path: /leases/, probability: 0.2, fault: { kind } });
      const fault = { kind: "answer", status: 500, reason: "InternalError" } as const;
      proxy.rules.add({ path: /leases/, probability: 0.2, fault });
    }
    await sleep(TIMINGS.durationMs * 3);
    for (const { proxy } of [a, b]) proxy.rules.clear();
    await until(() => a.election.isLeading || b.election.isLeading, "one of them leads", PATIENCE_MS);
    expect(overlaps([a, b])).toEqual([]);
    logDuration(
      `half of the calls failed: ${a.terms.length + b.terms.length} times of leading`,
      TIMINGS.durationMs * 3,
    );
  });
});
