import { describe, expect, it, vi } from "vitest";
import { ApiError, ApiUnavailable, type KubeCall, type KubeObject } from "../../../host/kubernetes/kube-api.ts";
import { RefusalsOf, RefusedWrite, RefusedWrites, type RestTerms } from "../../../host/kubernetes/refused-writes.ts";

const POOLS = "/apis/ipam.vendor.io/v1/ippools";

const refusal = (status: number, message = "no label", reason = "Forbidden") =>
  new ApiError({ status, reason, operation: "PATCH x", message });

/** A server that answers with `answer`, and a clock that stands still. */
class Scene {
  ms = 0;
  answer: Error | undefined = refusal(403);
  readonly sent: string[] = [];
  readonly told: string[] = [];
  readonly refused = new RefusedWrites({ nowMs: () => this.ms, random: () => 0 });
  #version = 1;

  patch(name = "blue", { part = "one", version = "1", ...more }: PatchOptions = {}): Promise<unknown> {
    const onRefused: RestTerms["onRefused"] = ({ path }, { message }) => void this.told.push(`${path}: ${message}`);
    const server = { call: (call: KubeCall) => this.#call(call), watch: async () => {} };
    const body = { metadata: { resourceVersion: version } };
    return this.refused
      .apiFor(server, { part, onRefused })
      .call({ method: "PATCH", path: `${POOLS}/${name}`, body, ...more })
      .catch((error: unknown) => error);
  }

  /** Tries every `stepMs`. Returns the seconds in which it was sent. */
  async hammer(untilMs: number, act = (): Promise<unknown> => this.patch(), stepMs = 50): Promise<readonly number[]> {
    for (; this.ms <= untilMs; this.ms += stepMs) await act();
    return this.sent.splice(0).map((line) => Number(line.split(" ")[0]) / 1_000);
  }

  async #call({ method, path }: KubeCall): Promise<KubeObject> {
    this.sent.push(`${this.ms} ${method} ${path.slice(POOLS.length)}`);
    if (this.answer !== undefined) throw this.answer;
    return { metadata: { resourceVersion: String(++this.#version) } };
  }
}

type PatchOptions = Partial<KubeCall> & { readonly part?: string; readonly version?: string };

describe("a refused write", () => {
  it("is sent again after pauses that double up to a minute, and is answered with the refusal meanwhile", async () => {
    const scene = new Scene();
    expect(await scene.hammer(250_000)).toEqual([0, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 124, 184, 244]);
    expect(await scene.patch()).toMatchObject({ status: 403, message: "no label", restMs: 53_950 });
  });

  it("is reported once, when it has lasted for two seconds", async () => {
    const scene = new Scene();
    const listener = vi.fn();
    scene.refused.subscribe(listener);
    await scene.hammer(1_900);
    const before = await scene.patch();
    expect([scene.told, scene.refused.find("one", `${POOLS}/blue`)]).toEqual([[], undefined]);
    expect(before).toMatchObject({ isLasting: false });
    await scene.hammer(90_000);
    expect([scene.told, listener.mock.calls.length]).toEqual([[`${POOLS}/blue: no label`], 1]);
    expect(scene.refused.find("one", `${POOLS}/blue`)?.message).toBe("no label");
    expect(await scene.patch()).toMatchObject({ isLasting: true });
  });

  it("is no news after a change of the object, unless the server says something else", async () => {
    const scene = new Scene();
    await scene.hammer(10_000);
    await scene.patch("blue", { version: "2" });
    expect([scene.told.length, scene.refused.find("one", `${POOLS}/blue`)?.message]).toEqual([1, "no label"]);
    scene.answer = refusal(403, "no owner");
    await scene.patch("blue", { version: "3" });
    expect(scene.told).toEqual([`${POOLS}/blue: no label`, `${POOLS}/blue: no owner`]);
  });

  it("is sent at once when the object has changed, or the write is another one", async () => {
    const scene = new Scene();
    await scene.hammer(20_000);
    await scene.patch("blue", { version: "2" });
    const body = { metadata: { resourceVersion: "2" }, spec: { ips: ["10.0.0.1"] } };
    await scene.patch("blue", { version: "2", body });
    expect(scene.sent.length).toBe(2);
  });

  it.each([
    [403, "rests on when the object was changed by an own write", []],
    [409, "is sent at the version of an own write, whose answer came after the conflict", ["0 PATCH /blue"]],
  ])("with %i %s", async (status, _, again) => {
    const scene = new Scene();
    scene.answer = refusal(status);
    await scene.patch();
    scene.answer = undefined;
    await scene.patch("blue/status", { part: "two" });
    await scene.patch("blue", { version: "2" });
    expect(scene.sent).toEqual(["0 PATCH /blue", "0 PATCH /blue/status", ...again]);
  });

  it("of one part, of one verb or of a subresource does not keep the others", async () => {
    const scene = new Scene();
    await scene.patch();
    await scene.patch("blue", { part: "two" });
    await scene.patch("blue/status");
    await scene.patch("blue", { method: "PUT" });
    expect(scene.sent.length).toBe(4);
  });
});

it.each<[string, Error, PatchOptions?]>([
  ["a 503", refusal(503)],
  ["an internal error of one attempt, as at a Lease", refusal(500, "no", "InternalError"), { patienceMs: 0 }],
  ["too many requests", refusal(429)],
  ["no answer", new ApiUnavailable("PATCH x", "no answer")],
  ["an object that is not there", refusal(404)],
])("%s is none: the next attempt is sent", async (_, answer, more) => {
  const scene = new Scene();
  scene.answer = answer;
  await scene.patch("blue", more);
  await scene.patch("blue", more);
  expect(scene.sent.length).toBe(2);
});

it("a write that its caller was asked for is always sent, and so are reads", async () => {
  const scene = new Scene();
  for (const more of [{ isAsked: true }, { isAsked: true }, { method: "GET" }, { method: "GET" }] as const)
    await scene.patch("blue", more);
  expect(scene.sent.length).toBe(4);
});

describe("many objects", () => {
  const names = Array.from({ length: 100 }, (_, index) => `p${index}`);
  const all = (scene: Scene) => async () => {
    for (const name of names) await scene.patch(name);
  };

  it("are refused ten times in any second, and each has its turn", async () => {
    const scene = new Scene();
    const sent = await scene.hammer(90_000, all(scene), 250);
    for (const at of sent) expect(sent.filter((each) => each >= at && each < at + 1).length).toBeLessThanOrEqual(10);
    expect(scene.told.length).toBe(names.length);
  });

  it("are all written soon when the server accepts them", async () => {
    const scene = new Scene();
    await scene.hammer(90_000, all(scene), 250);
    scene.answer = undefined;
    await scene.hammer(scene.ms + 60_000, all(scene), 250);
    expect(names.filter((name) => scene.refused.find("one", `${POOLS}/${name}`) !== undefined)).toEqual([]);
  });

  it("conflicts count for none but their object", async () => {
    const scene = new Scene();
    scene.answer = refusal(409);
    await all(scene)();
    await all(scene)();
    expect([scene.sent.length, scene.told]).toEqual([names.length, []]);
  });
});

describe("writes of several objects", () => {
  const rests = (restMs: number) => () => Promise.reject(new RefusedWrite(refusal(403), restMs));

  it("go on, and end with the refusal that is over first, or when other work is due", async () => {
    const refusals = new RefusalsOf();
    expect(await refusals.attempt(rests(9_000), 5)).toBe(5);
    expect(await refusals.attempt(async () => "written")).toBe("written");
    await refusals.attempt(rests(7_000));
    expect(() => refusals.require()).toThrow(expect.objectContaining({ restMs: 7_000 }));
    expect(() => refusals.require(200)).toThrow(expect.objectContaining({ restMs: 200 }));
  });

  it("end when there is no answer", () =>
    expect(new RefusalsOf().attempt(() => Promise.reject(new Error("no answer")))).rejects.toThrow("no answer"));
});
