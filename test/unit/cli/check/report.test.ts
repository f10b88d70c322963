/** Parts of a report that may be released, and the text of a report. */
import { describe, expect, it } from "vitest";
import { describeReport, exitCodeOfReport } from "../../../../host/cli/check/describe-report.ts";
import { planRelease, REPORT_MINUTES, reportOf } from "../../../../host/cli/check/release-report.ts";
import type { CheckReport } from "../../../../host/records/check-record.ts";

const linesOf = (of: CheckReport): string[] =>
  describeReport(of).map((line) => (typeof line === "string" ? line : line.text));

const NOW = Date.parse("2026-11-21T12:00:00Z");
const minutesAgo = (minutes: number) => new Date(NOW - minutes * 60_000).toISOString();
const NODE = { node: "n1", time: minutesAgo(0), records: 3, nics: 2, objects: 4, attachments: 1 };

function finding(changes: Partial<CheckReport["findings"][number]> = {}): CheckReport["findings"][number] {
  return {
    ...{ kind: "leak", address: "10.6.0.7", pool: "blue", namespace: "shop", pod: "web-0", interface: "eth0" },
    ...{ owner: "u1", container: "c1", text: "its pod is gone", remedy: "Release it", isReleasable: true },
    ...{ node: "n1", level: "error", object: "" },
    ...changes,
  };
}

function report(changes: Partial<CheckReport> = {}): CheckReport {
  const nodes = [NODE, { ...NODE, node: "n2" }];
  return { time: minutesAgo(1), cluster: "c1", nodes, findings: [finding()], ...changes };
}

const plan = (given: CheckReport, options: Partial<Parameters<typeof planRelease>[1]> = {}) => {
  const { byNode, others } = planRelease(given, { nowMs: NOW, isForced: false, ...options });
  return [
    ...[...byNode].map(([node, found]) => `${node} ${found.map(({ address }) => address)}`),
    `${others.length} others`,
  ];
};

describe("a release", () => {
  const elsewhere = finding({ node: "n2", address: "10.6.0.8" });
  const drift = finding({ kind: "drift", isReleasable: false });

  const all = { findings: [finding(), elsewhere, drift] };
  const OWN = ["n1 10.6.0.7", "0 others"];
  it.each<[what: string, changes: Partial<CheckReport>, options: object, planned: string[]]>([
    ["of each node's leaks", all, {}, ["n1 10.6.0.7", "n2 10.6.0.8", "1 others"]],
    ["of one node's only", all, { node: "n2" }, ["n2 10.6.0.8", "0 others"]],
    ["of nothing that has no address", { findings: [finding({ address: "" })] }, {}, ["1 others"]],
    ["of nothing that has no record", { findings: [finding({ owner: "" })] }, {}, ["1 others"]],
    ["of a report as old as may be", { time: minutesAgo(REPORT_MINUTES - 0.01) }, {}, OWN],
    ["of an old report, if forced", { time: minutesAgo(600) }, { isForced: true }, OWN],
    ["of a clock that is a little ahead", { time: minutesAgo(-1) }, {}, OWN],
  ])("is planned %s", (_what, changes, options, planned) => expect(plan(report(changes), options)).toEqual(planned));

  it.each<[what: string, given: CheckReport, options: object, text: RegExp]>([
    ["an old report", report({ time: minutesAgo(REPORT_MINUTES) }), {}, /is 15 minutes old, .* or give --force/],
    ["a report of later", report({ time: minutesAgo(-REPORT_MINUTES) }), {}, /is from the future/],
    ["a report without a time", report({ time: "yesterday" }), {}, /only reports of the last 15 minutes/],
    ["another node's", report(), { node: "n9" }, /of another node: it compared n1, n2, and this is n9/],
    ["another node's, even if forced", report(), { node: "n9", isForced: true }, /of another node/],
  ])("refuses %s", (_what, given, options, text) => expect(() => plan(given, options)).toThrow(text));

  it("gives each node's agent its own part, as the release before reads it", () => {
    const given = report();
    const own = { nodes: [{ ...NODE, node: "n2", problems: [] }], findings: [elsewhere] };
    expect(reportOf(given, "n2", [elsewhere])).toEqual({ ...given, ...own, notCompared: [], problems: [] });
  });
});

const NO_SUBJECT = { address: "", pool: "", namespace: "", pod: "", interface: "" };

const REPAIRED = {
  ...{ namespace: "shop", pod: "web-0", interface: "eth0", netns: "/run/netns/a" },
  operations: ["pod: ip link set veth0 up"],
};

describe("a report", () => {
  const gap = (node: string, text: string) =>
    finding({ ...NO_SUBJECT, kind: "not-compared", level: "unknown", node, text, remedy: "See it" });
  const missing = gap("n3", "the agent's pod is Pending");

  it.each<[what: string, changes: Partial<CheckReport>, code: number]>([
    ["nothing found", { findings: [] }, 0],
    ["findings", {}, 1],
    ["warnings only", { findings: [finding({ level: "warning" })] }, 0],
    ["findings, and a node without an answer", { findings: [missing, finding()] }, 1],
    ["a node without an answer", { findings: [missing] }, 3],
    ["all was restored", { findings: [], nodes: [{ ...NODE, repaired: [REPAIRED] }] }, 0],
  ])("ends with its exit code: %s", (_what, changes, code) => expect(exitCodeOfReport(report(changes))).toBe(code));

  it("of a cluster names nodes, and parts that were not compared", () => {
    const findings = [finding(), missing, gap("", "Nodes cannot be read: no")];
    expect(linesOf(report({ findings }))).toEqual([
      "2 nodes: 3 findings; compared 6 records and 4 addresses on NICs, 8 objects, the routes of 2 interfaces",
      "leak: 10.6.0.7 of pool blue of pod shop/web-0, eth0 on node n1: its pod is gone",
      "  Release it",
      "not-compared: on node n3: the agent's pod is Pending",
      "  See it",
      "not-compared: Nodes cannot be read: no",
      "  See it",
    ]);
  });

  it("of one node without an agent names the parts not compared, and the remedy", () => {
    const plugin = { ...NO_SUBJECT, kind: "plugins", text: "x does not exist", remedy: "Install it" };
    const warning = { ...NO_SUBJECT, level: "warning" } as const;
    const sysctl = { ...warning, kind: "sysctls", text: "y is 0", remedy: "sysctl -w y=1" };
    const findings = [finding(plugin), finding(sysctl), gap("n1", "No agent answers on s")];
    expect(linesOf(report({ nodes: [], findings }))).toEqual([
      "node n1: 3 findings; compared nothing",
      "plugins: x does not exist",
      "  Install it",
      "warning: sysctls: y is 0",
      "  sysctl -w y=1",
      "not-compared: No agent answers on s",
      "  See it",
    ]);
  });

  it.each([
    ["an error", report({ findings: [finding()] }), [undefined, "red", undefined]],
    ["a warning", report({ findings: [finding({ level: "warning" })] }), [undefined, "yellow", undefined]],
    ["a gap", report({ findings: [missing] }), [undefined, "yellow", undefined]],
    ["nothing", report({ findings: [] }), ["green"]],
  ])("colours %s", (_, of, styles) => {
    expect(describeReport(of).map((line) => (typeof line === "string" ? undefined : line.style))).toEqual(styles);
  });

  it("has the commands of a finding on lines of their own, as they are executed", () => {
    const shown = linesOf(report({ findings: [finding({ commands: ["ip link del dev a", "ip link del dev b"] })] }));
    expect(shown.slice(2)).toEqual(["  Release it", "    ip link del dev a", "    ip link del dev b"]);
  });

  it("lists first the restored", () => {
    const other = { ...REPAIRED, namespace: "", pod: "", netns: "/run/netns/b" };
    const done = { ...NODE, repaired: [REPAIRED, other] };
    const lines = [
      "repaired pod shop/web-0, eth0 in /run/netns/a:",
      "    pod: ip link set veth0 up",
      "repaired eth0 in /run/netns/b:",
      "    pod: ip link set veth0 up",
    ];
    expect(linesOf(report({ nodes: [done], findings: [] })).slice(0, 4)).toEqual(lines);
    const [first] = linesOf(report({ nodes: [NODE, { ...done, node: "n2" }], findings: [] }));
    expect(first).toBe(`node n2: ${lines[0]}`);
  });

  it("of one node does not repeat its name; a finding about the node has no subject", () => {
    const { objects: _, ...alone } = NODE;
    const about = finding({ ...NO_SUBJECT, kind: "leftover", text: "a rule" });
    expect(linesOf(report({ nodes: [alone], findings: [about] }))).toEqual([
      "node n1: 1 finding; compared 3 records and 2 addresses on NICs, the routes of 1 interface",
      "leftover: a rule",
      "  Release it",
    ]);
  });
});
