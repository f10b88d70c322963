/**
 * Bad configurations of the coordinator: refused with path, found and wanted, by every verb but DEL, and nothing
 * changed.
 */
import { execFileSync } from "node:child_process";
import { linkSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ErrorCode } from "../../host/cni/error.ts";
import { segmentAddress } from "../lab/addressing.ts";
import { makePreparedWorld, type PreparedPod, type PreparedWorld } from "../lab/netns/coordinator.ts";

let world: PreparedWorld;
let pod: PreparedPod;
/**
 * State of node and pod without an attachment, but with the part that the first one leaves for all pods of the node:
 * the rule.
 */
let detached: readonly string[];
/** A file that cannot be written. */
let victim: string;

beforeAll(async () => {
  world = await makePreparedWorld("ci");
  ({ pod } = world);
  victim = join(world.node.agent.directory, "victim");
  writeFileSync(victim, "untouched");
  await pod.succeed("ADD");
  await pod.succeed("CHECK");
  await pod.succeed("DEL");
  detached = await pod.state();
  expect(await pod.netns.ip("route show default")).toContain("dev eth0");
}, 60_000);

afterAll(() => world?.delete());

/** ADD, CHECK and STATUS refuse with this code and text and change nothing; DEL takes back what a good ADD has done. */
async function expectRefusal(conf: object, text: string, code: number = ErrorCode.InvalidNetworkConfig): Promise<void> {
  for (const verb of ["ADD", "CHECK", "STATUS"] as const) {
    const refusal = await pod.refused(verb, { conf });
    expect(refusal.msg, verb).toContain(text);
    expect(refusal, verb).toMatchObject({ code });
  }
  await pod.expectState(detached, "after the refusals");
  await pod.succeed("ADD");
  expect((await pod.succeed("DEL", { conf })).text).toBe("");
  await pod.expectState(detached, "after DEL");
}

/** All fields: test/unit/config/coordinator-conf.test.ts. */
describe("a field of the coordinator is refused by its path, with what was found and what is wanted", () => {
  it.each([
    [
      { tune_mode: "none" },
      '"tune_mode": found "none", want one of "auto", "underlay", "overlay", "disable", "disabled"',
    ],
    [{ detectOptions: { retry: 101 } }, '"detectOptions.retry": found 101, want a whole number from 1 to 100'],
    [{ logOptions: { logFile: "/x" } }, '"logOptions.logFile": found "/x", want a path inside /var/log/vendor/'],
  ])("%j", (conf, text) => expectRefusal(conf, `CNI configuration: field ${text}`));
});

it("DEL without ADD changes nothing in a pod that still runs", async () => {
  await pod.succeed("DEL");
  await pod.succeed("DEL", { conf: { mode: 1 } });
  await pod.expectState(detached, "after DEL");
});

describe("a log file that leads elsewhere is refused", () => {
  const WANTED = "want a regular file below /var/log/vendor/, in existing folders, without links";
  const rows: [name: string, make: (directory: string) => unknown, found: string][] = [
    [
      "link.log",
      (at) => symlinkSync(victim, join(at, "link.log")),
      '"/var/log/vendor/link.log", which is a symbolic link',
    ],
    ["up/victim", (at) => symlinkSync("..", join(at, "up")), '"/var/log/vendor/up", which is a symbolic link'],
    [
      "hard.log",
      (at) => linkSync(victim, join(at, "hard.log")),
      '"/var/log/vendor/hard.log", which is a file with 2 names',
    ],
    ["fifo.log", (at) => execFileSync("mkfifo", [join(at, "fifo.log")]), '"/var/log/vendor/fifo.log", which is a FIFO'],
    ["dir.log", (at) => mkdirSync(join(at, "dir.log")), '"/var/log/vendor/dir.log", which is a directory'],
    [
      "null.log",
      (at) => execFileSync("mknod", [join(at, "null.log"), "c", "1", "3"]),
      '"/var/log/vendor/null.log", which is a device',
    ],
    ["absent/a.log", () => {}, '"/var/log/vendor/absent", which does not exist'],
  ];
  it.each(rows)("%s", async (name, make, found) => {
    make(world.node.agent.logDir);
    const conf = { logOptions: { logFile: `/var/log/vendor/${name}` } };
    await expectRefusal(conf, `Field "logOptions.logFile": found ${found}`);
    expect((await pod.refused("ADD", { conf })).msg).toContain(WANTED);
    expect(readFileSync(victim, "utf8")).toBe("untouched");
  });
});

describe("detectGateway through the plugin", () => {
  const conf = { detectGateway: true, detectOptions: { retry: 2, interval: "50ms", timeout: "200ms" } };
  /** The NIC's result with other gateways: host 1 is the segment's router, nothing has host 99. */
  const via = (...hosts: readonly [v4: number, v6: number]) => {
    const { ips, ...result } = pod.resultOf() ?? expect.unreachable();
    const gateways = [segmentAddress(0, hosts[0], 4), segmentAddress(0, hosts[1], 6)];
    return { ...result, ips: ips.map((each, index) => ({ ...each, gateway: gateways[index] })) };
  };

  /** Returns the coordinator's routes and links. Neighbours are left out, because each detection changes some. */
  const made = () => {
    const ask = ["-4 route show table all proto 98", "-6 route show table all proto 98", "-brief link show type veth"];
    return Promise.all([
      ...ask.map((each) => pod.netns.ip(each)),
      ...ask.slice(0, 2).map((each) => world.fabric.node1.ip(each)),
    ]);
  };

  it("passes where both gateways answer", async () => {
    await pod.succeed("ADD", { conf, prevResult: via(1, 1) });
    expect((await made()).filter((text) => text === "")).toEqual([]);
    await pod.succeed("DEL");
  });

  const silent: [family: string, hosts: readonly [number, number], gateway: string][] = [
    ["IPv4", [99, 1], segmentAddress(0, 99, 4)],
    ["IPv6", [1, 99], segmentAddress(0, 99, 6)],
  ];
  it.each(silent)(
    "refuses with code 105 an %s gateway that does not answer, and changes nothing",
    async (_, hosts, gateway) => {
      const prevResult = via(...hosts);
      expect(await pod.refused("ADD", { conf, prevResult })).toMatchObject({
        code: 105,
        msg: expect.stringContaining(gateway),
      });
      expect((await made()).join("")).toBe("");
      await pod.succeed("ADD", { prevResult });
      await pod.succeed("DEL");
    },
  );
});
