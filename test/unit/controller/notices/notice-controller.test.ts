import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type CachedAllocation, openCachedDecoder } from "../../../../host/controller/cached-allocation.ts";
import { NOTICE_REST_MS, startNotices } from "../../../../host/controller/notices/notice-controller.ts";
import type { Controller, ControllerDeps } from "../../../../host/controller/types.ts";
import { ApiError, type KubeCall } from "../../../../host/kubernetes/kube-api.ts";
import type { Change } from "../../../../host/kubernetes/mirror.ts";
import { NOTICE_ANNOTATION, parseNotice } from "../../../../host/resources/allocation-notice.ts";
import { MemoryApiServer, type StoredObject } from "../../../fakes/memory-api-server.ts";
import { recordLog } from "../../../world/recorded-log.ts";

const NODES = "/api/v1/nodes";
const PODS = "/api/v1/namespaces/shop/pods";
const SERVES = { [NODES]: { apiVersion: "v1", kind: "Node" }, [PODS]: { apiVersion: "v1", kind: "Pod" } };
const decode = openCachedDecoder();

function bound(address: string, node = "n1", pod = "web-0", annotations = {}, more = {}): CachedAllocation {
  const holders = [{ namespace: "shop", pod, podUID: "p", interface: "eth0", node }];
  const spec = { address, prefixLength: 24, pool: "blue", state: "Bound", node, holders, ...more };
  const metadata = { name: address, uid: "u", resourceVersion: "5", annotations };
  return decode({ apiVersion: "ipam.vendor.io/v1", kind: "IPAllocation", metadata, spec });
}

/** A leader, the pods and nodes of its cluster, and its writes. */
class Scene {
  readonly nodes = new Map<string, object>();
  /** `n1: 10.6.0.7 10.6.0.8` */
  readonly told: string[] = [];
  readonly calls: string[] = [];
  readonly lines: readonly string[];
  answer: (call: KubeCall) => void = () => {};
  readonly #server = new MemoryApiServer({ serves: SERVES });
  readonly #leading = new AbortController();
  readonly #part: Controller;
  #report: (change: Change<CachedAllocation>) => void = () => {};

  constructor() {
    const { log, lines } = recordLog();
    this.lines = lines;
    const none = { items: new Map(), problems: [], subscribe: () => () => {} };
    const subscribe = (listener: (change: Change<CachedAllocation>) => void) => {
      this.#report = listener;
      return () => {};
    };
    for (const name of ["n1", "n2"]) this.setReady(name, "True");
    const api = this.#server.client(async (call, commit) => {
      this.calls.push(`${call.method} ${call.path}`);
      this.answer(call);
      return commit();
    });
    this.#server.onWritten = ({ collection, after }) => {
      if (collection === NODES && after !== undefined) this.#noteTold(after);
    };
    this.#part = startNotices({
      ...{ log, random: () => 0, leading: this.#leading.signal, api },
      caches: { nodes: { ...none, items: this.nodes }, allocations: { ...none, subscribe } },
      clock: { nowMs: () => 0, now: () => new Date() },
    } as unknown as ControllerDeps);
  }

  get problems(): readonly string[] {
    return this.#part.problems;
  }

  /** Calls of the method are answered so. */
  refuse(method: KubeCall["method"], status: number): void {
    this.answer = ({ method: sent, path: operation }) => {
      if (sent === method) throw new ApiError({ status, reason: "Refused", operation, message: `status ${status}` });
    };
  }

  setReady(name: string, ready: string): void {
    this.nodes.set(name, { taints: [], ready });
    this.#server.put(NODES, name, {});
  }

  setPod(name: string, changes: { node?: string; phase?: string; isDeleting?: boolean } = {}): void {
    const { node = "n1", phase = "Running", isDeleting = false } = changes;
    const deleting = isDeleting ? { deletionTimestamp: "2026-11-20T04:00:00Z" } : {};
    const metadata = { namespace: "shop", name, uid: "p", ...deleting };
    this.#server.put(PODS, name, { kind: "Pod", metadata, spec: { nodeName: node }, status: { phase } });
  }

  #noteTold({ metadata }: StoredObject): void {
    const notice = metadata.annotations?.[NOTICE_ANNOTATION];
    if (notice === undefined) return;
    const names = parseNotice(notice);
    this.told.push(`${metadata.name}: ${names === "all" ? names : names.join(" ")}`);
  }

  vanish(before: CachedAllocation): void {
    this.#report({ kind: "gone", key: before.name, before });
  }

  appear(value: CachedAllocation): void {
    this.#report({ kind: "set", key: value.name, value, before: undefined });
  }

  resign(): void {
    this.#leading.abort(new Error("It leads no more"));
  }

  close = (): Promise<void> => this.#part.close();
}

let scene: Scene;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date", "performance"] });
  scene = new Scene();
});

afterEach(async () => {
  scene.resign();
  await scene.close();
  vi.useRealTimers();
});

const pass = (milliseconds = 0): Promise<unknown> => vi.advanceTimersByTimeAsync(milliseconds);

const AWAY: [string, () => void][] = [
  ["is gone", () => {}],
  ["has finished", () => scene.setPod("web-0", { phase: "Succeeded" })],
  ["is on another node by now", () => scene.setPod("web-0", { node: "n2" })],
];

describe("recreate: the agent of an allocation that vanished is told", () => {
  it.each([0, 1, 2, 3, 4, 5])("also when the rest after an earlier one ended %i microtasks ago", async (microtasks) => {
    scene.setPod("web-0");
    scene.vanish(bound("10.6.0.7"));
    await pass();
    vi.advanceTimersByTime(NOTICE_REST_MS);
    for (let count = 0; count < microtasks; count++) await Promise.resolve();
    scene.vanish(bound("10.6.0.8"));
    await pass();
    expect(scene.told).toEqual(["n1: 10.6.0.7", "n1: 10.6.0.8"]);
  });

  it.each(AWAY)("not if its pod %s", async (_, arrange) => {
    arrange();
    scene.vanish(bound("10.6.0.7"));
    await pass(NOTICE_REST_MS);
    expect(scene.told).toEqual([]);
    expect(scene.calls).toEqual(["GET /api/v1/namespaces/shop/pods/web-0"]);
  });

  it.each([
    ["if its pod is there", () => scene.setPod("web-0")],
    ["even if its pod is terminating, which may take hours", () => scene.setPod("web-0", { isDeleting: true })],
    ["even if its pod is gone, when its node is lost", () => scene.setReady("n1", "Unknown")],
    ["even if its pod cannot be read", () => scene.refuse("GET", 500)],
  ])("%s", async (_, arrange) => {
    arrange();
    scene.vanish(bound("10.6.0.7"));
    await pass();
    expect([scene.told, scene.problems]).toEqual([["n1: 10.6.0.7"], []]);
  });

  it("of several at once, each node for itself, and once for those within the rest", async () => {
    scene.setPod("web-0");
    scene.setPod("web-1", { node: "n2" });
    for (const last of [1, 2]) scene.vanish(bound(`10.6.0.${last}`));
    scene.vanish(bound("10.6.0.9", "n2", "web-1"));
    await pass();
    for (const last of [3, 4]) scene.vanish(bound(`10.6.0.${last}`));
    await pass(NOTICE_REST_MS - 1);
    expect(scene.told.toSorted()).toEqual(["n1: 10.6.0.1", "n2: 10.6.0.9"]);
    await pass(1);
    expect(scene.told.at(-1)).toBe("n1: 10.6.0.2 10.6.0.3 10.6.0.4");
    await pass(10 * NOTICE_REST_MS);
    expect(scene.told).toHaveLength(3);
  });

  it("again until the API server takes it, and says why it does not", async () => {
    scene.setPod("web-0");
    scene.refuse("PATCH", 403);
    scene.vanish(bound("10.6.0.7"));
    await pass();
    expect(scene.problems).toEqual([
      expect.stringMatching(/^Cannot tell the agent of node "n1" to read allocations again: .*status 403/),
    ]);
    scene.answer = () => {};
    await pass(60_000);
    expect([scene.told, scene.problems]).toEqual([["n1: 10.6.0.7"], []]);
    expect(scene.lines.filter((line) => line.startsWith("warn"))).toEqual(["warn Notifying an agent failed; retrying"]);
  });

  it("not while its node has no object: the agent compares everything when it has one", async () => {
    scene.setPod("web-0");
    scene.refuse("PATCH", 404);
    scene.vanish(bound("10.6.0.7"));
    await pass(60_000);
    expect([scene.told, scene.problems, scene.calls.length]).toEqual([[], [], 2]);
  });

  it("by no process that leads no more", async () => {
    scene.setPod("web-0");
    scene.answer = ({ method }) => {
      if (method === "GET") scene.resign();
    };
    scene.vanish(bound("10.6.0.7"));
    await pass();
    scene.vanish(bound("10.6.0.8"));
    await pass(60_000);
    expect(scene.calls.length).toBeLessThanOrEqual(2);
    expect(scene.lines.filter((line) => line.startsWith("error"))).toEqual([]);
  });
});

describe("retention: the agent of a member's allocation that appears is told", () => {
  const workload = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w", member: "web-0" };
  const restored = bound("10.6.0.7", "n1", "web-0", {}, { workload });

  it.each<(typeof AWAY)[number]>([...AWAY, ["cannot be read", () => scene.refuse("GET", 500)]])(
    "if its pod %s",
    async (_, arrange) => {
      arrange();
      scene.appear(restored);
      await pass();
      expect(scene.told).toEqual(["n1: 10.6.0.7"]);
    },
  );

  it.each([["True"], ["Unknown"]])("not if its pod is there, and the node is ready: %s", async (ready) => {
    scene.setReady("n1", ready);
    scene.setPod("web-0", { isDeleting: true });
    scene.appear(restored);
    await pass(NOTICE_REST_MS);
    expect([scene.told, scene.calls.length]).toEqual([[], 1]);
  });

  it("in any case if it has just vanished", async () => {
    scene.setPod("web-9");
    scene.vanish(bound("10.6.0.8", "n1", "web-9"));
    await pass();
    scene.vanish(bound("10.6.0.7"));
    scene.appear(restored);
    await pass(NOTICE_REST_MS);
    expect(scene.told).toEqual(["n1: 10.6.0.8", "n1: 10.6.0.7"]);
    expect(scene.calls.filter((call) => call.startsWith("GET"))).toHaveLength(1);
  });
});
