/** Bad configurations of the coordinator: refused with path, found and wanted, by every verb but DEL, and nothing changed. */
import { execFileSync } from "node:child_process";
import { linkSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ErrorCode } from "../../host/cni/error.ts";
import { segmentAddress } from "../lab/addressing.ts";
import { makePreparedWorld, type PreparedPod, type PreparedWorld } from "../lab/coordinator-worlds.ts";

let world: PreparedWorld;
let pod: PreparedPod;
/** Of node and pod without an attachment, but with what the first one leaves for all pods of the node: the rule. */
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

const MODES = 'want one of "auto", "underlay", "overlay", "disable", "disabled"';
const NIC =
  'want an interface name: 1 to 15 bytes without "/", ":", "%" and blanks, not "." or "..", "all" or "default"';
const MAC = 'want two octets such as "0a:1b" with the multicast bit 0 (the first octet is even), or ""';
const CIDR = 'want a network in CIDR form, such as "10.6.0.0/16", or an address';
const NUMBER = "want a whole number from 1 to 4294967295";
const TABLE = "want a routing table from 1 to 252 or from 256 to 4294967295, not 100 to 199 (Berth's own inside pods)";
const DURATION = 'want a duration such as "30s", "200ms" or "1h30m", at most 24 days, longer than 0';
const LOG = "want a path inside /var/log/vendor/";

describe("a field of the coordinator is refused by its path, with what was found and what is wanted", () => {
  /** The text after `CNI configuration: field `. */
  const rows: [conf: object, text: string][] = [
    [{ mode: 1 }, `"mode": found 1, ${MODES}`],
    [{ mode: "Underlay" }, `"mode": found "Underlay", ${MODES}`],
    [{ tune_mode: "none" }, `"tune_mode": found "none", ${MODES}`],
    [{ mode: "auto", tune_mode: "overlay" }, '"tune_mode": found "overlay", want the value of "mode"'],
    [{ modes: "auto" }, '"modes": found an unknown key, want the key "mode"'],
    [{ tunePodRoutes: "yes" }, '"tunePodRoutes": found "yes", want true or false'],
    [{ tunePodRoute: true }, '"tunePodRoute": found an unknown key, want the key "tunePodRoutes"'],
    [{ podDefaultRouteNic: 0 }, '"podDefaultRouteNic": found 0, want an interface name'],
    [{ podDefaultRouteNic: "a/b" }, '"podDefaultRouteNic": found "a/b", want an interface name'],
    [{ podDefaultCniNic: true }, `"podDefaultCniNic": found true, ${NIC}`],
    [{ podDefaultCniNic: "interface-of-17-b" }, `"podDefaultCniNic": found "interface-of-17-b", ${NIC}`],
    [{ detectGateway: "true" }, '"detectGateway": found "true", want true or false'],
    [{ detectGatway: true }, '"detectGatway": found an unknown key, want the key "detectGateway"'],
    [{ detectIPConflict: 1 }, '"detectIPConflict": found 1, want true or false'],
    [{ detectIpConflict: true }, '"detectIpConflict": found an unknown key, want the key "detectIPConflict"'],
    [{ podMACPrefix: 10 }, `"podMACPrefix": found 10, ${MAC}`],
    [{ podMACPrefix: "0a:1b:2c" }, `"podMACPrefix": found "0a:1b:2c", ${MAC}`],
    [{ podMACPrefix: "0b:00" }, `"podMACPrefix": found "0b:00", ${MAC}`],
    [{ podMacPrefix: "0a:00" }, '"podMacPrefix": found an unknown key, want the key "podMACPrefix"'],
    [{ overlayPodCIDR: "10.244.0.0/16" }, '"overlayPodCIDR": found "10.244.0.0/16", want a list'],
    [{ overlayPodCIDR: ["10.244.0.0/64"] }, `"overlayPodCIDR[0]": found "10.244.0.0/64", ${CIDR}`],
    [{ overlayPodCIDR: ["fd00::/129"] }, `"overlayPodCIDR[0]": found "fd00::/129", ${CIDR}`],
    [{ serviceCIDR: null }, '"serviceCIDR": found null, want a list'],
    [
      { serviceCIDR: ["fd00::1/64"] },
      '"serviceCIDR[0]": found "fd00::1/64" (that is "fd00::/64"), want its canonical form',
    ],
    [{ serviceCIDR: ["010.0.0.1"] }, `"serviceCIDR[0]": found "010.0.0.1", ${CIDR}`],
    [{ hijackCIDR: [169] }, `"hijackCIDR[0]": found 169, ${CIDR}`],
    [{ hijackCIDR: ["169.254.20.10", "fe80::1%eth0"] }, `"hijackCIDR[1]": found "fe80::1%eth0", ${CIDR}`],
    [{ hijackCIDR: Array(1_025).fill("10.0.0.1") }, '"hijackCIDR": found a list, want a list of at most 1024 entries'],
    [{ hijackCidr: [] }, '"hijackCidr": found an unknown key, want the key "hijackCIDR"'],
    [{ hostRuleTable: "500" }, `"hostRuleTable": found "500", ${NUMBER}`],
    [{ hostRuleTable: 0 }, `"hostRuleTable": found 0, ${NUMBER}`],
    [{ hostRuleTable: 1.5 }, `"hostRuleTable": found 1.5, ${NUMBER}`],
    [{ hostRuleTable: 4_294_967_296 }, `"hostRuleTable": found 4294967296, ${NUMBER}`],
    ...[253, 254, 255, 100, 199].map((table): [object, string] => [
      { hostRuleTable: table },
      `"hostRuleTable": found ${table}, ${TABLE}`,
    ]),
    [{ hostRPFilter: "0" }, '"hostRPFilter": found "0", want one of -1, 0, 1, 2'],
    [{ hostRPFilter: 3 }, '"hostRPFilter": found 3, want one of -1, 0, 1, 2'],
    [{ hostRpFilter: 0 }, '"hostRpFilter": found an unknown key, want the key "hostRPFilter"'],
    [{ serviceSnat: true }, '"serviceSnat": found true, want one of "auto", "on", "off"'],
    [{ serviceSnat: "yes" }, '"serviceSnat": found "yes", want one of "auto", "on", "off"'],
    [{ detectOptions: [] }, '"detectOptions": found an empty list, want an object'],
    [{ detectOptions: { retry: "3" } }, '"detectOptions.retry": found "3", want a whole number from 1 to 100'],
    [{ detectOptions: { retry: 101 } }, '"detectOptions.retry": found 101, want a whole number from 1 to 100'],
    [{ detectOptions: { retry: 3, retries: 4 } }, '"detectOptions.retries": found 4, want the value of "retry"'],
    [{ detectOptions: { interval: 1 } }, `"detectOptions.interval": found 1, ${DURATION}`],
    [{ detectOptions: { timeout: "-1s" } }, `"detectOptions.timeout": found "-1s", ${DURATION}`],
    [{ detectOptions: { window: "0s" } }, `"detectOptions.window": found "0s", ${DURATION}`],
    [{ detectOptions: { windows: "1s" } }, '"detectOptions.windows": found an unknown key, want the key "window"'],
    [{ detectOptions: { onConflict: "no" } }, '"detectOptions.onConflict": found "no", want one of "fail", "next"'],
    [{ logOptions: "debug" }, '"logOptions": found "debug", want an object'],
    [{ logOptions: { logLevel: "loud" } }, '"logOptions.logLevel": found "loud", want one of "trace", "debug"'],
    [{ logOptions: { logfile: "x" } }, '"logOptions.logfile": found an unknown key, want the key "logFile"'],
    [{ logOptions: { logFile: 7 } }, `"logOptions.logFile": found 7, ${LOG}`],
    [{ logOptions: { logFile: "/etc/cron.d/x" } }, `"logOptions.logFile": found "/etc/cron.d/x", ${LOG}`],
    [{ logOptions: { logFile: "/var/log/vendor/../x" } }, `"logOptions.logFile": found "/var/log/vendor/../x", ${LOG}`],
    [{ podCIDRType: "auto" }, '"podCIDRType": found an unknown key, want one of the keys type, mode, tune_mode'],
  ];
  it.each(rows)("%.100j", (conf, text) => expectRefusal(conf, `CNI configuration: field ${text}`));
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

  /** What the coordinator has made. Of the neighbours each asking changes some. */
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
