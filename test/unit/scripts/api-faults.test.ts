import { describe, expect, it } from "vitest";
import { classify, type Fault, FaultRules, seededRandom } from "../../../scripts/lab/cluster/api-faults.ts";

const RESET: Fault = { kind: "reset-before" };
const post = { method: "POST", url: "/apis/ipam.vendor.io/v1/ipallocations" };

describe("what a request is to the API server", () => {
  it.each([
    ["GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1", "list", "pods"],
    ["GET", "/api/v1/pods?watch=true&resourceVersion=7", "watch", "pods"],
    ["GET", "/api/v1/pods?resourceVersion=7&watch=1", "watch", "pods"],
    ["GET", "/api/v1/namespaces", "list", "namespaces"],
    ["GET", "/api/v1/namespaces/shop", "get", "namespaces"],
    ["GET", "/api/v1/namespaces/shop/pods", "list", "pods"],
    ["GET", "/api/v1/namespaces/shop/pods/web-0", "get", "pods"],
    ["PATCH", "/api/v1/namespaces/shop/pods/web-0/status", "patch", "pods/status"],
    ["POST", "/api/v1/namespaces/shop/pods/web-0/binding", "post", "pods/binding"],
    ["GET", "/apis/ipam.vendor.io/v1/ipallocations/10.6.0.1", "get", "ipallocations"],
    ["PUT", "/apis/ipam.vendor.io/v1/ipallocations/10.6.0.1", "put", "ipallocations"],
    ["DELETE", "/apis/ipam.vendor.io/v1/ipallocations/10.6.0.1", "delete", "ipallocations"],
    ["POST", "/apis/ipam.vendor.io/v1/ipallocations", "post", "ipallocations"],
    ["GET", "/readyz", "get", ""],
    ["GET", "/apis/ipam.vendor.io/v1", "get", ""],
  ])("%s %s", (method, url, verb, resource) => {
    expect(classify({ method, url })).toEqual({ verb, resource });
  });
});

describe("rules", () => {
  it("the first that fits is applied", () => {
    const rules = new FaultRules(() => 0);
    rules.add({ verbs: ["get"], fault: { kind: "hang-before" } });
    rules.add({ path: /ipallocations/, fault: RESET });
    rules.add({ fault: { kind: "hang-after" } });
    expect(rules.choose(post)).toBe(RESET);
  });

  it("none without a rule, after its removal, and when it is spent", () => {
    const rules = new FaultRules(() => 0);
    expect(rules.choose(post)).toBeUndefined();
    const rule = rules.add({ fault: RESET, times: 1 });
    expect([rules.choose(post), rules.choose(post), rule.hits()]).toEqual([RESET, undefined, 1]);
    const endless = rules.add({ fault: RESET });
    endless.remove();
    endless.remove();
    rules.add({ fault: RESET });
    rules.clear();
    expect(rules.choose(post)).toBeUndefined();
  });

  it("a probability is met, and the seed decides which calls it strikes", () => {
    const strikes = (seed: number): string => {
      const rules = new FaultRules(seededRandom(seed));
      rules.add({ fault: RESET, probability: 0.2 });
      return Array.from({ length: 1_000 }, () => (rules.choose(post) === undefined ? "-" : "x")).join("");
    };
    expect(strikes(7)).toBe(strikes(7));
    expect(strikes(7)).not.toBe(strikes(8));
    const count = strikes(7).replaceAll("-", "").length;
    expect(count).toBeGreaterThan(150);
    expect(count).toBeLessThan(250);
  });

  it("a delay is within its range", () => {
    const range = { minMs: 10, maxMs: 30 };
    expect(new FaultRules(() => 0).delayMs(range)).toBe(10);
    expect(new FaultRules(() => 0.5).delayMs(range)).toBe(20);
  });
});
