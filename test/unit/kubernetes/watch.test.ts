import { afterEach, describe, expect, it } from "vitest";
import { LARGE_EVENT, LARGE_EVENT_PAUSE } from "../../../host/kubernetes/http/watch.ts";
import type { WatchEvent } from "../../../host/kubernetes/kube-api.ts";
import { type Stub, type StubAnswer, sendStatus, startStub, until } from "./stub-server.ts";

const opened: Stub[] = [];
afterEach(async () => {
  for (const stub of opened.splice(0)) await stub.close();
});

/** Watches until the end; gives events, bytes and the end. */
async function watch(
  answer: StubAnswer,
  options: { onEvent?: (event: WatchEvent) => void; signal?: AbortSignal } = {},
) {
  const stub = await startStub(answer);
  opened.push(stub);
  const heard = { events: [] as WatchEvent[], bytes: 0, isOpen: false, stub, end: "" };
  const ended = stub.client.watch({
    path: "/api/v1/pods",
    query: { resourceVersion: "5", fieldSelector: undefined },
    onOpen: () => {
      heard.isOpen = true;
    },
    onBytes: (bytes) => {
      heard.bytes += bytes;
    },
    onEvent: (event) => {
      heard.events.push(event);
      options.onEvent?.(event);
    },
    signal: options.signal ?? new AbortController().signal,
  });
  heard.end = await ended.then(
    () => "ended",
    (error: Error) => `${error.name}: ${error.message}`,
  );
  return heard;
}

const event = (name: string) => `${JSON.stringify({ type: "ADDED", object: { metadata: { name } } })}\n`;

describe("a watch", () => {
  it("pauses after large events only, in proportion to the time that they took", async () => {
    const startsMs: number[] = [];
    const turns: number[] = [];
    let turn = 0;
    const tookMs = 10;
    const names = ["a", "b", "l".repeat(LARGE_EVENT), "m".repeat(LARGE_EVENT), "c"];
    const heard = await watch((response) => response.end(names.map(event).join("")), {
      onEvent: () => {
        startsMs.push(performance.now());
        turns.push(turn);
        setImmediate(() => turn++);
        while (performance.now() < (startsMs.at(-1) ?? 0) + tookMs);
      },
    });
    expect(heard.end).toBe("ended");
    expect(turns[1]).toBe(turns[0]);
    const [, , largeMs, alsoLargeMs] = startsMs.map((startMs, at) => (startsMs[at + 1] ?? 0) - startMs);
    const pausedMs = (1 + LARGE_EVENT_PAUSE) * tookMs;
    expect(largeMs).toBeGreaterThanOrEqual(pausedMs - 1);
    expect(alsoLargeMs).toBeGreaterThanOrEqual(pausedMs - 1);
  });

  it("tells its events in order and resolves when the server ends it", async () => {
    const text = event("a") + event("größer 🙂") + event("c");
    const bytes = Buffer.from(text);
    const heard = await watch(async (response) => {
      response.writeHead(200);
      // A piece of three bytes cuts every character of four somewhere.
      for (let start = 0; start < bytes.length; start += 3) {
        response.write(bytes.subarray(start, start + 3));
        await new Promise((resolve) => setImmediate(resolve));
      }
      response.end();
    });
    expect(heard.end).toBe("ended");
    expect(heard.events.map(({ object }) => object)).toEqual(
      ["a", "größer 🙂", "c"].map((name) => ({ metadata: { name } })),
    );
    expect(heard).toMatchObject({ bytes: bytes.length, isOpen: true });
    expect(heard.stub.requests[0]?.url).toBe("/api/v1/pods?resourceVersion=5&watch=true");
    expect(heard.stub.client.stats.watching).toBe(0);
  });

  const failures: readonly (readonly [string, StubAnswer, string, number])[] = [
    [
      "is refused",
      (response) => sendStatus(response, 403, "Forbidden"),
      "ApiError: WATCH /api/v1/pods was answered with 403 Forbidden: Forbidden!",
      0,
    ],
    [
      "is too old",
      (response) => sendStatus(response, 410, "Expired"),
      "ApiError: WATCH /api/v1/pods was answered with 410 Expired: Expired!",
      0,
    ],
    [
      "hears of an error",
      (response) =>
        response.end(
          `${event("a")}{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}\n${event("b")}`,
        ),
      "ApiError: WATCH /api/v1/pods was answered with 410 Expired",
      1,
    ],
    [
      "hears no JSON",
      (response) => response.end(`${event("a")}nonsense\n${event("b")}`),
      'ApiUnavailable: WATCH /api/v1/pods: The watch sent a line that is no JSON object: "nonsense"',
      1,
    ],
    [
      "ends in the middle of an event",
      (response) => response.end(`${event("a")}{"type":`),
      "ApiUnavailable: WATCH /api/v1/pods: ended in the middle of an event",
      1,
    ],
    [
      "is cut",
      (response) => response.write(event("a"), () => setTimeout(() => response.destroy(), 20)),
      "ApiUnavailable: WATCH /api/v1/pods broke: ",
      1,
    ],
    ["is cut before its head", (response) => response.destroy(), "ApiUnavailable: WATCH /api/v1/pods broke: ", 0],
  ];
  it.each(failures)("that %s rejects", async (_, answer, message, events) => {
    const heard = await watch(answer);
    expect(heard.end.startsWith(message), heard.end).toBe(true);
    expect(heard.events).toHaveLength(events);
  });

  it("that is aborted rejects with the reason, and hears nothing any more", async () => {
    const controller = new AbortController();
    const heard = await watch((response) => response.write(event("a") + event("b")), {
      signal: controller.signal,
      onEvent: () => controller.abort(new Error("enough")),
    });
    expect(heard.end).toBe("Error: enough");
    expect(heard.events).toHaveLength(1);
  });

  it("whose owner throws passes that on, and lets go of the connection", async () => {
    let isGone = false;
    const answer: StubAnswer = (response) => {
      response.once("close", () => {
        isGone = true;
      });
      response.write(event("a"));
    };
    const heard = await watch(answer, {
      onEvent: () => {
        throw new TypeError("a bug");
      },
    });
    expect(heard.end).toBe("TypeError: a bug");
    await until(() => isGone, "the connection is gone");
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
