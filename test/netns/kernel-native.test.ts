/** The addon itself, and the socket on it: numbers in and out, wrong arguments, foreign senders. */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readlinkSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { beforeAll, describe, expect, it } from "vitest";
import { loadNative, type Native } from "../../host/kernel/native.ts";
import {
  AF_NETLINK,
  MSG_DONTWAIT,
  NETLINK_ROUTE,
  SOCK_CLOEXEC,
  SOCK_RAW,
} from "../../host/kernel/netlink/constants.ts";
import { decodeMessages } from "../../host/kernel/netlink/message.ts";
import { openRouteSocket } from "../../host/kernel/netlink/socket.ts";

const root = join(import.meta.dirname, "../..");
const { errno } = constants;
const OWN = "/proc/self/ns/net";
function socketInodes(): string[] {
  return openFds().flatMap((target) => /^socket:\[(\d+)\]$/.exec(target)?.[1] ?? []);
}

/** Descriptors of sockets and namespaces; others belong to the test runner. */
function openFds(): string[] {
  const links = readdirSync("/proc/self/fd").map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return ""; // of readdir itself
    }
  });
  return links.filter((link) => /^(?:socket|net):/.test(link)).sort();
}

let native: Native;
beforeAll(() => {
  native = loadNative();
});

describe("the addon", () => {
  it("returns -errno for a refusal of the kernel", () => {
    expect(native.open("/nonexistent", 0, 0)).toBe(-errno.ENOENT);
    expect(native.open("a\0b", 0, 0)).toBe(-errno.EINVAL);
    expect(native.inotifyAddWatch(0, "a\0b", 1)).toBe(-errno.EINVAL);
    expect(native.inotifyAddWatch(-1, "/", 1)).toBe(-errno.EBADF);
    expect(native.read(-1, new Uint8Array(1))).toBe(-errno.EBADF);
    expect(native.inotifyInit(1)).toBe(-errno.EINVAL);
    expect(native.open("/".repeat(4_096), 0, 0)).toBe(-errno.ENAMETOOLONG);
    expect(native.open("é".repeat(2_048), 0, 0)).toBe(-errno.ENAMETOOLONG);
    expect(native.close(-1)).toBe(-errno.EBADF);
    expect(native.socket(-1, 0, 0)).toBe(-errno.EAFNOSUPPORT);
    expect(native.bind(-1, new Uint8Array(12))).toBe(-errno.EBADF);
    expect(native.connect(-1, new Uint8Array(12))).toBe(-errno.EBADF);
    expect(native.send(-1, new Uint8Array(1), 0)).toBe(-errno.EBADF);
    expect(native.recv(-1, new Uint8Array(1), 0)).toBe(-errno.EBADF);
    expect(native.setsockopt(-1, 1, 1, 1)).toBe(-errno.EBADF);
    expect(native.getsockopt(-1, 1, 71, new Uint8Array(8))).toBe(-errno.EBADF);
    expect(native.setns(-1, 0)).toBe(-errno.EBADF);
    expect(native.identify(-1, new BigUint64Array(2))).toBe(-errno.EBADF);
  });

  it("identifies namespaces, and nothing else", () => {
    const into = new BigUint64Array(2);
    const fd = native.open(OWN, 0, 0);
    expect(native.identify(fd, into)).toBe(0x40000000);
    expect(into.every((word) => word > 0n)).toBe(true);
    expect(native.identify(fd, new BigUint64Array(1))).toBe(-errno.EINVAL);
    native.close(fd);
    const plain = native.open("/etc/passwd", 0, 0);
    expect(native.identify(plain, into)).toBe(-errno.ENOTTY);
    native.close(plain);
  });

  it("binds, and passes flags through", () => {
    const fd = native.socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    expect(native.bind(fd, Uint8Array.of(AF_NETLINK, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))).toBe(0);
    expect(native.recv(fd, new Uint8Array(16), MSG_DONTWAIT)).toBe(-errno.EAGAIN);
    expect(native.close(fd)).toBe(0);
  });

  it("sends and receives just the part that a view shows", () => {
    const whole = Uint8Array.from({ length: 64 }, () => 0xee);
    // RTM_GETLINK of index 1, asking for an acknowledgement only in case of failure
    const request = new Uint8Array(whole.buffer, 16, 32);
    request.set([32, 0, 0, 0, 18, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    const fd = native.socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    expect(native.send(fd, request, 0)).toBe(32);
    const room = new Uint8Array(4_096).fill(0xee);
    expect(native.recv(fd, room.subarray(8, 40), 0)).toBe(32);
    expect(room.subarray(0, 8).every((byte) => byte === 0xee)).toBe(true);
    expect(room.subarray(40).every((byte) => byte === 0xee)).toBe(true);
    expect(room[12]).toBe(16); // RTM_NEWLINK
    native.close(fd);
  });

  it("exchanges a request for all datagrams of the answer, each from a multiple of four, as far as there is room", () => {
    const fd = native.socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    // RTM_GETLINK of index 1 twice, with acknowledgements
    const request = new Uint8Array(64);
    for (const at of [0, 32]) {
      request.set([32, 0, 0, 0, 18, 0, 5, 0, 9 + at], at);
      request[at + 20] = 1;
    }
    const room = new Uint8Array(2 * 32_768 + 3).fill(0xee);
    const length = native.exchange(fd, request, room.subarray(0, -3));
    const messages = decodeMessages(room.subarray(0, length));
    expect(messages.slice(0, 2).map(({ type, sequence }) => [type, sequence])).toEqual([
      [16, 9],
      [2, 9],
    ]);
    expect(length % 4).toBe(0);
    while (native.recv(fd, new Uint8Array(32_768), MSG_DONTWAIT) > 0);
    expect(native.exchange(fd, request, new Uint8Array(32_767))).toBe(0); // no room: nothing is received
    expect(native.recv(fd, new Uint8Array(32_768), MSG_DONTWAIT)).toBeGreaterThan(0);
    expect(native.exchange(-1, request, room)).toBe(-errno.EBADF);
    native.close(fd);
    const unreadable = native.open("/dev/null", 1, 0);
    expect(native.exchange(unreadable, request, room)).toBe(-errno.ENOTSOCK);
    native.close(unreadable);
  });

  type Untyped = Record<keyof Native, (...words: unknown[]) => unknown>;
  const wrong: [string, (addon: Untyped) => unknown, RegExp][] = [
    ["no argument", (addon) => addon.close(), /number of arguments/],
    ["too many arguments", (addon) => addon.close(1, 2), /number of arguments/],
    ["far too many arguments", (addon) => addon.close(1, 2, 3, 4, 5, 6), /number of arguments/],
    ["a text for a number", (addon) => addon.close("1"), /not a 32-bit integer/],
    ["a fraction", (addon) => addon.close(1.5), /not a 32-bit integer/],
    ["NaN", (addon) => addon.close(Number.NaN), /not a 32-bit integer/],
    ["a number beyond 32 bits", (addon) => addon.setns(2 ** 31, 0), /not a 32-bit integer/],
    ["infinity", (addon) => addon.socket(Number.POSITIVE_INFINITY, 0, 0), /not a 32-bit integer/],
    ["a number for a text", (addon) => addon.open(1, 0, 0), /not a string/],
    ["a number for a directory", (addon) => addon.inotifyAddWatch(1, 1, 0), /not a string/],
    ["a text for bytes", (addon) => addon.send(1, "x", 0), /not a Uint8Array/],
    ["other words for bytes", (addon) => addon.recv(1, new Uint16Array(1), 0), /not a Uint8Array/],
    ["a DataView for bytes", (addon) => addon.bind(1, new DataView(new ArrayBuffer(8))), /not a Uint8Array/],
    ["bytes for words", (addon) => addon.identify(1, new Uint8Array(16)), /not a BigUint64Array/],
    ["undefined for bytes", (addon) => addon.connect(1, undefined), /not a Uint8Array/],
    ["an object for a number", (addon) => addon.setsockopt(1, 2, {}, 4), /not a 32-bit integer/],
  ];
  it.each(wrong)("throws a TypeError for %s", (_, call, message) => {
    expect(() => call({ ...native } as Untyped)).toThrow(message);
    expect(() => call({ ...native } as Untyped)).toThrow(TypeError);
  });

  it("works in several threads at once", async () => {
    const program = `
      import { parentPort } from "node:worker_threads";
      import { readlinkSync } from "node:fs";
      import { loadNative } from ${JSON.stringify(pathToFileURL(join(root, "host/kernel/native.ts")))};
      const fd = loadNative().open("/proc/self/ns/net", 0, 0);
      parentPort.postMessage([loadNative().setns(fd, 0x40000000), readlinkSync("/proc/thread-self/ns/net")]);
      loadNative().close(fd);`;
    const url = new URL(`data:text/javascript,${encodeURIComponent(program)}`);
    const workers = [1, 2, 3].map(() => new Worker(url));
    const answers = workers.map((worker) => once(worker, "message"));
    const exits = workers.map((worker) => once(worker, "exit"));
    for (const [answer] of await Promise.all(answers)) expect(answer).toEqual([0, readlinkSync(OWN)]);
    await Promise.all(exits);
  });
});

describe("a netlink socket", () => {
  it("takes datagrams from the kernel only", () => {
    const before = new Set(socketInodes());
    using ours = openRouteSocket(OWN);
    const [inode = ""] = socketInodes().filter((each) => !before.has(each));
    const table = execFileSync("cat", ["/proc/net/netlink"]).toString().split("\n");
    const line = table.find((row) => row.trim().endsWith(` ${inode}`)) ?? "";
    const port = Number(line.trim().split(/\s+/)[2]);
    expect(port).toBeGreaterThan(0);
    const foreign = native.socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    const address = new Uint8Array(12);
    address[0] = AF_NETLINK;
    new DataView(address.buffer).setUint32(4, port, true);
    native.connect(foreign, address);
    expect(native.send(foreign, new Uint8Array(16), 0)).toBe(-errno.ECONNREFUSED);
    native.close(foreign);
    expect(() => ours.receive()).toThrow(/EAGAIN|temporarily unavailable/);
  });

  it("refuses a datagram that was cut off", () => {
    const long = {
      ...native,
      recv: (fd: number, into: Uint8Array, flags: number) => native.recv(fd, into, flags) && 40_000,
    };
    using socket = openRouteSocket(OWN, long);
    expect(() => socket.receive()).toThrow(/EMSGSIZE.*: datagram of 40000 bytes, room for 32768/);
  });

  it("reports receiving that fails with the answer, not with the request", () => {
    using socket = openRouteSocket(OWN, { ...native, exchange: () => -4_096 - errno.ENOBUFS });
    socket.send(new Uint8Array(16));
    expect(() => socket.receive()).toThrow(/^Cannot receive from the kernel: .*ENOBUFS/);
    expect(() => socket.receive()).toThrow(/EAGAIN/);
  });

  it("continues after an interruption", () => {
    const results = [-errno.EINTR, -errno.EINTR, 3];
    using socket = openRouteSocket(OWN, { ...native, recv: () => results.shift() ?? 0 });
    expect(socket.receive()).toEqual(new Uint8Array(3));
  });

  it.each(["socket", "setsockopt", "connect", "exchange"] as const)(
    "names the failed call when %s fails, and closes",
    (failing) => {
      const before = openFds();
      const broken: Native = { ...native, [failing]: () => -errno.ENOBUFS };
      const use = () => {
        using socket = openRouteSocket(OWN, broken);
        socket.send(new Uint8Array(16));
      };
      expect(use).toThrow(/^Cannot (open|configure|connect|send to).*ENOBUFS/);
      expect(openFds()).toEqual(before);
    },
  );
});
