/** Candidates for one Lease of an API server in memory, on one clock. */
import { ApiError, ApiUnavailable, type KubeCall } from "../../host/kubernetes/kube-api.ts";
import { Election, type ElectionOptions } from "../../host/kubernetes/lease/election.ts";
import type { Leading } from "../../host/kubernetes/lease/leading.ts";
import { openLog } from "../../host/lib/log.ts";
import { type Gate, MemoryApiServer } from "../fakes/memory-api-server.ts";
import type { StoredObject } from "../fakes/memory-objects.ts";
import { TestClock } from "./clock.ts";

export const LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
export const NAME = "berth-controller";
export const TIMINGS = { durationMs: 15_000, renewDeadlineMs: 10_000, retryMs: 2_000 };

/** "slow": an admission webhook of ten seconds keeps writes, unless the client has gone meanwhile. */
export type Fault = "slow" | "ok" | "unreachable" | "lost answer" | "hang" | "forbidden";

export interface Candidate {
  readonly election: Election;
  /** `[from, to]` by the true clock; `to` is undefined while it leads. */
  readonly terms: { readonly fromMs: number; toMs?: number }[];
  readonly leading: () => Leading | undefined;
  /** Until this is called, its work as the leader does not end. */
  finish: () => void;
}

export interface CandidateOptions extends Partial<ElectionOptions> {
  readonly fault?: (call: KubeCall) => Fault;
  /** Offset of its machine's clock. */
  readonly skewMs?: number;
  /** The work of the leader goes on after the signal, until `finish`. */
  readonly isSlow?: boolean;
}

/** A webhook's default time-out, and the rest of a call: milliseconds. */
const SLOW_MS = 10_200;

function gateOf(faultOf: (call: KubeCall) => Fault, time: TestClock): Gate {
  return async (call, commit) => {
    const fault = faultOf(call);
    const operation = `${call.method} ${call.path}`;
    if (fault === "unreachable") throw new ApiUnavailable(operation, "no route");
    if (fault === "forbidden")
      throw new ApiError({ status: 403, reason: "Forbidden", operation, message: "leases are forbidden" });
    if (fault === "hang")
      return new Promise((_, reject) => {
        call.signal?.addEventListener("abort", () => reject(call.signal?.reason), { once: true });
      });
    if (fault === "slow" && call.method !== "GET")
      await time.pause(Math.min(SLOW_MS, call.attemptMs ?? 5_000), call.signal ?? new AbortController().signal);
    if (fault === "slow" && (call.attemptMs ?? 5_000) < SLOW_MS)
      throw new ApiUnavailable(operation, "the attempt ended");
    const answer = commit();
    if (fault === "lost answer") throw new ApiUnavailable(operation, "the connection broke");
    return answer;
  };
}

export class Lab {
  readonly time = new TestClock();
  readonly server = new MemoryApiServer({
    serves: { [LEASES]: { apiVersion: "coordination.k8s.io/v1", kind: "Lease" } },
  });
  readonly all: Candidate[] = [];
  /** To the lease. */
  writes = 0;

  constructor() {
    this.server.onWritten = () => void this.writes++;
  }

  get lease(): StoredObject | undefined {
    return this.server.collection(LEASES).get(NAME);
  }

  get spec(): StoredObject["spec"] {
    return this.lease?.spec ?? {};
  }

  /** A write to the lease by another process. */
  edit(spec: object, metadata: object = {}): void {
    const { lease } = this;
    this.server.put(LEASES, NAME, { metadata: { ...lease?.metadata, ...metadata }, spec: { ...lease?.spec, ...spec } });
  }

  candidate(identity: string, options: CandidateOptions = {}): Candidate {
    const { fault = () => "ok", skewMs = 0, isSlow = false, ...rest } = options;
    const { time } = this;
    const terms: Candidate["terms"] = [];
    let current: Leading | undefined;
    const candidate = { finish: () => {} };
    const election = new Election({
      ...{ namespace: "kube-system", name: NAME, identity, timings: TIMINGS, random: () => 0.5 },
      ...{ api: this.server.client(gateOf(fault, time)), log: openLog("test", "silent") },
      clock: { nowMs: () => time.ms + skewMs, pause: time.pause },
      now: () => new Date(1_800_000_000_000 + time.ms + skewMs),
      lead: async (leading) => {
        current = leading;
        const term: Candidate["terms"][number] = { fromMs: time.ms };
        terms.push(term);
        await new Promise<void>((resolve) => {
          leading.signal.addEventListener("abort", () => {
            term.toMs = time.ms;
            if (isSlow) candidate.finish = resolve;
            else resolve();
          });
        });
      },
      ...rest,
    });
    const opened = { election, terms, leading: () => current, finish: () => candidate.finish() };
    this.all.push(opened);
    return opened;
  }

  /** Time for which two of all candidates led at once: milliseconds. */
  get overlapMs(): number {
    const terms = this.all.flatMap((each) => each.terms.map(({ fromMs, toMs = this.time.ms }) => ({ fromMs, toMs })));
    return terms
      .flatMap((one, index) => terms.slice(index + 1).map((other) => [one, other] as const))
      .map(([one, other]) => Math.min(one.toMs, other.toMs) - Math.max(one.fromMs, other.fromMs))
      .reduce((sum, milliseconds) => sum + Math.max(0, milliseconds), 0);
  }
}
