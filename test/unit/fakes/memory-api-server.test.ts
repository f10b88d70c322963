import { describe, expect, it } from "vitest";
import { ADMITS_ALL } from "../../fakes/admission/admission.ts";
import { BerthAdmission } from "../../fakes/admission/berth-admission.ts";
import { MemoryApiServer } from "../../fakes/memory-api-server.ts";
import { describeApiServer } from "./api-server-suite.ts";

describe.each([
  ["without schemas", ADMITS_ALL],
  ["with Berth's schemas and policies", new BerthAdmission()],
])("the API server in memory %s", (_, admission) => {
  const serves = { "/apis/ipam.vendor.io/v1/subnets": { apiVersion: "ipam.vendor.io/v1", kind: "Subnet" } };
  const api = new MemoryApiServer({ serves, admission }).client();
  describeApiServer(async () => api);
});

describe("pods of two namespaces", () => {
  const pods = (namespace: string) => `/api/v1/namespaces/${namespace}/pods`;
  const kind = { apiVersion: "v1", kind: "Pod", everywhere: "/api/v1/pods" };
  const server = new MemoryApiServer({ serves: { [pods("b")]: kind, [pods("a")]: kind } });
  const put = (namespace: string, name: string) => server.put(pods(namespace), name, { metadata: { namespace } });

  it("are in one list, by namespace and name, and in one watch, in the order of their versions", async () => {
    put("b", "one");
    const { resourceVersion } = put("a", "two").metadata;
    put("a", "one");
    const list = await server.client().call({ method: "GET", path: "/api/v1/pods", query: { limit: 500 } });
    expect(list.items).toMatchObject([
      { metadata: { name: "one", namespace: "a" } },
      { metadata: { name: "two" } },
      { metadata: { namespace: "b" } },
    ]);
    const seen: unknown[] = [];
    const ending = new AbortController();
    const watching = server
      .client(undefined, (_path, deliver) => deliver())
      .watch({
        path: "/api/v1/pods",
        query: { resourceVersion },
        signal: ending.signal,
        onEvent: ({ object }) => seen.push(Object(object.metadata).namespace),
      });
    put("b", "one");
    expect(server.watches).toBe(1);
    ending.abort();
    await expect(watching).rejects.toThrow();
    expect([seen, server.watches]).toEqual([["a", "b"], 0]);
  });
});
