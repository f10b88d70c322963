import { describe, expect, it } from "vitest";
import {
  IN_USE_FINALIZER,
  POOL_LEAVING_MS,
  POOL_LEAVING_RECHECK_MS,
  planFinalizers,
} from "../../../../host/controller/finalizers/plan-finalizers.ts";
import { DELETED, pool } from "../conditions/judged.ts";

const SPEC = { subnet: "10.6.0.0/24" };
const finalizers = ["other.example/one", IN_USE_FINALIZER];
const fresh = pool("blue", SPEC);
const marked = pool("blue", SPEC, { metadata: { finalizers } });
const leaving = pool("blue", SPEC, { metadata: { ...DELETED.metadata, finalizers } });

function plan(one: typeof fresh, leavingMs = POOL_LEAVING_MS, isHeld = false) {
  const { mark, ask, nextMs } = planFinalizers({ pools: [one], isHeld: () => isHeld, leavingMs: () => leavingMs });
  return { mark: mark.length, ask: ask.length, nextMs };
}

describe("pool-changes: the finalizer of a pool", () => {
  it("is set at first sight, also when the specification cannot be used", () => {
    expect(plan(fresh)).toEqual({ mark: 1, ask: 0, nextMs: undefined });
    expect(plan(pool("bad", { ...SPEC, ips: ["10.6.0.9-10.6.0.1"] })).mark).toBe(1);
  });
  it.each([
    ["is left alone while the pool is not being deleted", plan(marked), 0, undefined],
    ["is not added in deletion, which the API server refuses", plan(pool("blue", SPEC, DELETED)), 0, undefined],
    ["stays while an allocation is known", plan(leaving, POOL_LEAVING_MS, true), 0, POOL_LEAVING_RECHECK_MS],
    ["stays until agents have received the deletion", plan(leaving, POOL_LEAVING_MS - 300), 0, 300],
    ["may go after that, when a list says that nothing is left", plan(leaving), 1, POOL_LEAVING_RECHECK_MS],
  ])("%s", (_, planned, ask, nextMs) => expect(planned).toEqual({ mark: 0, ask, nextMs }));
  it("is looked at again as soon as the first of several pools may go", () => {
    const others = [leaving, { ...leaving, name: "green" }, { ...leaving, name: "red" }];
    const leavingMs = ({ name }: typeof leaving) =>
      POOL_LEAVING_MS - { blue: 900, green: 300, red: 600 }[name as "red"];
    expect(planFinalizers({ pools: others, isHeld: () => false, leavingMs })).toMatchObject({ ask: [], nextMs: 300 });
  });
});
