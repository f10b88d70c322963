import { describe, expect, it } from "vitest";
import { type Patch, patchIfSame } from "../../../host/controller/patch.ts";
import { ApiError, type KubeApi, type KubeCall } from "../../../host/kubernetes/kube-api.ts";

const signal = new AbortController().signal;
const PATCH: Patch = { path: "/x", uid: "u-1", resourceVersion: "7", body: { status: { used: 1 } }, signal };

function server(answer: () => object): { readonly api: Pick<KubeApi, "call">; readonly calls: KubeCall[] } {
  const calls: KubeCall[] = [];
  const call: KubeApi["call"] = async (one) => {
    calls.push(one);
    return { ...answer() };
  };
  return { calls, api: { call } };
}

const refused = (status: number) => () => {
  throw new ApiError({ status, reason: "", operation: "PATCH /x", message: "no" });
};

describe("a write to an object that is known", () => {
  it("names the object and its version, and gives it as it is then", async () => {
    const { api, calls } = server(() => ({ kind: "X" }));
    expect(await patchIfSame(api, PATCH)).toEqual({ kind: "X" });
    const body = { metadata: { uid: "u-1", resourceVersion: "7" }, status: { used: 1 } };
    expect(calls).toEqual([{ method: "PATCH", path: "/x", body, signal }]);
  });
  it("keeps its fields of the metadata", async () => {
    const { api, calls } = server(() => ({}));
    await patchIfSame(api, { ...PATCH, body: { metadata: { finalizers: [] } } });
    expect(calls[0]?.body).toEqual({ metadata: { finalizers: [], uid: "u-1", resourceVersion: "7" } });
  });
  it.each([404, 409])("gives nothing when the API server answers %i", async (status) =>
    expect(await patchIfSame(server(refused(status)).api, PATCH)).toBeUndefined(),
  );
  it.each([403, 422, 500])("fails when the API server answers %i", (status) =>
    expect(patchIfSame(server(refused(status)).api, PATCH)).rejects.toThrow("no"),
  );
});
