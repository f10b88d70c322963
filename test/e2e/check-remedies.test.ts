/**
 * Remedies of `berthctl check`: for each kind of difference, the printed commands, executed as by a reader, and
 * `check --repair` restore the same and leave no finding.
 */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { formatAlias } from "../../host/coordinator/plan/alias.ts";
import { nameVeth } from "../../host/coordinator/plan/names.ts";
import type { CheckReport } from "../../host/records/check-record.ts";
import { runBerthctl } from "../lab/berthctl.ts";
import { requireCommand, runCommand } from "../lab/command.ts";
import { ipPool, macvlan, vendorConf } from "../lab/manifests.ts";
import { type LabNode, type LabPod, NetnsWorld } from "../lab/netns/world.ts";
import { itLong } from "../world/long-cases.ts";

const NETWORK = "check-remedies";
const SECOND = "check-remedies-second";
const PREFIXED = "check-remedies-mac";
const BERTH = "check-remedies-berth";
const REPAIR = 'Run "berthctl check --repair"';
const ENTRY = { type: "coordinator", serviceCIDR: ["10.96.0.0/16", "fd00:96::/112"] };

interface Row {
  readonly what: string;
  /** Executed in the pod's namespace, or on the node; `$HOST` is the pair's end there. */
  readonly inPod?: string;
  readonly onNode?: string;
  readonly network?: string;
  /** The commands do not restore all of it. */
  readonly needsRepair?: true;
}

const DELETE_RULES =
  "ip rule list | sed -n 's/^[0-9]*:\\(.*\\) proto 98.*/\\1/p' | while read -r rule; do ip rule del $rule; done";

const ROWS: readonly Row[] = [
  { what: "a route of the pod", inPod: "ip route del 10.96.0.0/16 && ip -6 route del fd00:96::/112" },
  { what: "the pod's neighbours", inPod: "ip neigh flush nud permanent dev veth0" },
  { what: "the pod's end, set down", inPod: "ip link set veth0 down" },
  { what: "the NIC, with another MAC address", network: PREFIXED, inPod: "ip link set eth0 address 02:00:00:00:99:02" },
  { what: "the pair", inPod: "ip link del veth0" },
  { what: "the rules of several NICs", network: SECOND, inPod: DELETE_RULES },
  { what: "the pod's table of nf_tables", inPod: "nft flush ruleset", needsRepair: true },
  // The needs of one NIC are known only when the rules of the others are back.
  {
    what: "all of several NICs",
    network: SECOND,
    inPod: `ip route flush table all proto 98; ${DELETE_RULES}`,
    needsRepair: true,
  },
  { what: "the node's end, without its alias", onNode: "ip link set $HOST alias ''" },
  { what: "a setting of the node's end", onNode: "sysctl -qw net/ipv4/conf/$HOST/rp_filter=1" },
  {
    what: "the node's routes to a pod",
    onNode: "ip route flush dev $HOST table 500; ip -6 route flush dev $HOST table 500",
  },
];

let world: NetnsWorld & { readonly node: LabNode };
const pods = new Map<Row, LabPod>();

beforeAll(async () => {
  world = await NetnsWorld.build("cr", async (empty) => {
    const fabric = await empty.addFabric();
    const config = {
      "conf.yaml": vendorConf({ enableIPv6: false, hostRouteCIDR: ["10.60.0.0/16", "fd00:60::/64", "10.71.0.0/16"] }),
      "pool.yaml": ipPool("check", "10.72.0.0/24", { default: true, ips: ["10.72.0.100-10.72.0.110"] }),
    };
    return Object.assign(empty, { node: await empty.addNode(fabric.node1, config) });
  });
  // Without records: these interfaces are compared at once.
  const ipam = (...ranges: [subnet: string, rangeStart: string][]) => ({
    type: "host-local",
    dataDir: join(world.node.agent.directory, "host-local"),
    ranges: ranges.map(([subnet, rangeStart]) => [{ subnet, rangeStart }]),
  });
  const both = ipam(["10.60.0.0/16", "10.60.9.1"], ["fd00:60::/64", "fd00:60::9:1"]);
  await world.define(NETWORK, [macvlan("eth0", both), ENTRY]);
  const others = ipam(["10.60.0.0/16", "10.60.10.1"], ["fd00:60::/64", "fd00:60::10:1"]);
  await world.define(PREFIXED, [macvlan("eth0", others), { ...ENTRY, podMACPrefix: "0a:1b" }]);
  await world.define(SECOND, [macvlan("eth1", ipam(["10.71.0.0/16", "10.71.9.1"])), ENTRY]);
  await world.define(BERTH, [macvlan("eth2"), ENTRY]);
  for (const [index, row] of ROWS.entries()) {
    const pod = await world.addPod(world.node, `r${index}`);
    await pod.attach(row.network === PREFIXED ? PREFIXED : NETWORK);
    if (row.network === SECOND) await pod.attach(SECOND, "net1");
    pods.set(row, pod);
  }
}, 60_000);
afterAll(() => world?.delete());

const berthctl = (...words: string[]) => runBerthctl(...words, "--socket", world.node.agent.socket);

/**
 * Other tests have namespaces on this machine, which the agent reads, too: findings about their addresses are left out,
 * unless they are about `address`.
 */
async function check(words: readonly string[] = [], address?: string): Promise<CheckReport> {
  const { code, out, error } = await berthctl("check", "-o", "json", ...words);
  expect(error).toBe("");
  const report: CheckReport = JSON.parse(out);
  const levels = report.findings.map(({ level }) => level);
  expect(code).toBe(levels.includes("error") ? 1 : levels.includes("unknown") ? 3 : 0);
  const isOurs = ({ kind, text, address: of }: CheckReport["findings"][number]): boolean =>
    ["drift", "leftover", "not-restored"].includes(kind) || of === address || text.includes("cannot be compared");
  return { ...report, findings: report.findings.filter(isOurs) };
}

const shell = (pod: LabPod, text: string) => [
  "sh",
  "-c",
  text.replaceAll("$HOST", nameVeth(pod.containerId).host.name),
];

async function breakAll(): Promise<void> {
  for (const [{ inPod, onNode }, pod] of pods) {
    if (inPod !== undefined) await requireCommand(pod.netns.enter(shell(pod, inPod)));
    if (onNode !== undefined) await requireCommand(world.node.netns.enter(shell(pod, onNode)));
  }
}

/**
 * Executes commands as a reader pastes them into a shell of the node. A command of two interfaces of a pod is found
 * twice.
 */
async function paste(commands: readonly string[]): Promise<void> {
  for (const command of commands) {
    const { exitCode, stderr } = await runCommand(world.node.netns.enter(["sh", "-c", command]));
    const isThere = stderr.trim() === "RTNETLINK answers: File exists";
    expect(exitCode === 0 || isThere, `${command}: ${stderr}`).toBe(true);
  }
}

const commandsOf = ({ findings }: CheckReport): string[] => findings.flatMap(({ commands = [] }) => commands);

async function expectClean(): Promise<void> {
  expect((await check()).findings).toEqual([]);
}

describe("an interface that is not as ADD left it", () => {
  it("has commands for each difference, which leave no finding", async () => {
    await expectClean();
    await breakAll();
    const report = await check();
    const found = new Set(report.findings.map(({ container }) => container));
    // The agent may have restored its node, and told pods of the node's addresses, by now.
    for (const [{ what, inPod }, pod] of pods)
      if (inPod !== undefined && what !== "the pod's neighbours") expect(found.has(pod.containerId), what).toBe(true);
    await paste(commandsOf(report));
    const needy = [...pods].filter(([{ needsRepair }]) => needsRepair).map(([, { containerId }]) => containerId);
    const left = (await check()).findings;
    expect(left.filter(({ container }) => !needy.includes(container))).toEqual([]);
    for (const { remedy } of left) expect(remedy.startsWith(REPAIR)).toBe(true);
    const [table] = left.filter(({ commands }) => commands === undefined);
    expect(table?.text).toMatch(/restoring it requires "pod: nf_tables, table inet berth"$/);
    await check(["--repair"]);
    await expectClean();
  });

  it("is restored by --repair, which lists its operations", async () => {
    await breakAll();
    const report = await check(["--repair"]);
    expect(report).toMatchObject({ findings: [] });
    const repaired = new Set(report.nodes.flatMap((node) => node.repaired ?? []).map(({ netns }) => netns));
    for (const [{ what, inPod }, { netns }] of pods)
      if (inPod !== undefined && what !== "the pod's neighbours") expect(repaired.has(netns.path), what).toBe(true);
    await expectClean();
    expect((await check(["--repair"])).nodes).toMatchObject([{ repaired: [] }]);
  });
});

itLong("what the node has for all pods is restored by commands, or by --repair where there are none", async () => {
  const breakNode = () =>
    requireCommand(
      world.node.netns.enter([
        ...["sh", "-c"],
        "ip rule del pref 900; ip -6 rule del pref 900; ip route flush table 500; ip -6 route flush table 500; nft flush table inet berth",
      ]),
    );
  await breakNode();
  const report = await check();
  await paste(commandsOf(report));
  const others = report.findings.filter(({ commands }) => commands === undefined).map(({ remedy }) => remedy);
  // The agent may have restored its node by now.
  expect(new Set([...others, REPAIR])).toEqual(new Set([REPAIR]));
  if (others.length > 0) await check(["--repair"]);
  await expectClean();
  await breakNode();
  await requireCommand(world.node.netns.enter(["nft", "flush", "ruleset"]));
  expect((await check(["--repair"])).findings).toEqual([]);
  await expectClean();
});

it("objects that belong to no pod have a command that deletes them", async () => {
  const pod = await world.addPod(world.node, "recorded");
  await pod.attach(BERTH);
  const alias = formatAlias({ owner: "u9", containerId: "c9", network: NETWORK, pod: "shop/away" });
  const stray = nameVeth("c9").host.name;
  const leftovers = [
    `ip link add ${stray} type veth peer name peer1 && ip link set ${stray} alias '${alias}'`,
    `ip link add odd type veth peer name peer2 && ip link set odd alias '${alias}'`,
    "ip route add 10.60.99.1/32 dev eth0 table 500 proto 98 scope link",
    "ip -6 route add fd00:60::99:1/128 dev eth0 table 500 proto 98",
    "ip route add unreachable 10.99.0.0/16 table 500 metric 7",
    "ip route add 10.98.0.0/16 table 500 nexthop dev eth0 weight 2 nexthop dev eth1",
    "ip route add 10.97.0.0/16 dev eth0 scope global table 500 tos 0x10",
    "ip -6 route add fd00:97::/64 from fd00:98::/64 dev eth0 table 500",
    "ip rule add pref 901 from all lookup 501 protocol 98",
    "ip -6 rule add pref 2000 from fd00:5::/64 iif eth0 fwmark 0x2/0xf lookup 500",
    "ip rule add pref 2001 ipproto tcp dport 80 tos 0x10 lookup 500",
    `ip rule add pref 100 from ${pod.address(4)} lookup 77`,
    `ip rule add pref 101 not to ${pod.address(4)} prohibit`,
    "ip neigh add 10.60.99.2 lladdr 02:00:00:00:99:03 nud permanent dev $HOST",
  ];
  for (const text of leftovers) await requireCommand(world.node.netns.enter(shell(pod, text)));
  const report = await check();
  expect(report.findings.map(({ kind }) => kind)).toEqual(leftovers.map(() => "leftover"));
  const commands = commandsOf(report);
  expect(commands).toHaveLength(leftovers.length);
  await paste(commands);
  await expectClean();
});

it("a pair whose MAC address was changed is not Berth's: it is reported beside other findings, and left", async () => {
  const [changed, drifted] = pods.values();
  if (changed === undefined || drifted === undefined) throw new Error("no pods");
  await requireCommand(changed.netns.enter(shell(changed, "ip link set veth0 address 02:00:00:00:99:01")));
  await requireCommand(drifted.netns.enter(shell(drifted, "ip route flush proto 98")));
  const text = new RegExp(`${changed.netns.path}.*"veth0" of the pod was not created by Berth .02:00:00:00:99:01.`);
  const isNamed = { text: expect.stringMatching(text) };
  expect((await check()).findings).toMatchObject([
    { container: drifted.containerId },
    { kind: "not-compared", ...isNamed },
  ]);
  const { nodes, findings } = await check(["--repair"]);
  expect(nodes).toMatchObject([{ repaired: [{ netns: drifted.netns.path }] }]);
  expect(findings).toMatchObject([
    { kind: "not-restored", ...isNamed },
    { kind: "not-compared", ...isNamed },
  ]);
});
