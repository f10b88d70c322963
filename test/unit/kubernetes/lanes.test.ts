import { describe, expect, it } from "vitest";
import { Lanes, MAX_BACKGROUND_CALLS, MAX_CONNECTIONS, MAX_POD_CALLS } from "../../../host/kubernetes/http/lanes.ts";
import type { Lane } from "../../../host/kubernetes/kube-api.ts";

const never = new AbortController().signal;

/** Lets promises that are settled be heard. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

function enterAll(lanes: Lanes, lane: Lane, count: number, order: string[]): void {
  for (let index = 0; index < count; index++) lanes.enter(lane, never).then(() => order.push(`${lane} ${index}`));
}

describe("lanes", () => {
  it("let background calls take their share only", async () => {
    const lanes = new Lanes();
    const order: string[] = [];
    enterAll(lanes, "background", 10, order);
    await settle();
    expect(order).toHaveLength(MAX_BACKGROUND_CALLS);
    expect(lanes.waiting).toBe(10 - MAX_BACKGROUND_CALLS);
  });

  it("leave a place for background calls", async () => {
    const lanes = new Lanes();
    const order: string[] = [];
    enterAll(lanes, "pod", 20, order);
    enterAll(lanes, "background", 2, order);
    await settle();
    expect(order).toHaveLength(MAX_CONNECTIONS);
    expect(order.filter((one) => one.startsWith("pod"))).toHaveLength(MAX_POD_CALLS);
  });

  it("let pods pass background calls that wait longer, each lane in order", async () => {
    const lanes = new Lanes();
    const order: string[] = [];
    enterAll(lanes, "pod", MAX_POD_CALLS, []);
    enterAll(lanes, "background", 3, order);
    enterAll(lanes, "pod", 2, order);
    await settle();
    expect(order).toEqual(["background 0"]);
    for (let turn = 0; turn < 2; turn++) {
      lanes.leave("pod");
      await settle();
    }
    expect(order).toEqual(["background 0", "pod 0", "pod 1"]);
    lanes.leave("pod");
    await settle();
    expect(order).toEqual(["background 0", "pod 0", "pod 1", "background 1"]);
  });

  it("forget who gives up while waiting", async () => {
    const lanes = new Lanes();
    const order: string[] = [];
    enterAll(lanes, "background", MAX_BACKGROUND_CALLS, []);
    const controller = new AbortController();
    const waiting = lanes.enter("background", controller.signal);
    enterAll(lanes, "background", 1, order);
    controller.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    expect(lanes.waiting).toBe(1);
    lanes.leave("background");
    await settle();
    expect(order).toEqual(["background 0"]);
    expect(lanes.underWay).toBe(MAX_BACKGROUND_CALLS);
  });

  it("never let in who has given up before", async () => {
    const lanes = new Lanes();
    await expect(lanes.enter("pod", AbortSignal.abort(new Error("too late")))).rejects.toThrow("too late");
    expect(lanes.underWay).toBe(0);
  });
});
