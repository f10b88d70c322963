import { describe, expect, it } from "vitest";
import {
  BACKGROUND_ATTEMPT_MS,
  describeFailure,
  type Failure,
  Lanes,
  lengthen,
  MAX_BACKGROUND_CALLS,
  MAX_CONNECTIONS,
  MAX_POD_CALLS,
  mayPass,
  nextAttemptMs,
  POD_ATTEMPT_MS,
  parseRetryAfter,
  pauseMs,
} from "../../../host/kubernetes/http/retry.ts";
import type { Lane } from "../../../host/kubernetes/kube-api.ts";

const never = new AbortController().signal;

/** Lets the callbacks of resolved promises run. */
const flush = () => new Promise((resolve) => setImmediate(resolve));

function enterAll(lanes: Lanes, lane: Lane, count: number, order: string[]): void {
  for (let index = 0; index < count; index++) lanes.enter(lane, never).then(() => order.push(`${lane} ${index}`));
}

describe("the longest time of the next attempt", () => {
  it.each<[what: string, attemptMs: number, code: string, isServerAlive: boolean, wanted: number]>([
    ["is twice the last one after one that was cut off", 5_000, "DEADLINE", false, 10_000],
    ["is the longest if others were answered meanwhile", 5_000, "DEADLINE", true, 35_000],
    ["is no longer than a webhook may take", 20_000, "DEADLINE", false, 35_000],
    ["is as long as the call asks for", 60_000, "DEADLINE", true, 60_000],
    ["is the same after a connection that broke", 5_000, "ECONNRESET", true, 5_000],
  ])("%s", (_, attemptMs, code, isServerAlive, wanted) => {
    expect(nextAttemptMs(attemptMs, code, isServerAlive)).toBe(wanted);
  });

  it("grows with failures", () => {
    const times = [0, 1, 2, 3, 40];
    expect(times.map((each) => lengthen(POD_ATTEMPT_MS, each))).toEqual([5_000, 10_000, 20_000, 35_000, 35_000]);
    const background = times.map((each) => lengthen(BACKGROUND_ATTEMPT_MS, each));
    expect(background).toEqual([10_000, 20_000, 35_000, 35_000, 35_000]);
  });
});

describe("lanes", () => {
  it("let background calls take their share only", async () => {
    const lanes = new Lanes();
    const order: string[] = [];
    enterAll(lanes, "background", 10, order);
    await flush();
    expect(order).toHaveLength(MAX_BACKGROUND_CALLS);
    expect(lanes.waiting).toBe(10 - MAX_BACKGROUND_CALLS);
  });

  it("leave a place for background calls", async () => {
    const lanes = new Lanes();
    const order: string[] = [];
    enterAll(lanes, "pod", 20, order);
    enterAll(lanes, "background", 2, order);
    await flush();
    expect(order).toHaveLength(MAX_CONNECTIONS);
    expect(order.filter((one) => one.startsWith("pod"))).toHaveLength(MAX_POD_CALLS);
  });

  it("let pods pass background calls that wait longer, each lane in order", async () => {
    const lanes = new Lanes();
    const order: string[] = [];
    enterAll(lanes, "pod", MAX_POD_CALLS, []);
    enterAll(lanes, "background", 3, order);
    enterAll(lanes, "pod", 2, order);
    await flush();
    expect(order).toEqual(["background 0"]);
    for (let turn = 0; turn < 2; turn++) {
      lanes.leave("pod");
      await flush();
    }
    expect(order).toEqual(["background 0", "pod 0", "pod 1"]);
    lanes.leave("pod");
    await flush();
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
    await flush();
    expect(order).toEqual(["background 0"]);
    expect(lanes.underWay).toBe(MAX_BACKGROUND_CALLS);
  });

  it("never let in who has given up before", async () => {
    const lanes = new Lanes();
    await expect(lanes.enter("pod", AbortSignal.abort(new Error("too late")))).rejects.toThrow("too late");
    expect(lanes.underWay).toBe(0);
  });
});

const answer = (status: number): Failure => ({ kind: "answer", status });
const nothing = (code: string): Failure => ({ kind: "no answer", code });

describe("a failure that may pass", () => {
  const rows: readonly (readonly [string, Failure, boolean])[] = [
    ["malformed call", answer(400), false],
    ["unknown user, after reading the credentials again", answer(401), false],
    ["no right", answer(403), false],
    ["no such object", answer(404), false],
    ["name taken or changed since", answer(409), false],
    ["version too old", answer(410), false],
    ["object refused", answer(422), false],
    ["slow caller", answer(408), true],
    ["too many requests", answer(429), true],
    ["trouble in the server", answer(500), true],
    ["no such method", answer(501), false],
    ["proxy without a server behind it", answer(502), true],
    ["starting or ending", answer(503), true],
    ["the server's own deadline", answer(504), true],
    ["no such HTTP version", answer(505), false],
    ["redirection", answer(301), false],
    ["the connection is refused", nothing("ECONNREFUSED"), true],
    ["connection cut", nothing("ECONNRESET"), true],
    ["cut in TLS", nothing("ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC"), true],
    ["no way", nothing("EHOSTUNREACH"), true],
    ["name not known yet", nothing("ENOTFOUND"), true],
    ["our deadline", nothing("DEADLINE"), true],
    ["connection took too long", nothing("UND_ERR_CONNECT_TIMEOUT"), true],
    ["socket ended", nothing("UND_ERR_SOCKET"), true],
    ["something without a code", nothing(""), true],
    ["a certificate of another authority", nothing("DEPTH_ZERO_SELF_SIGNED_CERT"), false],
    ["authority that is not trusted", nothing("UNABLE_TO_VERIFY_LEAF_SIGNATURE"), false],
    ["certificate out of date", nothing("CERT_HAS_EXPIRED"), false],
    ["certificate for another name", nothing("ERR_TLS_CERT_ALTNAME_INVALID"), false],
    ["no TLS at that port", nothing("ERR_SSL_WRONG_VERSION_NUMBER"), false],
    ["a header that cannot be sent", nothing("UND_ERR_INVALID_ARG"), false],
    ["an answer beyond the limit", nothing("UND_ERR_RES_EXCEEDED_MAX_SIZE"), false],
  ];
  it.each(rows)("%s", (_, failure, expected) => expect(mayPass(failure)).toBe(expected));
});

describe("Retry-After", () => {
  const nowMs = Date.UTC(2026, 9, 21, 7, 28, 0);
  const rows: readonly (readonly [string | undefined, number | undefined])[] = [
    [undefined, undefined],
    ["1", 1_000],
    [" 3 ", 3_000],
    ["0", 0],
    ["3600", 5_000],
    ["-1", undefined],
    ["1.5", undefined],
    ["soon", undefined],
    ["", undefined],
    ["Wed, 21 Oct 2026 07:28:02 GMT", 2_000],
    ["Wed, 21 Oct 2026 07:27:00 GMT", 0],
    ["Wed, 21 Oct 2026 09:00:00 GMT", 5_000],
    ["Wed, 41 Oct 2026 07:28:02 GMT", undefined],
    ["2026-10-21", undefined],
  ];
  it.each(rows)("%s", (header, expected) => expect(parseRetryAfter(header, nowMs)).toBe(expected));
});

describe("the pause", () => {
  const rows: readonly (readonly [string, Parameters<typeof pauseMs>, number])[] = [
    ["may be nothing", [0, 0], 0],
    ["is at first at most 100 ms", [0, 0.999], 99],
    ["doubles its limit", [1, 0.5], 100],
    ["doubles it again", [2, 0.5], 200],
    ["stops growing at 1.5 s", [4, 0.999], 1_498],
    ["stays there after a long outage", [100_000, 0.999], 1_498],
    ["comes after what the server asked for", [0, 0.5, 2_000], 2_050],
  ];
  it.each(rows)("%s", (_, parameters, expected) => expect(pauseMs(...parameters)).toBe(expected));
});

describe("the text of a failure", () => {
  const because = (message: string, cause: string) => new Error(message, { cause: new Error(cause) });
  const attempts = new AggregateError([new Error("connect ECONNREFUSED ::1:6443"), new Error("other")]);
  it.each<[string, unknown, string]>([
    ["has what is behind it", because("Connecting failed", "it has expired"), "Connecting failed (it has expired)"],
    ["does not say it twice", because("broke: no route", "no route"), "broke: no route"],
    ["takes the first of several attempts to connect", attempts, "connect ECONNREFUSED ::1:6443"],
    ["takes what is no error", "odd", "odd"],
  ])("%s", (_, error, text) => expect(describeFailure(error)).toBe(text));
});
