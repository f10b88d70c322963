/** A Lease without an API server: one object behind the port, and a clock that only moves when it is told to. Several candidates share both. */
import {
  ApiError,
  ApiUnavailable,
  type KubeApi,
  type KubeCall,
  type KubeObject,
} from "../../../../host/kubernetes/kube-api.ts";
import { type Election, type ElectionOptions, openElection } from "../../../../host/kubernetes/lease/election.ts";
import type { ElectionClock, Leading } from "../../../../host/kubernetes/lease/leading.ts";
import { openLog } from "../../../../host/lib/log.ts";

/** Time that stands still but for `advance`. Each machine may be off by `skewMs`. */
export class FakeClock {
  nowMs = 1_000_000;
  readonly #sleepers: { readonly untilMs: number; readonly wake: () => void }[] = [];

  clock(skewMs = 0): ElectionClock {
    return {
      nowMs: () => this.nowMs + skewMs,
      pause: (waitMs, signal) =>
        new Promise((resolve, reject) => {
          if (signal.aborted) return reject(signal.reason);
          signal.addEventListener("abort", () => reject(signal.reason), { once: true });
          this.#sleepers.push({ untilMs: this.nowMs + waitMs, wake: resolve });
        }),
    };
  }

  /** Wakes the sleepers on the way, each at its time, and lets everything that follows happen. */
  async advance(ms: number): Promise<void> {
    const endMs = this.nowMs + ms;
    await flush();
    for (;;) {
      this.#sleepers.sort((a, b) => a.untilMs - b.untilMs);
      const [next] = this.#sleepers;
      if (next === undefined || next.untilMs > endMs) break;
      this.#sleepers.shift();
      this.nowMs = Math.max(this.nowMs, next.untilMs);
      next.wake();
      await flush();
    }
    this.nowMs = Math.max(this.nowMs, endMs);
    await flush();
  }

  /** The machine was stopped: time has passed, and no timer has fired yet. */
  jump(ms: number): void {
    this.nowMs += ms;
  }
}

async function flush(): Promise<void> {
  for (let turn = 0; turn < 60; turn++) await Promise.resolve();
}

type Fault = "ok" | "unreachable" | "lost answer" | "hang" | "forbidden";

/** One Lease, as an API server keeps it. */
export class FakeServer {
  lease: Record<string, unknown> | undefined;
  version = 100;
  readonly calls: KubeCall[] = [];

  api(faultOf: (call: KubeCall) => Fault = () => "ok"): KubeApi {
    return {
      call: async (call) => {
        const fault = faultOf(call);
        this.calls.push(call);
        const operation = `${call.method} ${call.path}`;
        if (fault === "unreachable") throw new ApiUnavailable(operation, "no route");
        if (fault === "forbidden")
          throw new ApiError({ status: 403, reason: "Forbidden", operation, message: "leases are forbidden" });
        if (fault === "hang")
          return new Promise((_, reject) => {
            call.signal?.addEventListener("abort", () => reject(call.signal?.reason), { once: true });
          });
        const answer = this.#serve(call, operation);
        if (fault === "lost answer") throw new ApiUnavailable(operation, "the connection broke");
        return answer;
      },
      watch: () => Promise.reject(new Error("A Lease is not watched")),
      close: async () => {},
    };
  }

  #serve({ method, body }: KubeCall, operation: string): KubeObject {
    const refuse = (status: number, reason: string): never => {
      throw new ApiError({ status, reason, operation, message: reason });
    };
    if (method === "GET") return structuredClone(this.lease) ?? refuse(404, "NotFound");
    const sent = structuredClone(body) as Record<string, unknown>;
    const metadata = sent.metadata as Record<string, unknown>;
    if (method === "POST") {
      if (this.lease !== undefined) refuse(409, "AlreadyExists");
      this.lease = {
        ...sent,
        metadata: { ...metadata, uid: `uid-${++this.version}`, resourceVersion: `${this.version}` },
      };
    } else {
      if (this.lease === undefined) refuse(404, "NotFound");
      const known = this.lease?.metadata as Record<string, unknown>;
      if (known.resourceVersion !== metadata.resourceVersion) refuse(409, "Conflict");
      this.lease = { ...sent, metadata: { ...metadata, resourceVersion: `${++this.version}` } };
    }
    return structuredClone(this.lease) ?? {};
  }

  get spec(): Record<string, unknown> {
    return (this.lease?.spec ?? {}) as Record<string, unknown>;
  }
}

export const TIMINGS = { durationMs: 15_000, renewDeadlineMs: 10_000, retryMs: 2_000 };

export interface LabCandidate {
  readonly election: Election;
  /** `[from, to]` by the true clock; `to` is undefined while it leads. */
  readonly terms: { readonly fromMs: number; toMs?: number }[];
  readonly leading: () => Leading | undefined;
  /** Until this is called, what it did as the leader does not end. */
  finish: () => void;
}

export interface LabOptions extends Partial<ElectionOptions> {
  readonly fault?: (call: KubeCall) => Fault;
  readonly skewMs?: number;
  /** The work of the leader goes on after the signal, until `finish`. */
  readonly isSlow?: boolean;
}

export function candidate(
  time: FakeClock,
  server: FakeServer,
  identity: string,
  options: LabOptions = {},
): LabCandidate {
  const { fault, skewMs = 0, isSlow = false, ...rest } = options;
  const terms: LabCandidate["terms"] = [];
  let current: Leading | undefined;
  const lab = { finish: () => {} };
  const election = openElection({
    ...{ namespace: "kube-system", name: "berth-controller", identity, timings: TIMINGS },
    api: server.api(fault),
    clock: time.clock(skewMs),
    now: () => new Date(1_800_000_000_000 + time.nowMs + skewMs),
    random: () => 0.5,
    lead: async (leading) => {
      current = leading;
      const term: LabCandidate["terms"][number] = { fromMs: time.nowMs };
      terms.push(term);
      await new Promise<void>((resolve) => {
        leading.signal.addEventListener("abort", () => {
          term.toMs = time.nowMs;
          if (isSlow) lab.finish = resolve;
          else resolve();
        });
      });
    },
    log: openLog("test", "silent"),
    ...rest,
  });
  return { election, terms, leading: () => current, finish: () => lab.finish() };
}

/** How long two of them led at the same time: milliseconds. */
export function overlapMs(candidates: readonly LabCandidate[], nowMs: number): number {
  const all = candidates.flatMap(({ terms }) => terms.map(({ fromMs, toMs = nowMs }) => ({ fromMs, toMs })));
  let total = 0;
  for (const [index, one] of all.entries())
    for (const other of all.slice(index + 1))
      total += Math.max(0, Math.min(one.toMs, other.toMs) - Math.max(one.fromMs, other.fromMs));
  return total;
}
