import { describe, expect, it } from "vitest";
import {
  BACKGROUND_ATTEMPT_MS,
  describeFailure,
  type Failure,
  Lanes,
  lengthen,
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
  it("leave a place for background calls", async () => {
    const lanes = new Lanes();
    const order: string[] = [];
    enterAll(lanes, "pod", 20, order);
    enterAll(lanes, "background", 2, order);
    await flush();
    expect(order).toHaveLength(MAX_CONNECTIONS);
    expect(order.filter((one) => one.startsWith("pod"))).toHaveLength(MAX_POD_CALLS);
  });

  it("never let in a caller that has given up before", async () => {
    const lanes = new Lanes();
    await expect(lanes.enter("pod", AbortSignal.abort(new Error("too late")))).rejects.toThrow("too late");
    expect(lanes.underWay).toBe(0);
  });
});

const answers = (...all: number[]): Failure[] => all.map((status) => ({ kind: "answer", status }));
const nothings = (...all: string[]): Failure[] => all.map((code) => ({ kind: "no answer", code }));

it.each([
  // A slow caller, too many requests, trouble in the server or before it.
  ...answers(408, 429, 500, 502, 503, 504),
  ...nothings("ECONNREFUSED", "ECONNRESET", "ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC", "EHOSTUNREACH", "ENOTFOUND"),
  ...nothings("DEADLINE", "UND_ERR_CONNECT_TIMEOUT", "UND_ERR_SOCKET", ""),
])("a failure that may pass: %j", (failure) => expect(mayPass(failure)).toBe(true));

it.each([
  ...answers(301, 400, 401, 403, 404, 409, 410, 422, 501, 505),
  // A certificate that is not the server's, no TLS at that port, a request that cannot be sent, or is too long.
  ...nothings("DEPTH_ZERO_SELF_SIGNED_CERT", "UNABLE_TO_VERIFY_LEAF_SIGNATURE", "CERT_HAS_EXPIRED"),
  ...nothings("ERR_TLS_CERT_ALTNAME_INVALID", "ERR_SSL_WRONG_VERSION_NUMBER", "UND_ERR_INVALID_ARG"),
  ...nothings("UND_ERR_RES_EXCEEDED_MAX_SIZE"),
])("a failure that stays: %j", (failure) => expect(mayPass(failure)).toBe(false));

describe("Retry-After", () => {
  const nowMs = Date.UTC(2026, 9, 21, 7, 28, 0);
  it.each<readonly [string, number]>([
    ["1", 1_000],
    [" 3 ", 3_000],
    ["0", 0],
    ["3600", 5_000],
    ["Wed, 21 Oct 2026 07:28:02 GMT", 2_000],
    ["Wed, 21 Oct 2026 07:27:00 GMT", 0],
    ["Wed, 21 Oct 2026 09:00:00 GMT", 5_000],
  ])("%s", (header, expected) => expect(parseRetryAfter(header, nowMs)).toBe(expected));
  it.each([undefined, "-1", "1.5", "soon", "", "Wed, 41 Oct 2026 07:28:02 GMT", "2026-10-21"])("%s is none", (header) =>
    expect(parseRetryAfter(header, nowMs)).toBeUndefined(),
  );
});

it.each<readonly [string, Parameters<typeof pauseMs>, number]>([
  ["may be nothing", [0, 0], 0],
  ["is at first at most 100 ms", [0, 0.999], 99],
  ["doubles its limit", [1, 0.5], 100],
  ["stops growing at 1.5 s", [4, 0.999], 1_498],
  ["comes after what the server asked for", [0, 0.5, 2_000], 2_050],
])("the pause: %s", (_, parameters, expected) => expect(pauseMs(...parameters)).toBe(expected));

const because = (message: string, cause: string) => new Error(message, { cause: new Error(cause) });
const attempts = new AggregateError([new Error("connect ECONNREFUSED ::1:6443"), new Error("other")]);
it.each<[string, unknown, string]>([
  ["has what is behind it", because("Connecting failed", "it has expired"), "Connecting failed (it has expired)"],
  ["does not say it twice", because("broke: no route", "no route"), "broke: no route"],
  ["takes the first of several attempts to connect", attempts, "connect ECONNREFUSED ::1:6443"],
  ["takes what is no error", "odd", "odd"],
])("the text of a failure: %s", (_, error, text) => expect(describeFailure(error)).toBe(text));
