/** Settings of a namespace on the real kernel: there, and only there. */
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { writeSysctl, writeSysctls } from "../../host/kernel/sysctl.ts";
import { readSysctl } from "../world/sysctl.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";

const name = `bks${process.pid}`;
const path = `/run/netns/${name}`;
const key = "ipv4/conf/default/rp_filter";
const ownValue = () => readFileSync(`/proc/sys/net/${key}`, "utf8").trim();

beforeAll(() => {
  execFileSync("ip", ["netns", "add", name]);
  execFileSync("ip", ["-n", name, "link", "add", "e.1", "type", "veth", "peer", "name", "p0"]);
});

afterAll(() => {
  execFileSync("ip", ["netns", "del", name]);
});

it("is written and read inside, and stays as it was outside", () => {
  const outside = ownValue();
  for (const value of ["0", "1", "2"]) {
    writeSysctl(path, key, value);
    expect(readSysctl(path, key)).toBe(value);
    expect(execFileSync("ip", ["netns", "exec", name, "cat", `/proc/sys/net/${key}`]).toString()).toBe(`${value}\n`);
    expect(ownValue()).toBe(outside);
  }
});

it("that is absent is not read", () => {
  expect(readSysctl(path, "ipv4/conf/absent/rp_filter")).toBeUndefined();
});

it("are written in order, none after one that is refused", () => {
  const values = new Map([
    ["ipv4/conf/e.1/rp_filter", "2"],
    ["ipv4/conf/e.1/absent", "1"],
    ["ipv4/conf/all/rp_filter", "2"],
  ]);
  const before = readSysctl(path, "ipv4/conf/all/rp_filter");
  expect(before).not.toBe("2");
  expect(() => writeSysctls(path, values)).toThrow(/e.1\/absent" to "1": .*ENOENT/);
  expect(readSysctl(path, "ipv4/conf/e.1/rp_filter")).toBe("2");
  expect(readSysctl(path, "ipv4/conf/all/rp_filter")).toBe(before);
});

it("of a link whose name has a dot, and of several numbers", () => {
  writeSysctl(path, "ipv6/conf/e.1/accept_dad", "0");
  expect(readSysctl(path, "ipv6/conf/e.1/accept_dad")).toBe("0");
  writeSysctl(path, "ipv4/ping_group_range", "1\t0");
  expect(readSysctl(path, "ipv4/ping_group_range")).toBe("1\t0");
});

const refused: [string, () => unknown, RegExp][] = [
  [
    "a link that is absent",
    () => writeSysctl(path, "ipv4/conf/absent/rp_filter", "1"),
    /^Cannot set sysctl "net\/ipv4\/conf\/absent\/rp_filter" to "1": .*ENOENT/,
  ],
  [
    "a value that the kernel refuses",
    () => writeSysctl(path, key, "many"),
    /^Cannot set sysctl "net\/.*" to "many": .*EINVAL/,
  ],
  ["a setting that is absent", () => writeSysctl(path, "ipv4/conf/e.1/absent", "1"), /to "1": .*ENOENT/],
  ["a setting that is only read", () => writeSysctl(path, "ipv4/conf/e.1/mc_forwarding", "1"), /EACCES/],
  ["a folder", () => readSysctl(path, "ipv4/conf"), /EISDIR/],
  ["a way out", () => readSysctl(path, "ipv4/../../kernel/hostname"), /EINVAL/],
  ["a way out by a dot", () => writeSysctl(path, "./ipv4/ip_forward", "1"), /EINVAL/],
  ["an empty part", () => readSysctl(path, "ipv4//ip_forward"), /EINVAL/],
  ["a NUL", () => readSysctl(path, "ipv4/ip_forward\0"), /EINVAL/],
  ["a key of one part", () => readSysctl(path, "ipv4"), /EINVAL/],
];
it.each(refused)("refuses %s", (_, call, message) => {
  expect(call).toThrow(expect.objectContaining({ name: "SysctlError" }));
  expect(call).toThrow(message);
});

it("of a namespace that is absent is an error that names it", () => {
  expect(() => readSysctl("/run/netns/absent", key)).toThrow(expect.objectContaining({ name: "NetnsError" }));
});

it("is written by way of BERTH_SYSCTL_DIR where /proc/sys is read-only, as in a container", () => {
  const directory = temporaryDirectory("berth-sysctls-", onTestFinished);
  const module = join(import.meta.dirname, "../../host/kernel/sysctl.ts");
  const program = `const { readSysctls, writeSysctl } = await import(${JSON.stringify(module)});
    const before = readSysctls(${JSON.stringify(path)}, ["${key}"]).get("${key}");
    writeSysctl(${JSON.stringify(path)}, "${key}", before === "2" ? "1" : "2");`;
  const container = `mount --bind /proc/sys/net ${directory}; mount --bind /proc/sys /proc/sys
    mount -o remount,bind,ro /proc/sys; exec "$0" --input-type=module -e "$1"`;
  const run = (env: NodeJS.ProcessEnv) =>
    spawnSync("unshare", ["--mount", "sh", "-ec", container, process.execPath, program], { env, encoding: "utf8" });
  const [outside, before] = [ownValue(), readSysctl(path, key)];
  expect(run(process.env).stderr).toContain("EROFS");
  expect(run({ ...process.env, BERTH_SYSCTL_DIR: directory }).stderr).toBe("");
  expect(readSysctl(path, key)).toBe(before === "2" ? "1" : "2");
  expect(ownValue()).toBe(outside);
});
