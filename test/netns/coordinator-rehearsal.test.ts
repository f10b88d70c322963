/** The rehearsal of an ADD is a whole one, and leaves nothing: no link on the node, no descriptor, and the thread in its own namespace. */
import { execFileSync } from "node:child_process";
import { readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { beforeAll, expect, test } from "vitest";
import { rehearse } from "../../host/agent/rehearsal.ts";
import { OWN_NETNS } from "../../host/kernel/netns.ts";

beforeAll(() => {
  execFileSync(join(import.meta.dirname, "../../native/build.sh"), ["addon"], { stdio: "inherit" });
});

const never = () => Promise.reject(new Error("The rehearsal is of one NIC and without detection"));

/** Whatever is asked of the registry fails. */
const registry = new Proxy({} as Parameters<typeof rehearse>[0]["registry"], { get: () => never });

const descriptors = (): string[] =>
  readdirSync("/proc/self/fd").map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return ""; // the directory itself
    }
  });

/** Descriptors of namespaces and sockets. */
const held = (): number => descriptors().filter((target) => /^(net|socket):/.test(target)).length;

test("an ADD is rehearsed, and nothing is left of it", async () => {
  const ask = () => rehearse({ registry, prober: { conflict: never } });
  const own = readlinkSync(OWN_NETNS);
  const links = () => execFileSync("ip", ["-oneline", "link"], { encoding: "utf8" }).split("\n").length;
  await ask(); // what stays open after the first visit
  const [before, linksBefore] = [held(), links()];
  const { status, body } = await ask();
  await setImmediate(); // lines of the log
  expect(status, body).toBe(200);
  expect(JSON.parse(body)).toMatchObject({ cniVersion: "1.0.0", ips: [{ address: "192.0.2.2/24" }] });
  expect(held()).toBe(before);
  expect(links()).toBe(linksBefore);
  expect(readlinkSync(OWN_NETNS)).toBe(own);
});
