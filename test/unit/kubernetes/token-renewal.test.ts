import * as fs from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { KubeApi, KubeCall } from "../../../host/kubernetes/kube-api.ts";
import { renewToken, TOKEN_CHECK_MS } from "../../../host/kubernetes/token-renewal.ts";
import { openLog } from "../../../host/lib/log.ts";
import type { PeriodicWorker } from "../../../host/lib/periodic.ts";
import { temporaryDirectory } from "../../world/temporary-directory.ts";

/** 2026-11-21T15:00:00Z, by the API server's clock. */
const NOW_S = 1_795_273_200;
const HOUR_MS = 3_600_000;

function tokenOf(serial: number, { seconds = 3_600, node = "n1" } = {}): string {
  const claims = {
    ...{ jti: String(serial), iat: NOW_S, exp: NOW_S + seconds },
    "kubernetes.io": {
      namespace: "kube-system",
      serviceaccount: { name: "berth-agent", uid: "account" },
      node: { name: node, uid: `uid-${node}` },
    },
  };
  return `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.c2ln`;
}

let directory: string;
let file: string;
let worker: PeriodicWorker | undefined;
let uptimeMs: number;
let calls: KubeCall[];
/** Throws, or returns the token of the answer. */
let answer: (serial: number) => string;

beforeEach(() => {
  directory = temporaryDirectory("berth-renewal-", onTestFinished);
  file = join(directory, "token");
  fs.writeFileSync(file, tokenOf(0));
  [uptimeMs, calls, worker] = [1_000_000, [], undefined];
  answer = (serial) => tokenOf(serial);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"], now: NOW_S * 1_000 });
});
afterEach(async () => {
  await worker?.close();
  vi.useRealTimers();
});

async function start(random = 0): Promise<void> {
  const call: KubeApi["call"] = async (sent) => {
    calls.push(sent);
    return { status: { token: answer(calls.length) } };
  };
  const api = { call } as KubeApi;
  const log = openLog("test", "silent");
  worker = await renewToken({ api, file, node: "n1", log, random: () => random, uptimeMs: () => uptimeMs });
  await pass(0);
}

/** Time passes in steps. Each waits for files to be written: the worker has no timer during a run. */
async function pass(milliseconds: number, stepMs = TOKEN_CHECK_MS): Promise<void> {
  for (let left = milliseconds; left >= 0; left -= stepMs) {
    const stepped = Math.min(left, stepMs);
    uptimeMs += stepped;
    await vi.advanceTimersByTimeAsync(stepped);
    while (vi.getTimerCount() === 0) await new Promise((resolve) => setImmediate(resolve));
  }
}

const serialOf = (): number =>
  Number(JSON.parse(Buffer.from(fs.readFileSync(file, "utf8").split(".")[1] ?? "", "base64url").toString()).jti);

describe("a token", () => {
  it.each([
    ["from 50 percent of its lifetime on", 0, 0.5],
    ["from 40 percent of its lifetime on", 0.999, 0.4],
  ])("is renewed at the start, and %s", async (_, random, share) => {
    await start(random);
    expect([calls.length, serialOf()]).toEqual([1, 1]);
    await pass(share * HOUR_MS - 2 * TOKEN_CHECK_MS);
    expect(calls.length).toBe(1);
    await pass(3 * TOKEN_CHECK_MS);
    expect([calls.length, serialOf()]).toEqual([2, 2]);
  });

  it("is renewed by the time since boot: the wall clock does not matter, and a suspended machine does", async () => {
    await start();
    for (const years of [-1, 5]) {
      vi.setSystemTime((NOW_S + years * 31_536_000) * 1_000);
      await pass(5 * TOKEN_CHECK_MS);
    }
    expect(calls.length).toBe(1);
    uptimeMs += HOUR_MS;
    await pass(TOKEN_CHECK_MS);
    expect(calls.length).toBe(2);
  });

  it("that another program has written is renewed at once", async () => {
    await start();
    fs.writeFileSync(file, tokenOf(70));
    await pass(TOKEN_CHECK_MS);
    expect([calls.length, serialOf()]).toEqual([2, 2]);
  });

  it.each([
    [15, 600],
    [7_200, 7_200],
    [2_592_000, 604_800],
  ])("of %i seconds is followed by one of %i, for the same account and node", async (seconds, requested) => {
    fs.writeFileSync(file, tokenOf(0, { seconds }));
    await start();
    const boundObjectRef = { apiVersion: "v1", kind: "Node", name: "n1", uid: "uid-n1" };
    expect(calls[0]).toMatchObject({
      path: "/api/v1/namespaces/kube-system/serviceaccounts/berth-agent/token",
      body: { spec: { expirationSeconds: requested, boundObjectRef } },
    });
  });

  it("for which the API server gives less than was requested is renewed by the given time", async () => {
    answer = (serial) => tokenOf(serial, { seconds: 600 });
    await start();
    await pass(300_000 + TOKEN_CHECK_MS);
    expect(calls.length).toBe(2);
  });
});

describe("a renewal that fails", () => {
  it("is a problem with the time of the expiry, is retried with growing pauses, and succeeds later", async () => {
    answer = () => {
      throw new Error("no answer");
    };
    await start();
    expect(worker?.problems).toEqual([
      `Renewing the token in file "${file}" failed: no answer; it expires at 2026-11-21T16:00:00.000Z`,
    ]);
    await pass(5_000, 100);
    expect(calls.length).toBeGreaterThanOrEqual(3);
    const before = calls.length;
    await pass(300_000, 1_000);
    expect(calls.length - before).toBeLessThan(15);
    expect(serialOf()).toBe(0);
    answer = (serial) => tokenOf(serial);
    await pass(60_000, 1_000);
    expect([worker?.problems, serialOf()]).toEqual([[], calls.length]);
  });

  it.each([
    ["of another node", (serial: number) => tokenOf(serial, { node: "n2" }), 'bound to Node "n2", want one for "n1"'],
    ["that is none", () => "secret-garbage", "found a text that is not a JSON Web Token"],
  ])("because of a token %s leaves the file as it is", async (_, given, problem) => {
    answer = given;
    await start();
    expect(worker?.problems).toEqual([expect.stringContaining(problem)]);
    expect(String(worker?.problems)).not.toContain("secret");
    expect(serialOf()).toBe(0);
  });
});

describe("the file", () => {
  it("is root's alone, and the file that a crash left beside it does not matter", async () => {
    fs.writeFileSync(`${file}.new`, "half", { mode: 0o644 });
    await start();
    expect([fs.statSync(file).mode & 0o777, fs.existsSync(`${file}.new`), serialOf()]).toEqual([0o600, false, 1]);
  });

  it("may be a link, which stays", async () => {
    const target = file;
    file = join(directory, "link");
    fs.symlinkSync(target, file);
    await start();
    expect([fs.lstatSync(file).isSymbolicLink(), serialOf()]).toEqual([true, 1]);
  });
});
