import { describe, expect, it } from "vitest";
import { openLeaderApi, startLeadership } from "../../../host/controller/leadership.ts";
import type { ControllerDeps, StartController } from "../../../host/controller/types.ts";
import type { KubeApi, KubeCall } from "../../../host/kubernetes/kube-api.ts";
import { LeadingTime } from "../../../host/kubernetes/lease/leading.ts";
import { openLog } from "../../../host/lib/log.ts";
import { TestClock } from "../../world/clock.ts";

/** Parts of a test look at their log alone. */
const deps = { log: openLog("test", "silent") } as ControllerDeps;

function playParts(...names: string[]) {
  const events: string[] = [];
  const part =
    (name: string, close: () => Promise<void> = async () => {}): StartController =>
    () => {
      events.push(`+${name}`);
      return {
        problems: [],
        close: async () => {
          await close();
          events.push(`-${name}`);
        },
      };
    };
  return { events, part, parts: Object.fromEntries(names.map((name) => [name, part(name)])) };
}

describe("a time of leading", () => {
  it("begins its parts in order, and ends them in the opposite order, one after the other", async () => {
    const { events, parts } = playParts("a", "b", "c");
    const leadership = startLeadership(parts, deps);
    expect(events).toEqual(["+a", "+b", "+c"]);
    await leadership.close();
    expect(events.slice(3)).toEqual(["-c", "-b", "-a"]);
  });

  it("continues without a part that cannot be started, or closed", async () => {
    const { events, part } = playParts();
    const broken = (): never => {
      throw new Error("no way");
    };
    const b = part("b", () => Promise.reject(new Error("no end")));
    const leadership = startLeadership({ a: part("a"), broken, b }, deps);
    expect(leadership.problems).toEqual({ broken: ['The part "broken" did not start: no way'], a: [], b: [] });
    await leadership.close();
    expect(events).toEqual(["+a", "+b", "-a"]);
  });
});

describe("the API server as the leader's parts have it", () => {
  const open = () => {
    const time = new TestClock();
    const leading = new LeadingTime(time, time.ms + 10_000);
    const calls: KubeCall[] = [];
    const api: KubeApi = {
      call: (call) => {
        calls.push(call);
        return new Promise((_, reject) => call.signal?.addEventListener("abort", () => reject(call.signal?.reason)));
      },
      watch: async () => {},
    };
    return { time, leading, calls, api: openLeaderApi(api, leading) };
  };
  const call = { method: "PATCH", path: "/x" } as const;

  it("ends a call when leading ends, also one without the signal, or with another one", async () => {
    const { leading, api } = open();
    const other = new AbortController();
    const signals = [{}, { signal: leading.signal }, { signal: other.signal }];
    const all = signals.map((more) => api.call({ ...call, ...more }));
    leading.end("Over");
    for (const each of all) await expect(each).rejects.toThrow("Over");
  });

  it("a call ends with its own signal, too", async () => {
    const { leading, api } = open();
    const own = new AbortController();
    const waiting = api.call({ ...call, signal: own.signal });
    own.abort(new Error("Enough"));
    await expect(waiting).rejects.toThrow("Enough");
    expect(leading.signal.aborted).toBe(false);
  });

  it("sends nothing after the time is over, although no timer has fired yet", async () => {
    const { time, api, calls, leading } = open();
    time.jump(10_000);
    expect(leading.signal.aborted).toBe(false);
    await expect(api.call(call)).rejects.toThrow("The lease could not be renewed in time");
    expect(calls).toEqual([]);
  });
});
