import { afterEach, describe, expect, it } from "vitest";
import { openController } from "../../../host/controller/controller-process.ts";
import type { ControllerDeps, StartController } from "../../../host/controller/types.ts";
import { openLog } from "../../../host/lib/log.ts";
import { HeldCalls, MemoryApiServer } from "../../fakes/memory-api-server.ts";
import { LEASES, NAME, TIMINGS } from "../../world/candidates.ts";
import { TestClock } from "../../world/clock.ts";

const POOLS = "/apis/ipam.vendor.io/v1/ippools";

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

interface Options {
  readonly held?: string[];
  readonly isSlow?: boolean;
  readonly connectionProblem?: string;
}

function open(options: Options = {}) {
  const serves = { [LEASES]: { apiVersion: "coordination.k8s.io/v1", kind: "Lease" } };
  const cluster = new MemoryApiServer({ serves, isOpen: true });
  const held = new HeldCalls(...(options.held ?? []));
  const time = new TestClock();
  /** `+` and `-` for each start and end of the part, with the content of its caches then. */
  const output: string[] = [];
  let deps: ControllerDeps | undefined;
  /** A slow part does not end before. */
  const finished = Promise.withResolvers<void>();
  const part: StartController = (given) => {
    deps = given;
    output.push(`+ ${[...given.caches.pools.items.keys()].join()}`);
    return {
      problems: ["It is a test"],
      close: async () => {
        if (options.isSlow === true) await finished.promise;
        output.push("-");
      },
    };
  };
  const controller = openController({
    ...{ api: cluster.client(held.gate), controllers: { part }, configNamespace: "kube-system" },
    lease: { namespace: "kube-system", name: "berth-controller", identity: "one_1", timings: TIMINGS },
    clock: time,
    now: () => new Date(1_800_000_000_000),
    random: () => 0.5,
    connectionProblem: () => options.connectionProblem,
    log: openLog("test", "silent"),
  });
  const lease = () => ({ ...cluster.collection(LEASES).get(NAME)?.spec });
  /** Another process takes the lease. */
  const steal = () => {
    const spec = { ...lease(), holderIdentity: "two_2" };
    cluster.put(LEASES, NAME, { ...cluster.collection(LEASES).get(NAME), spec });
  };
  const finish = finished.resolve;
  ends.push(async () => {
    const closed = controller.close();
    await time.advance(10);
    finish();
    await time.advance(10_000);
    await closed;
  });
  return { time, held, cluster, lease, steal, controller, output, deps: () => deps, finish };
}

describe("a controller", () => {
  it("starts its parts when everything is known and it leads, and not before", async () => {
    const { time, cluster, held, controller, output } = open({ held: [POOLS], connectionProblem: "No token" });
    cluster.put(POOLS, "blue", { apiVersion: "ipam.vendor.io/v1", kind: "IPPool", spec: { subnet: "10.0.0.0/24" } });
    await time.advance(30_000);
    expect([output, controller.status.unread, cluster.collection(LEASES).size]).toEqual([[], ["pools"], 0]);
    held.release();
    // Listed objects are decoded in turns of the event loop.
    await expect.poll(() => time.advance(100).then(() => output)).toEqual(["+ blue"]);
    expect(controller.status).toMatchObject({
      ...{ identity: "one_1", isLeading: true, leader: "one_1", unread: [], parts: ["part"] },
      problems: ["No token", "It is a test"],
    });
    expect(controller.stuck).toBeUndefined();
  });

  it("says that it is stuck when a part does not end, and does not lead meanwhile", async () => {
    const { time, controller, output, finish, steal } = open({ isSlow: true });
    await time.advance(100);
    steal();
    await time.advance(50_000);
    expect(controller.stuck).toBeUndefined();
    await time.advance(20_000);
    expect(controller.stuck).toMatch(/^The controllers have not stopped 6\d s after this process stopped leading$/);
    expect(controller.status.problems).toContain(controller.stuck);
    expect(controller.status.isLeading).toBe(false);
    finish();
    await time.advance(5_000);
    expect([controller.stuck, output]).toEqual([undefined, ["+ ", "-", "+ "]]);
  });

  it("can be closed while it still waits for its lists", async () => {
    const { time, cluster, controller, output } = open({ held: [POOLS] });
    await time.advance(100);
    await controller.close();
    expect([output, cluster.collection(LEASES).size]).toEqual([[], 0]);
  });
});
