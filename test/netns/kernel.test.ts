/** The kernel folder on the real kernel, in fresh namespaces: objects on a link, and ways into a namespace and back. */
import { execFileSync, spawnSync } from "node:child_process";
import { lstat, readdirSync, readlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Plugin } from "../../host/agent/request/plugin.ts";
import { Dispatcher } from "../../host/agent/server/dispatcher.ts";
import { refuseInterface } from "../../host/cni/error.ts";
import { loadNative } from "../../host/kernel/native.ts";
import { isOwnNetns, isSameNetns, NetnsError, readNetnsIdentity, withNetns } from "../../host/kernel/netns.ts";
import { observeLink } from "../../host/kernel/observe-link.ts";
import { formatPrefix } from "../../host/net/prefix.ts";
import { NO_AUDIT } from "../world/no-audit.ts";
import { recordLog } from "../world/recorded-log.ts";

const root = join(import.meta.dirname, "../..");
const name = `bk${process.pid}`;
const path = `/run/netns/${name}`;

const ip = (...words: string[]) => execFileSync("ip", words);
const inside = (line: string) => ip("-n", name, ...line.split(" "));
const ownNetns = () => readlinkSync("/proc/thread-self/ns/net");
/** Without the one that reads the directory; sockets and namespaces among them would be ours. */
const openFds = () => readdirSync("/proc/self/fd").length - 1;

beforeAll(() => {
  ip("netns", "add", name);
  inside("link add eth0 address 02:00:00:00:00:01 type veth peer name p0 address 02:00:00:00:00:02");
  inside("link set eth0 up");
  inside("link add many address 02:00:00:00:00:03 type veth peer name p1");
});

afterAll(() => {
  ip("netns", "del", name);
});

function addressesOn(ifName: string): string[] | undefined {
  return observeLink(path, ifName)?.addresses.map(formatPrefix);
}

describe("observeLink", () => {
  it("returns index, MAC, flags and addresses of both families", () => {
    inside("addr add 10.6.0.21/24 dev eth0");
    inside("addr add 10.6.0.22/32 dev eth0");
    inside("addr add fd00:6::21/64 dev eth0 nodad");
    inside("addr add 192.0.2.1 peer 192.0.2.2/31 dev eth0");
    const [link] = JSON.parse(inside("-j link show dev eth0").toString());
    const observation = observeLink(path, "eth0");
    expect(observation).toMatchObject({ index: link.ifindex, mac: "02:00:00:00:00:01", up: true });
    expect(addressesOn("eth0")?.sort()).toEqual(["10.6.0.21/24", "10.6.0.22/32", "192.0.2.1/31", "fd00:6::21/64"]);
  });

  it("returns a link that is down, without addresses", () => {
    expect(observeLink(path, "p1")).toMatchObject({ up: false, addresses: [] });
  });

  it("returns a tunnel without a MAC", () => {
    inside("tuntap add tun0 mode tun");
    expect(observeLink(path, "tun0")).toMatchObject({ mac: undefined, up: false });
  });

  it("returns more addresses than one read holds, each once", () => {
    const wanted = Array.from({ length: 1_500 }, (_, index) => `10.7.${index >> 8}.${index & 255}/16`);
    const wanted6 = Array.from({ length: 700 }, (_, index) => `fd00:7::1:${(index + 1).toString(16)}/64`);
    const lines = [...wanted, ...wanted6.map((address) => `${address} nodad`)].map((to) => `addr add ${to} dev many`);
    execFileSync("ip", ["-n", name, "-batch", "-"], { input: lines.join("\n") });
    expect(addressesOn("many")?.sort()).toEqual([...wanted, ...wanted6].sort());
  });

  it("returns nothing for a link that is absent, even if it is an alternative name, or exists outside", () => {
    inside("link property add dev eth0 altname other-name");
    for (const absent of ["absent", "other-name", "", "a/b", "%s"]) expect(observeLink(path, absent)).toBeUndefined();
    inside("link set lo name lo-inside");
    expect(observeLink(path, "lo")).toBeUndefined();
    expect(observeLink("/proc/self/ns/net", "lo")?.index).toBe(1);
    inside("link set lo-inside name lo");
  });

  it("refuses a name that no link can have, in the kernel's words", () => {
    expect(() => observeLink(path, "x".repeat(16))).toThrow(
      /^Cannot get link "x{16}": .*ERANGE.*policy validation at byte 32$/,
    );
  });

  it("leaves the thread where it was and no descriptor open, over 1,000 calls and 300 failures", () => {
    const before = { netns: ownNetns(), fds: openFds() };
    for (let round = 0; round < 1_000; round++) observeLink(path, round % 2 === 0 ? "eth0" : "absent");
    for (let round = 0; round < 100; round++) {
      expect(() => observeLink("/run/netns/absent", "eth0")).toThrow(NetnsError);
      expect(() => observeLink("/proc/self/ns/mnt", "eth0")).toThrow(NetnsError);
      expect(() => observeLink(path, "x".repeat(16))).toThrow(/ERANGE/);
    }
    expect({ netns: ownNetns(), fds: openFds() }).toEqual(before);
  });
});

describe("a path that is no network namespace", () => {
  it.each<[string, () => string, RegExp]>([
    ["nothing", () => "/run/netns/absent", /^Cannot open network namespace "\/run\/netns\/absent": .*ENOENT/],
    ["a namespace of another kind", () => "/proc/self/ns/mnt", /not a network namespace, or no longer one$/],
    ["a directory", () => "/run", /not a network namespace/],
    ["a text with a NUL", () => "/run/netns/a\0b", /EINVAL/],
    ["too long a text", () => "/x".repeat(3_000), /ENAMETOOLONG/],
    [
      "the mount point of a namespace that is gone",
      () => {
        ip("netns", "add", `${name}g`);
        execFileSync("umount", [`/run/netns/${name}g`]);
        return `/run/netns/${name}g`;
      },
      /not a network namespace, or no longer one$/,
    ],
    [
      "a FIFO, which must not hold us",
      () => {
        // Not in /run/netns: iproute2 opens every file there and would wait for this one's other end.
        const fifo = join(tmpdir(), `${name}-fifo`);
        execFileSync("sh", ["-c", `rm -f ${fifo} && mkfifo ${fifo}`]);
        return fifo;
      },
      /not a network namespace/,
    ],
  ])("%s", (_, make, message) => {
    const wrong = make();
    for (const call of [
      () => observeLink(wrong, "eth0"),
      () => readNetnsIdentity(wrong),
      () => withNetns(wrong, () => expect.unreachable()),
    ]) {
      expect(call).toThrow(
        expect.objectContaining({ name: "NetnsError", path: wrong, message: expect.stringMatching(message) }),
      );
    }
  });
  afterAll(() => execFileSync("rm", ["-f", `/run/netns/${name}g`, join(tmpdir(), `${name}-fifo`)]));
});

describe("identity", () => {
  it("is the kernel's device and inode, by whatever path", () => {
    const identity = readNetnsIdentity(path);
    expect(`net:[${identity.inode}]`).toBe(withNetns(path, ownNetns));
    const holder = execFileSync("ip", ["netns", "exec", name, "stat", "-L", "-c", "%d %i", "/proc/self/ns/net"]);
    expect(holder.toString().trim()).toBe(`${identity.device} ${identity.inode}`);
  });

  it("has a cookie that no later namespace has, whatever its inode number", () => {
    const again = `${name}r`;
    const seen = new Set([readNetnsIdentity(path).cookie, readNetnsIdentity("/proc/self/ns/net").cookie]);
    for (let round = 0; round < 3; round++) {
      ip("netns", "add", again);
      const identity = readNetnsIdentity(`/run/netns/${again}`);
      expect(isSameNetns(identity, readNetnsIdentity(`/run/netns/${again}`))).toBe(true);
      expect(isSameNetns(identity, { ...identity, cookie: (identity.cookie ?? 0n) + 1n })).toBe(false);
      seen.add(identity.cookie);
      ip("netns", "del", again);
    }
    expect([seen.size, seen.has(undefined)]).toEqual([5, false]);
  });

  it("is told to an ADD, which is refused in our own namespace unless that is overridden", async () => {
    const own = "/proc/self/ns/net";
    const refuse: Plugin["add"] = async ({ netnsCookie }) => refuseInterface(`${netnsCookie}`);
    const plugin = { add: refuse } as Plugin;
    const plugins = { berth: plugin, coordinator: plugin, ifacer: plugin };
    const dispatcher = new Dispatcher(plugins, NO_AUDIT, recordLog().log);
    const add = async (netns: string, override: string) => {
      const names = { "cni-containerid": "c", "cni-ifname": "eth0", "cni-path": "/", "cni-netns-override": override };
      const headers = { ...names, "cni-command": "ADD", "cni-netns": netns };
      const call = { plugin: "berth", headers, body: '{"cniVersion":"1.0.0","name":"lan","type":"berth"}' };
      return JSON.parse((await dispatcher.dispatch(call, new AbortController().signal)).body).msg;
    };
    const [ofPod, ours] = [path, own].map((at) => `${readNetnsIdentity(at).cookie}`);
    expect([await add(path, ""), await add(own, "1"), await add("/", "1")]).toEqual([ofPod, ours, "undefined"]);
    expect(await add("/", "0")).toMatch(/Cannot open network namespace "\/"/);
    expect(await add(own, "0")).toMatch(/is the host's own network namespace/);
    expect(withNetns(path, () => isOwnNetns(readNetnsIdentity(path)))).toBe(true);
  });
});

describe("withNetns", () => {
  it("works inside, returns the result of the work, and is outside again", () => {
    const outside = ownNetns();
    expect(withNetns(path, () => ownNetns())).not.toBe(outside);
    expect(ownNetns()).toBe(outside);
  });

  it("is outside again when the work threw", () => {
    const outside = ownNetns();
    const boom = new Error("boom");
    expect(() =>
      withNetns(path, () => {
        throw boom;
      }),
    ).toThrow(boom);
    expect(ownNetns()).toBe(outside);
  });

  it("may be nested", () => {
    const outside = ownNetns();
    ip("netns", "add", `${name}b`);
    const rooms = withNetns(path, () => [ownNetns(), withNetns(`/run/netns/${name}b`, ownNetns), ownNetns()]);
    ip("netns", "del", `${name}b`);
    expect(new Set([...rooms, outside]).size).toBe(3);
    expect(rooms[0]).toBe(rooms[2]);
    expect(ownNetns()).toBe(outside);
  });

  it("refuses a Promise, whatever becomes of it, and is outside again", async () => {
    const outside = ownNetns();
    const works = [
      async () => 1,
      () => Promise.reject(new Error("later")),
      // biome-ignore lint/suspicious/noThenProperty: an object with `then` is refused as well
      () => ({ then: () => {} }),
    ];
    for (const work of works)
      expect(() => withNetns<unknown>(path, work)).toThrow(expect.objectContaining({ name: "InvariantError" }));
    await new Promise((later) => setTimeout(later, 10)); // an unhandled rejection would fail the run
    expect(ownNetns()).toBe(outside);
  });

  it("leaves no thread of the pool inside, however much is queued there", async () => {
    const tasks: Promise<void>[] = [];
    withNetns(path, () => {
      for (let task = 0; task < 64; task++) tasks.push(new Promise((done) => lstat("/", () => done())));
    });
    await Promise.all(tasks);
    const threads = readdirSync("/proc/self/task").map((task) => readlinkSync(`/proc/self/task/${task}/ns/net`));
    expect(new Set(threads)).toEqual(new Set([ownNetns()]));
  });

  it("lets the pool start outside even when it is the program's first act", () => {
    const program = `
      import { lstat, readdirSync, readlinkSync } from "node:fs";
      import { withNetns } from "./host/kernel/netns.ts";
      withNetns("${path}", () => { for (let i = 0; i < 64; i++) lstat("/", () => {}); });
      setTimeout(() => {
        const threads = readdirSync("/proc/self/task").map((task) => readlinkSync("/proc/self/task/" + task + "/ns/net"));
        console.log(threads.length, new Set(threads).size);
      }, 50);`;
    const run = spawnSync(process.execPath, ["--input-type=module", "-e", program], { cwd: root, encoding: "utf8" });
    expect(run.stderr).toBe("");
    const [threads, namespaces] = run.stdout.trim().split(" ").map(Number);
    expect(threads).toBeGreaterThan(4);
    expect(namespaces).toBe(1);
  });

  it("aborts the process when there is no way back", () => {
    const program = `
      import { loadNative } from "./host/kernel/native.ts";
      import { withNetns } from "./host/kernel/netns.ts";
      const native = loadNative();
      let calls = 0;
      const stuck = { ...native, setns: (fd, kind) => (++calls === 2 ? -1 : native.setns(fd, kind)) };
      try { withNetns("${path}", () => 1, stuck); } finally { console.log("went on"); }`;
    const run = spawnSync(process.execPath, ["--input-type=module", "-e", program], { cwd: root, encoding: "utf8" });
    expect(run).toMatchObject({ signal: "SIGABRT", stdout: "" });
    expect(run.stderr).toContain(`Cannot leave network namespace "${path}": operation not permitted (EPERM); aborting`);
  });

  it("says when there is no way in", () => {
    const native = { ...loadNative(), setns: () => -1 };
    expect(() => withNetns(path, () => expect.unreachable(), native)).toThrow(
      `Cannot enter network namespace "${path}": operation not permitted (EPERM)`,
    );
  });
});
