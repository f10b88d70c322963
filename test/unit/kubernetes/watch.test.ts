import type { ServerResponse } from "node:http";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { LARGE_EVENT } from "../../../host/kubernetes/client.ts";
import {
  apiErrorOf,
  decodeEvent,
  decodeObject,
  Lines,
  MAX_EVENT_BYTES,
} from "../../../host/kubernetes/http/answers.ts";
import { BACKGROUND_ATTEMPT_MS, LARGE_EVENT_PAUSE } from "../../../host/kubernetes/http/retry.ts";
import type { WatchEvent } from "../../../host/kubernetes/kube-api.ts";
import { until } from "../../world/recorded-log.ts";
import { cases } from "../../world/rows.ts";
import { type StubAnswer, sendStatus, startStub } from "./stub-server.ts";

/** Watches until the end; gives events, bytes and the end. */
async function watch(
  answer: StubAnswer,
  options: { onEvent?: (event: WatchEvent) => void; signal?: AbortSignal } = {},
) {
  const stub = await startStub(answer);
  const received = { events: [] as WatchEvent[], bytes: 0, isOpen: false, stub, end: "" };
  const ended = stub.client.watch({
    ...{ path: "/api/v1/pods", query: { resourceVersion: "5", fieldSelector: undefined } },
    onOpen: () => void Object.assign(received, { isOpen: true }),
    onBytes: (bytes) => void Object.assign(received, { bytes: received.bytes + bytes }),
    onEvent: (event) => {
      received.events.push(event);
      options.onEvent?.(event);
    },
    signal: options.signal ?? new AbortController().signal,
  });
  received.end = await ended.then(
    () => "ended",
    (error: Error) => `${error.name}: ${error.message}`,
  );
  return received;
}

const event = (name: string) => `${JSON.stringify({ type: "ADDED", object: { metadata: { name } } })}\n`;

describe("a watch", () => {
  it("pauses after large events only, in proportion to the time that they took", async () => {
    const startsMs: number[] = [];
    const turns: number[] = [];
    let turn = 0;
    const tookMs = 10;
    const names = ["a", "b", "l".repeat(LARGE_EVENT), "m".repeat(LARGE_EVENT), "c"];
    const received = await watch((response) => response.end(names.map(event).join("")), {
      onEvent: () => {
        startsMs.push(performance.now());
        turns.push(turn);
        setImmediate(() => turn++);
        while (performance.now() < (startsMs.at(-1) ?? 0) + tookMs);
      },
    });
    expect(received.end).toBe("ended");
    expect(turns[1]).toBe(turns[0]);
    const [, , largeMs, alsoLargeMs] = startsMs.map((startMs, at) => (startsMs[at + 1] ?? 0) - startMs);
    const pausedMs = (1 + LARGE_EVENT_PAUSE) * tookMs;
    expect(largeMs).toBeGreaterThanOrEqual(pausedMs - 1);
    expect(alsoLargeMs).toBeGreaterThanOrEqual(pausedMs - 1);
  });

  it("reports its events in order, however late, and resolves when the server ends it", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const text = event("a") + event("größer 🙂") + event("c");
    const bytes = Buffer.from(text);
    const answer = async (response: ServerResponse) => {
      response.writeHead(200);
      // A piece of three bytes cuts every character of four somewhere.
      for (let start = 0; start < bytes.length; start += 3) {
        response.write(bytes.subarray(start, start + 3));
        await new Promise((resolve) => setImmediate(resolve));
      }
      response.end();
    };
    // Only the head has a time limit.
    const received = await watch(answer, { onEvent: () => vi.advanceTimersByTime(BACKGROUND_ATTEMPT_MS) });
    expect(received.end).toBe("ended");
    expect(received.events.map(({ object }) => object)).toEqual(
      ["a", "größer 🙂", "c"].map((name) => ({ metadata: { name } })),
    );
    expect(received).toMatchObject({ bytes: bytes.length, isOpen: true });
    expect(received.stub.requests[0]?.url).toBe("/api/v1/pods?resourceVersion=5&watch=true");
    expect(received.stub.client.stats.watching).toBe(0);
  });

  const ends =
    (text: string): StubAnswer =>
    (response) =>
      response.end(text);
  const expired = '{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}';
  const cut: StubAnswer = (response) => response.write(event("a"), () => setTimeout(() => response.destroy(), 20));
  const endless: StubAnswer = (response) => response.writeHead(503).write("x".repeat(1_000_000));
  /** The number of events, and how the watch ends. */
  it.each(cases<StubAnswer>`
    is refused ${(response) => sendStatus(response, 403, "Forbidden")}
      => 0 ApiError: WATCH /api/v1/pods was answered with 403 Forbidden: Forbidden!
    is refused without an end ${endless}
      => 0 ApiError: WATCH /api/v1/pods was answered with 503: xxx
    hears of an error ${ends(`${event("a")}${expired}\n${event("b")}`)}
      => 1 ApiError: WATCH /api/v1/pods was answered with 410 Expired
    hears no JSON ${ends(`${event("a")}nonsense\n${event("b")}`)}
      => 1 ApiUnavailable: WATCH /api/v1/pods: The watch sent a line that is no JSON object: "nonsense"
    ends in the middle of an event ${ends(`${event("a")}{"type":`)}
      => 1 ApiUnavailable: WATCH /api/v1/pods: ended in the middle of an event
    is cut ${cut} => 1 ApiUnavailable: WATCH /api/v1/pods broke:
    is cut before its head ${(response) => response.destroy()} => 0 ApiUnavailable: WATCH /api/v1/pods broke:
  `)("that %s rejects", async (_, answer, wanted) => {
    const { events, end } = await watch(answer);
    expect(`${events.length} ${end}`.slice(0, wanted.length)).toBe(wanted);
  });

  it("that is aborted rejects with the reason, and receives nothing any more", async () => {
    const controller = new AbortController();
    const received = await watch((response) => response.write(event("a") + event("b")), {
      signal: controller.signal,
      onEvent: () => controller.abort(new Error("enough")),
    });
    expect(received.end).toBe("Error: enough");
    expect(received.events).toHaveLength(1);
  });

  it("whose owner throws passes that on, and lets go of the connection", async () => {
    const gone = Promise.withResolvers<void>();
    const answer: StubAnswer = (response) => response.once("close", gone.resolve).write(event("a"));
    const onEvent = (): never => {
      throw new TypeError("a bug");
    };
    expect((await watch(answer, { onEvent })).end).toBe("TypeError: a bug");
    await gone.promise;
  });

  it("ends with its client", async () => {
    const stub = await startStub((response) => response.write(event("a")));
    const ended = stub.client.watch({ path: "/x", query: {}, onEvent: () => {}, signal: new AbortController().signal });
    const rejected = expect(ended).rejects.toThrow("WATCH /x broke");
    await until(() => stub.requests.length === 1, "the watch is open");
    await stub.close();
    await rejected;
  });
});

describe("lines", () => {
  const text = '{"a":"größer 地址 🙂"}\n\n{"b":1}\r\n{"half":';
  const bytes = Buffer.from(text);
  const expected = ['{"a":"größer 地址 🙂"}', '{"b":1}\r'];

  it.each(Array.from({ length: bytes.length + 1 }, (_, index) => index))("cut at byte %i", (index) => {
    const lines = new Lines();
    expect([...lines.push(bytes.subarray(0, index)), ...lines.push(bytes.subarray(index))].map(String)).toEqual(
      expected,
    );
    expect(`${lines.rest()}`).toBe('{"half":');
    expect(`${lines.rest()}`).toBe("");
  });

  it("refuse one that does not end", () => {
    const lines = new Lines();
    const piece = Buffer.alloc(MAX_EVENT_BYTES / 4, "x");
    for (let count = 0; count < 4; count++) lines.push(piece);
    expect(() => lines.push(piece)).toThrow("longer than");
  });
});

describe("an event", () => {
  const object = { metadata: { name: "a" } };

  it.each(["ADDED", "MODIFIED", "DELETED", "BOOKMARK"])("of type %s", (type) => {
    expect(decodeEvent("WATCH /x", JSON.stringify({ type, object }))).toEqual({ type, object });
  });

  const refused: readonly (readonly [string, string, string])[] = [
    ["a list", "[]", "a line that is no JSON object"],
    ["no object", '{"type":"ADDED"}', "an event without an object"],
    ["an object that is text", '{"type":"ADDED","object":"x"}', "an event without an object"],
    ["a type of its own", '{"type":"added","object":{}}', "an event of an unknown type"],
  ];
  it.each(refused)("with %s is an error", (_, line, message) => {
    expect(() => decodeEvent("WATCH /x", line)).toThrow(message);
  });

  it.each([
    [
      { kind: "Status", code: 410, reason: "Expired", message: "too old" },
      { status: 410, reason: "Expired" },
    ],
    [{}, { status: 500 }],
  ])("of type ERROR has its own status, without one a failure of the server: %j", (status, wanted) => {
    const decode = () => decodeEvent("WATCH /x", JSON.stringify({ type: "ERROR", object: status }));
    expect(decode).toThrow(expect.objectContaining({ name: "ApiError", operation: "WATCH /x", ...wanted }));
  });
});

describe("an answer", () => {
  it("that is a Status has reason and causes", () => {
    const causes = [{ reason: "FieldValueInvalid", field: "spec.ips[0]", message: "no address" }];
    const status = { kind: "Status", code: 422, reason: "Invalid", message: "pool is invalid", details: { causes } };
    const error = apiErrorOf("POST /x", 422, JSON.stringify(status));
    expect(error).toMatchObject({ status: 422, reason: "Invalid", operation: "POST /x" });
    expect(error.message).toBe("POST /x was answered with 422 Invalid: pool is invalid");
    expect(error.causes).toEqual([{ field: "spec.ips[0]", message: "no address" }]);
  });

  it.each<readonly [string, string, string]>([
    ["a proxy's page", "<html>Bad gateway</html>", "GET /x was answered with 502: <html>Bad gateway</html>"],
    ["nothing", "", "GET /x was answered with 502"],
    ["another object", '{"kind":"Pod"}', 'GET /x was answered with 502: {"kind":"Pod"}'],
    ["a Status without fields", '{"kind":"Status"}', "GET /x was answered with 502"],
    ["a long text", "x".repeat(600), `GET /x was answered with 502: ${"x".repeat(500)}…`],
  ])("that is %s", (_, body, message) => {
    expect(apiErrorOf("GET /x", 502, body)).toMatchObject({ message, reason: "", causes: [] });
  });

  it.each(["", "ok", "[]", "null", '{"a":'])("of 200 that is no object: %s", (body) => {
    expect(() => decodeObject(body)).toThrow("The answer is no JSON object");
  });
});
