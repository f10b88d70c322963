/** A link, watched on the real kernel: from the first read to its end. */
import { readdirSync } from "node:fs";
import { constants } from "node:os";
import { afterAll, beforeAll, expect, it } from "vitest";
import { loadNative, type Native } from "../../host/kernel/native.ts";
import { type LinkState, watchLink } from "../../host/kernel/netlink/link-watch.ts";
import { type Lab, makeLab } from "./detection-lab.ts";

let lab: Lab;
const openFds = () => readdirSync("/proc/self/fd").length;
const unreachable = (error: unknown) => expect.unreachable(String(error));

beforeAll(() => {
  lab = makeLab("bkdw");
});

afterAll(() => lab[Symbol.dispose]());

it("each change is reported, with the state that a new read finds; other links are not", async () => {
  const pod = lab.addPod();
  pod.ip("link add other type veth peer name other-peer");
  const states: LinkState[] = [];
  const { netnsPath, index } = pod.link;
  using watch = watchLink(netnsPath, index, { changed: (state) => states.push(state), failure: unreachable });
  expect(watch.read()).toBe("ready");
  pod.ip("link set other up");
  const changes: [LinkState, () => void][] = [
    ["noCarrier", () => lab.ip(lab.switch, `link set ${pod.port} down`)],
    ["ready", () => lab.ip(lab.switch, `link set ${pod.port} up`)],
    ["down", () => pod.ip("link set eth0 down")],
    ["ready", () => pod.ip("link set eth0 up")],
    ["noArp", () => pod.ip("link set eth0 arp off")],
    ["ready", () => pod.ip("link set eth0 arp on")],
    ["absent", () => pod.ip("link del eth0")],
  ];
  for (const [state, change] of changes) {
    states.length = 0;
    change();
    await expect.poll(() => states.at(-1), { interval: 5, timeout: 30_000 }).toBe(state);
    expect(watch.read()).toBe(state);
  }
});

it("lost notifications are followed by a read", async () => {
  const pod = lab.addPod();
  const native = loadNative();
  const results: number[] = [];
  const recv: Native["recv"] = (...words) => results.shift() ?? native.recv(...words);
  const states: LinkState[] = [];
  const listener = { changed: (state: LinkState) => states.push(state), failure: unreachable };
  using _watch = watchLink(pod.link.netnsPath, pod.link.index, listener, { ...native, recv });
  results.push(-constants.errno.ENOBUFS);
  pod.ip("link set eth0 mtu 1400");
  await expect.poll(() => states.length, { interval: 5, timeout: 30_000 }).toBeGreaterThan(0);
  expect(new Set(states)).toEqual(new Set(["ready"]));
});

it("a kernel that does not answer is a failure, not a state", async () => {
  const pod = lab.addPod();
  const native = loadNative();
  let refuses = false;
  const exchange: Native["exchange"] = (...words) => (refuses ? -constants.errno.EPERM : native.exchange(...words));
  const failures: unknown[] = [];
  const listener = { changed: () => expect.unreachable(), failure: (error: unknown) => failures.push(error) };
  using watch = watchLink(pod.link.netnsPath, pod.link.index, listener, { ...native, exchange });
  refuses = true;
  expect(() => watch.read()).toThrow(/EPERM/);
  pod.ip("link set eth0 mtu 1400");
  await expect.poll(() => failures.length, { interval: 5, timeout: 30_000 }).toBeGreaterThan(0);
  expect(failures[0]).toMatchObject({ name: "NetlinkError", errno: constants.errno.EPERM });
});

it("a failure to open is thrown, and nothing stays open", () => {
  const pod = lab.addPod();
  const before = openFds();
  const listener = { changed: () => {}, failure: () => {} };
  const { netnsPath, index } = pod.link;
  expect(() => watchLink("/run/netns/bkdw-never", index, listener)).toThrow(/ENOENT/);
  expect(() => watchLink(netnsPath, index, listener, { ...loadNative(), watch: () => -constants.errno.EPERM })).toThrow(
    /EPERM/,
  );
  expect(openFds()).toBe(before);
});
