/**
 * The rehearsal of an ADD is a whole one, of `berth` and of the coordinator, and leaves nothing: no address in the agent's registry, no link on the node, no
 * descriptor, and the thread in its own namespace.
 */
import { execFileSync } from "node:child_process";
import { readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import pino from "pino";
import { beforeAll, expect, test } from "vitest";
import { NO_AUDIT } from "../../host/agent/audit/audit.ts";
import { openDetection } from "../../host/agent/detection/open-detection.ts";
import { rehearse } from "../../host/agent/rehearsal/rehearse.ts";
import { readCoreWasm } from "../../host/core/instance.ts";
import { OWN_NETNS } from "../../host/kernel/netns.ts";
import type { Registry } from "../../host/registry/registry.ts";

beforeAll(() => {
  execFileSync(join(import.meta.dirname, "../../native/build.sh"), ["addon"], { stdio: "inherit" });
});

/** The agent's. Whatever is asked of it fails. */
const registry = new Proxy({} as Registry, {
  get: () => () => Promise.reject(new Error("The rehearsal has a registry of its own")),
});

const nowMs = (): number => Math.round(performance.now());

/** Namespaces and sockets that this process has open, by their descriptors. Some are of test files before, and are closed at any time. */
const held = (): string[] =>
  readdirSync("/proc/self/fd")
    .map((fd) => `${fd} ${targetOf(fd)}`)
    .filter((descriptor) => /^\d+ (net|socket):/.test(descriptor));

function targetOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return ""; // the directory itself
  }
}

test("an ADD is rehearsed, and nothing is left of it", async () => {
  const log = pino({ level: "silent" });
  const detection = openDetection({ registry, pools: () => new Map(), nowMs, log, audit: NO_AUDIT });
  const ask = () => rehearse({ coreWasm: readCoreWasm(), detection, nowMs });
  const own = readlinkSync(OWN_NETNS);
  const links = () => execFileSync("ip", ["-oneline", "link"], { encoding: "utf8" }).split("\n").length;
  await ask(); // what stays open after the first visit
  const [before, linksBefore] = [held(), links()];
  const { status, body } = await ask();
  await setImmediate(); // lines of the log
  expect(status, body).toBe(200);
  expect(JSON.parse(body)).toMatchObject({
    cniVersion: "1.0.0",
    ips: [{ address: "192.0.2.2/24", gateway: "192.0.2.1", interface: 0 }],
    routes: [{ dst: "0.0.0.0/0" }],
  });
  expect(held().filter((descriptor) => !before.includes(descriptor))).toEqual([]);
  expect(links()).toBe(linksBefore);
  expect(readlinkSync(OWN_NETNS)).toBe(own);
  expect(detection.answered.takeAnswer({ containerId: "rehearsal", ifName: "eth0" })).toBeUndefined();
  await detection.prober.close();
});
