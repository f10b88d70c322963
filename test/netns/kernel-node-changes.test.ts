/**
 * Which changes of a node's network are reported, on the real kernel: those by which pods lose objects of the node, and
 * no others.
 */
import { execFileSync } from "node:child_process";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type NodeChange, watchNodeChanges } from "../../host/kernel/node-changes.ts";
import { type NodeNamespace, openNode } from "../../host/kernel/open-namespace.ts";
import { ipIn } from "./kernel-scene.ts";

const node = `bknc${process.pid}`;
let opened: DisposableStack;
let host: NodeNamespace;
let changes: NodeChange[];

beforeEach(() => {
  execFileSync("ip", ["netns", "add", node]);
  ipIn(node, "link set lo up", "link add v0 type veth peer name v1", "link set v0 up", "link set v1 up");
  ipIn(node, "addr add 10.9.0.1/24 dev v0", "route add 10.8.0.1/32 dev v0 table 500 proto 98");
  ipIn(node, "rule add pref 900 lookup 500 protocol 98");
  changes = [];
  opened = new DisposableStack();
});

afterEach(() => {
  opened.dispose();
  execFileSync("ip", ["netns", "del", node]);
});

function watch(bufferBytes?: number): void {
  const note = (change: NodeChange): void => void changes.push(change);
  host = opened.use(openNode(`/run/netns/${node}`, { onChange: note }));
  host.mirror.routesOf(500);
  const size = bufferBytes === undefined ? {} : { bufferBytes };
  opened.use(watchNodeChanges(host, { gatherMs: 0, ...size }, note));
}

function run(...argv: readonly string[]): void {
  execFileSync("ip", ["netns", "exec", node, ...argv], { stdio: ["ignore", "ignore", "inherit"] });
}

const nft = (text: string): string =>
  execFileSync("ip", ["netns", "exec", node, "nft", "-f", "-"], { input: text, encoding: "utf8" });

/** Reports of the changes, without numbers of sockets. */
const reported = (): unknown[] =>
  changes.map(({ ...change }) => ("port" in change ? { ...change, port: change.port > 0 } : change));

const indexOf = (name: string): number =>
  (
    JSON.parse(execFileSync("ip", ["-n", node, "-j", "link", "show", name], { encoding: "utf8" })) as {
      ifindex: number;
    }[]
  )[0]?.ifindex ?? 0;

/**
 * Makes the change; it and nothing else must be reported. The table that is made last shows that nothing more is to
 * come.
 */
async function expectChange(act: () => void, wanted: readonly object[]): Promise<void> {
  watch();
  act();
  nft("add table ip last");
  await expect.poll(() => changes.at(-1)?.kind, { timeout: 30_000 }).toBe("ruleset");
  await expect.poll(() => changes.length).toBeGreaterThan(wanted.length);
  expect(reported().slice(0, -1)).toEqual(wanted);
}

const ruleChange = (preference: number, protocol: number, isNew = false) => ({
  ...{ kind: "rule", isNew, preference, protocol, port: true },
});

const neighbour = "10.9.0.5 lladdr 02:00:00:00:00:01 dev v0 nud permanent";

it.each<[string, () => void, (link: number) => object[]]>([
  ["a deleted rule", () => run("ip", "rule", "del", "pref", "900"), () => [ruleChange(900, 98)]],
  [
    "a flushed table",
    () => run("ip", "route", "flush", "table", "500"),
    (link) => [{ kind: "route", link, port: true }],
  ],
  [
    "a replaced route",
    () => run("ip", "route", "replace", "10.8.0.1/32", "dev", "lo", "table", "500"),
    () => [{ kind: "route", link: 1, port: true }],
  ],
  [
    "a link that is set down",
    () => run("ip", "link", "set", "v0", "down"),
    (link) => [{ kind: "link", link, type: "veth", port: false }],
  ],
  [
    "a written rp_filter",
    () => run("sysctl", "-qw", "net.ipv4.conf.v0.rp_filter=1"),
    (link) => [{ kind: "setting", link, rpFilter: 1 }],
  ],
  [
    "settings of all links",
    () => run("sysctl", "-qw", "net.ipv4.conf.default.rp_filter=2", "net.ipv4.conf.all.rp_filter=2"),
    () => [],
  ],
  ["a route of another table", () => run("ip", "route", "flush", "table", "main"), () => []],
  ["an added rule", () => run("ip", "rule", "add", "pref", "800", "lookup", "7"), () => [ruleChange(800, 0, true)]],
  ["a new link", () => run("ip", "link", "add", "v7", "type", "veth", "peer", "name", "v8"), () => []],
  ["a new neighbour", () => run("ip", "neigh", "add", ...neighbour.split(" ")), () => []],
  [
    "an address for which no machine answers",
    () =>
      run("sh", "-c", "sysctl -qw net.ipv4.neigh.v0.retrans_time_ms=10; ping -c1 -W0.3 10.9.0.77 >/dev/null || true"),
    () => [],
  ],
])("of %s", (_, act, wanted) => expectChange(act, wanted(indexOf("v0"))));

it("of a deleted neighbour", async () => {
  run("ip", "neigh", "add", ...neighbour.split(" "));
  const link = indexOf("v0");
  await expectChange(
    () => run("ip", "neigh", "flush", "dev", "v0", "nud", "permanent"),
    [{ kind: "neighbour", link, port: true }],
  );
});

it("of a ruleset once for each transaction, with the program's name", async () => {
  watch();
  const services = Array.from(
    { length: 5_000 },
    (_, at) => `add element ip proxy services { 10.96.${at >> 8}.${at & 255} : 10.1.0.1 }`,
  );
  nft("add table ip proxy; add map ip proxy services { type ipv4_addr : ipv4_addr; }");
  for (let round = 0; round < 3; round++) nft(`flush map ip proxy services\n${services.join("\n")}`);
  nft("add table ip last");
  await expect.poll(() => changes.length, { timeout: 30_000 }).toBeGreaterThanOrEqual(5);
  expect(reported()).toEqual(Array.from({ length: 5 }, () => ({ kind: "ruleset", program: "nft" })));
});

it("of an overrun, as one that says nothing else", async () => {
  watch(2_048);
  for (let at = 0; at < 40; at++) run("sysctl", "-qw", `net.ipv4.conf.v0.rp_filter=${at % 2}`);
  await expect.poll(() => changes.some(({ kind }) => kind === "unknown"), { timeout: 30_000 }).toBe(true);
  expect(changes.filter(({ kind }) => kind === "unknown")).toHaveLength(1);
});
