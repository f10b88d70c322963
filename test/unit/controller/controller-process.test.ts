import { afterEach, describe, expect, it } from "vitest";
import { type ControllerProcess, openController } from "../../../host/controller/controller-process.ts";
import type { ControllerDeps, StartController } from "../../../host/controller/types.ts";
import { openLog } from "../../../host/lib/log.ts";
import { FakeClock, TIMINGS } from "../kubernetes/lease/lease-world.ts";
import { FakeCluster } from "./fake-cluster.ts";

const POOLS = "/apis/ipam.vendor.io/v1/ippools";

interface Scene {
  readonly time: FakeClock;
  readonly cluster: FakeCluster;
  readonly controller: ControllerProcess;
  /** `+` and `-` for each start and end of the part, with what its caches had then. */
  readonly told: string[];
  readonly deps: () => ControllerDeps | undefined;
  /** The part does not end before. */
  readonly finish: () => void;
}

const opened: Scene[] = [];
afterEach(async () => {
  for (const { controller, finish, time } of opened.splice(0)) {
    const closed = controller.close();
    await time.advance(10);
    finish();
    await time.advance(10_000);
    await closed;
  }
});

function open(cluster: FakeCluster, options: { isSlow?: boolean; connectionProblem?: string } = {}): Scene {
  const time = new FakeClock();
  const told: string[] = [];
  let deps: ControllerDeps | undefined;
  let finish = () => {};
  const part: StartController = (given) => {
    deps = given;
    told.push(`+ ${[...given.caches.pools.items.keys()].join()}`);
    return {
      problems: ["It is a test"],
      close: async () => {
        if (options.isSlow === true)
          await new Promise<void>((resolve) => {
            finish = resolve;
          });
        told.push("-");
      },
    };
  };
  const controller = openController({
    ...{ api: cluster.api(), controllers: { part }, configNamespace: "kube-system" },
    lease: { namespace: "kube-system", name: "berth-controller", identity: "one_1", timings: TIMINGS },
    clock: time.clock(),
    now: () => new Date(1_800_000_000_000),
    random: () => 0.5,
    connectionProblem: () => options.connectionProblem,
    log: openLog("test", "silent"),
  });
  const scene = { time, cluster, controller, told, deps: () => deps, finish: () => finish() };
  opened.push(scene);
  return scene;
}

describe("a controller", () => {
  it("starts its parts when everything is known and it leads, and not before", async () => {
    const cluster = new FakeCluster();
    cluster.set(POOLS, "blue", { apiVersion: "ipam.vendor.io/v1", kind: "IPPool", spec: { subnet: "10.0.0.0/24" } });
    cluster.held.add(POOLS);
    const { time, controller, told } = open(cluster);
    await time.advance(30_000);
    expect([told, controller.status.unread, cluster.leases.lease]).toEqual([[], ["pools"], undefined]);
    cluster.release();
    await time.advance(100);
    expect(told).toEqual(["+ blue"]);
    expect(controller.status).toMatchObject({
      ...{ identity: "one_1", isLeading: true, leader: "one_1", unread: [], parts: ["part"] },
      problems: ["It is a test"],
    });
    expect(controller.stuck).toBeUndefined();
  });

  it("says what is wrong with its credentials", async () => {
    const { controller } = open(new FakeCluster(), { connectionProblem: "The token cannot be read" });
    expect(controller.status.problems).toEqual(["The token cannot be read"]);
  });

  it("ends its parts when another one leads, and restarts them when it leads again", async () => {
    const cluster = new FakeCluster();
    const { time, controller, told, deps } = open(cluster);
    await time.advance(100);
    const first = deps()?.leading;
    const { metadata } = cluster.leases.lease as { metadata: object };
    const spec = { ...cluster.leases.spec, holderIdentity: "two_2" };
    cluster.leases.lease = { metadata: { ...metadata, resourceVersion: "9000" }, spec };
    await time.advance(3_000);
    expect([told, first?.aborted, controller.status.leader]).toEqual([["+ ", "-"], true, "two_2"]);
    expect(controller.status).toMatchObject({ isLeading: false, parts: [], problems: [] });
    await time.advance(20_000);
    expect(told).toEqual(["+ ", "-", "+ "]);
    expect(deps()?.leading).not.toBe(first);
  });

  it("says that it is stuck when a part does not end, and does not lead meanwhile", async () => {
    const cluster = new FakeCluster();
    const { time, controller, told, finish } = open(cluster, { isSlow: true });
    await time.advance(100);
    const { metadata } = cluster.leases.lease as { metadata: object };
    cluster.leases.lease = {
      metadata: { ...metadata, resourceVersion: "9000" },
      spec: { ...cluster.leases.spec, holderIdentity: "two_2" },
    };
    await time.advance(50_000);
    expect(controller.stuck).toBeUndefined();
    await time.advance(20_000);
    expect(controller.stuck).toMatch(/^The controllers have not stopped 6\d s after this process stopped leading$/);
    expect(controller.status.problems).toContain(controller.stuck);
    expect(controller.status.isLeading).toBe(false);
    finish();
    await time.advance(5_000);
    expect([controller.stuck, told]).toEqual([undefined, ["+ ", "-", "+ "]]);
  });

  it("can be closed while it still waits for its lists", async () => {
    const cluster = new FakeCluster();
    cluster.held.add(POOLS);
    const { time, controller, told } = open(cluster);
    await time.advance(100);
    await controller.close();
    expect([told, cluster.leases.calls]).toEqual([[], []]);
  });

  it("closes its parts before it gives the lease back", async () => {
    const cluster = new FakeCluster();
    const { time, controller, finish } = open(cluster, { isSlow: true });
    await time.advance(100);
    const closed = controller.close();
    await time.advance(1_000);
    expect(cluster.leases.spec.holderIdentity).toBe("one_1");
    finish();
    await time.advance(100);
    await closed;
    expect(cluster.leases.spec.holderIdentity).toBeUndefined();
    expect(cluster.watches).toBe(0);
  });
});
