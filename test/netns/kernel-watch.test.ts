/** Waiting for descriptors, on the real event loop: callbacks, ends, and open descriptors at a worker's end. */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:os";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { beforeAll, describe, expect, it } from "vitest";
import { loadNative, type Native, type Watch } from "../../host/kernel/native.ts";

const root = join(import.meta.dirname, "../..");
const { errno } = constants;
const AF_INET = 2;
const SOCK_DGRAM = 2;
const MSG_DONTWAIT = 0x40;
const SOL_SOCKET = 1;
const SO_RCVBUF = 8;

let native: Native;
beforeAll(() => {
  native = loadNative();
});

function requireWatch(watch: Watch | number): Watch {
  if (typeof watch === "number") throw new Error(`watch returned ${watch}`);
  return watch;
}

/** A UDP socket on loopback, and its address. The ports are below those that the kernel gives to others. */
function openReceiver(port: number): { fd: number; address: Uint8Array } {
  const fd = native.socket(AF_INET, SOCK_DGRAM, 0);
  const address = Uint8Array.of(AF_INET, 0, port >> 8, port & 255, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0);
  expect(native.bind(fd, address)).toBe(0);
  return { fd, address };
}

it("sendto and recvfrom carry addresses", () => {
  const receiver = openReceiver(20_211);
  const sender = openReceiver(20_212);
  expect(native.sendto(sender.fd, Uint8Array.of(1, 2, 3), 0, receiver.address)).toBe(3);
  const into = new Uint8Array(8);
  const from = new Uint8Array(16);
  expect(native.recvfrom(receiver.fd, into, MSG_DONTWAIT, from)).toBe(3);
  expect(into).toEqual(Uint8Array.of(1, 2, 3, 0, 0, 0, 0, 0));
  expect(from).toEqual(sender.address);
  expect(native.recvfrom(receiver.fd, into, MSG_DONTWAIT, from)).toBe(-errno.EAGAIN);
  native.sendto(sender.fd, Uint8Array.of(1), 0, receiver.address);
  const short = new Uint8Array(4).fill(7);
  expect(native.recvfrom(receiver.fd, into, MSG_DONTWAIT, short.subarray(0, 2))).toBe(1);
  expect(short).toEqual(Uint8Array.of(AF_INET, 0, 7, 7));
  native.close(receiver.fd);
  native.close(sender.fd);
  expect(native.sendto(-1, into, 0, from)).toBe(-errno.EBADF);
  expect(native.recvfrom(-1, into, 0, from)).toBe(-errno.EBADF);
});

describe("setsockopt and attachFilter", () => {
  it("take bytes as well as a number", () => {
    const { fd } = openReceiver(20_213);
    expect(native.setsockopt(fd, SOL_SOCKET, SO_RCVBUF, Uint8Array.of(0, 32, 0, 0))).toBe(0);
    expect(native.setsockopt(fd, SOL_SOCKET, SO_RCVBUF, Uint8Array.of(0, 32))).toBe(-errno.EINVAL);
    native.close(fd);
  });

  it("a filter lets through packets for which it returns non-zero; half an instruction, none, or too many are refused", () => {
    const { fd, address } = openReceiver(20_214);
    const returning = (length: number) => Uint8Array.of(6, 0, 0, 0, length, 0, 0, 0);
    const accepts = () => {
      native.sendto(fd, Uint8Array.of(1), 0, address);
      return native.recv(fd, new Uint8Array(8), MSG_DONTWAIT);
    };
    expect(accepts()).toBe(1);
    expect(native.attachFilter(fd, returning(0))).toBe(0);
    expect(accepts()).toBe(-errno.EAGAIN);
    expect(native.attachFilter(fd, returning(64))).toBe(0);
    expect(accepts()).toBe(1);
    for (const length of [0, 7, 9, 8 * 4_097]) {
      expect(native.attachFilter(fd, new Uint8Array(length))).toBe(-errno.EINVAL);
    }
    expect(native.attachFilter(fd, new Uint8Array(8).fill(255))).toBe(-errno.EINVAL); // no such instruction
    expect(native.attachFilter(-1, returning(0))).toBe(-errno.EBADF);
    native.close(fd);
  });
});

describe("watch", () => {
  it("calls once per readable event, and never after unwatch", async () => {
    const { fd, address } = openReceiver(20_215);
    const seen: number[] = [];
    const watch = requireWatch(
      native.watch(fd, (result) => {
        seen.push(result);
        native.recv(fd, new Uint8Array(8), 0);
      }),
    );
    for (let round = 1; round <= 3; round++) {
      native.sendto(fd, Uint8Array.of(1), 0, address);
      for (let turns = 0; turns < 100 && seen.length < round; turns++) await turn();
      expect(seen).toEqual(new Array(round).fill(0));
    }
    expect(native.unwatch(watch)).toBe(0);
    native.sendto(fd, Uint8Array.of(1), 0, address);
    for (let turns = 0; turns < 10; turns++) await turn();
    expect(seen.length).toBe(3);
    expect(native.unwatch(watch)).toBe(-errno.EINVAL);
    native.close(fd);
  });

  it("may be ended from its own callback, and begun again", async () => {
    const { fd, address } = openReceiver(20_216);
    for (let round = 0; round < 50; round++) {
      native.sendto(fd, Uint8Array.of(1), 0, address);
      await new Promise<void>((resolve) => {
        const watch = requireWatch(
          native.watch(fd, () => {
            native.recv(fd, new Uint8Array(8), 0);
            expect(native.unwatch(watch)).toBe(0);
            resolve();
          }),
        );
      });
    }
    native.close(fd);
  });

  it("refuses descriptors that cannot be watched, and a second watch of the same one", () => {
    expect(native.watch(-1, () => {})).toBe(-errno.EBADF);
    const file = native.open("/etc/passwd", 0, 0);
    expect(native.watch(file, () => {})).toBe(-errno.EPERM);
    native.close(file);
    const { fd } = openReceiver(20_217);
    const watch = requireWatch(native.watch(fd, () => {}));
    expect(native.watch(fd, () => {})).toBe(-errno.EEXIST);
    native.unwatch(watch);
    native.close(fd);
  });

  type Untyped = Record<keyof Native, (...words: unknown[]) => unknown>;
  it.each<[string, (addon: Untyped) => unknown, RegExp]>([
    ["no callback", (addon) => addon.watch(0), /number of arguments/],
    ["a callback that is none", (addon) => addon.watch(0, 1), /not a function/],
    ["no number", (addon) => addon.watch("0", () => {}), /not a 32-bit integer/],
    ["a program that is no bytes", (addon) => addon.attachFilter(0, [1]), /not a Uint8Array/],
    ["an address that is no bytes", (addon) => addon.sendto(0, new Uint8Array(1), 0, "x"), /not a Uint8Array/],
    ["an option that is no bytes", (addon) => addon.setsockopt(0, 0, 0, new Uint16Array(1)), /not a Uint8Array/],
  ])("throws a TypeError for %s", (_, call, message) => {
    expect(() => call(native as unknown as Untyped)).toThrow(expect.objectContaining({ name: "TypeError" }));
    expect(() => call(native as unknown as Untyped)).toThrow(message);
  });

  it("of something else is not ended", () => {
    for (const other of [{}, () => {}, new Map()]) {
      expect(native.unwatch(other as unknown as Watch)).toBe(-errno.EINVAL);
    }
  });
});

/** A program with sockets that are watched and never closed. */
const openWatches = `
  const { loadNative } = await import(${JSON.stringify(pathToFileURL(join(root, "host/kernel/native.ts")).href)});
  const native = loadNative();
  for (let i = 0; i < 20; i++) native.watch(native.socket(2, 2, 0), () => {});
`;

describe("a watch that is left open", () => {
  it("is closed at the end of its worker, which may be sudden", async () => {
    for (const ending of ["process.exit(0)", "await new Promise(() => {})"]) {
      const program = `${openWatches}; (await import("node:worker_threads")).parentPort.postMessage("up"); ${ending}`;
      for (let round = 0; round < 5; round++) {
        const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(program)}`));
        const exit = once(worker, "exit");
        await once(worker, "message");
        await worker.terminate();
        await exit;
      }
    }
  });

  it("does not hold up process.exit, and a throwing callback is an uncaught exception", () => {
    const run = (tail: string) =>
      spawnSync(process.execPath, ["--input-type=module", "-e", openWatches + tail], { encoding: "utf8" });
    expect(run("process.exit(7)")).toMatchObject({ status: 7, stderr: "" });
    const thrower = `
      const fd = native.socket(2, 2, 0);
      native.bind(fd, Uint8Array.of(2, 0, 78, 254, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0));
      process.on("uncaughtException", (error) => { console.log("caught", error.message); process.exit(3); });
      native.watch(fd, () => { throw new Error("from the callback"); });
      native.sendto(fd, Uint8Array.of(1), 0, Uint8Array.of(2, 0, 78, 254, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0));`;
    expect(run(thrower)).toMatchObject({ status: 3, stdout: "caught from the callback\n" });
  });
});
