/** A report of `berthctl check` as lines for a person, and as an exit code. */
import type { CheckReport } from "../../records/check-record.ts";
import { ExitCode } from "../exit-code.ts";
import type { Line } from "../output.ts";

export function describeReport({ nodes, notCompared, findings, problems }: CheckReport): Line[] {
  const sum = (key: "records" | "nics" | "objects" | "attachments"): number =>
    nodes.reduce((total, node) => total + (node[key] ?? 0), 0);
  const objects = nodes.some((node) => node.objects !== undefined) ? `, ${count(sum("objects"), "object")}` : "";
  const addresses = `${count(sum("records"), "record")} and ${sum("nics")} addresses on NICs`;
  const routes = `the routes of ${count(sum("attachments"), "interface")}`;
  const compared = nodes.length === 0 ? "nothing" : `${addresses}${objects}, ${routes}`;
  const named = [...nodes, ...findings].map(({ node }) => node).filter((name) => name !== "");
  const isOne = nodes.length <= 1 && new Set(named).size <= 1;
  const [only = notCompared[0]] = nodes;
  const where = isOne && only !== undefined ? `node ${only.node}` : count(nodes.length, "node");
  const isWell = [findings, notCompared, problems, ...nodes.map((node) => node.problems)].every(
    (list) => list.length === 0,
  );
  const head = (text: string): Line => (isWell ? { text, style: "green" } : text);
  return [
    ...nodes.flatMap((node) => describeRepairs(node, isOne)),
    head(`${where}: ${count(findings.length, "finding")}; compared ${compared}`),
    ...findings.flatMap((finding) => describeFinding(finding, isOne)),
    ...notCompared.flatMap(({ node, reason, remedy }) => [
      notComparedLine(`node ${node}: ${reason}`),
      ...(remedy === undefined ? [] : [`  ${remedy}`]),
    ]),
    ...nodes.flatMap(({ node, problems: own }) =>
      own.map((text) => notComparedLine(`${isOne ? "" : `node ${node}: `}${text}`)),
    ),
    ...problems.map(notComparedLine),
  ];
}

function notComparedLine(text: string): Line {
  return { text: `not compared: ${text}`, style: "yellow" };
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}

function describeFinding(finding: CheckReport["findings"][number], isOne: boolean): Line[] {
  const { kind, level, object, address, pool, namespace, pod, interface: ifName, node } = finding;
  const { text, remedy, commands = [] } = finding;
  const whose = pod === "" ? "" : ` of pod ${namespace}/${pod}${ifName === "" ? "" : `, ${ifName}`}`;
  const place = pool === "" ? "" : ` of pool ${pool}`;
  const on = isOne || node === "" ? "" : ` on node ${node}`;
  const subject = `${object}${address}${place}${whose}${on}`.trim();
  const words = [...(level === "warning" ? [level] : []), kind, ...(subject === "" ? [] : [subject]), text];
  const line: Line = { text: words.join(": "), style: level === "warning" ? "yellow" : "red" };
  return [line, `  ${remedy}`, ...commands.map((command) => `    ${command}`)];
}

function describeRepairs({ node, repaired, unrepaired = [] }: CheckReport["nodes"][number], isOne: boolean): string[] {
  if (repaired === undefined) return [];
  const on = isOne ? "" : `node ${node}: `;
  return [
    ...repaired.flatMap(({ namespace, pod, interface: ifName, netns, operations }) => [
      `${on}repaired${pod === "" ? "" : ` pod ${namespace}/${pod},`} ${ifName} in ${netns}:`,
      ...operations.map((text) => `    ${text}`),
    ]),
    ...unrepaired.map((text) => `${on}not repaired: ${text}`),
  ];
}

/** Findings count first: they are certain. Warnings do not count. */
export function exitCodeOfReport({ nodes, findings, notCompared, problems }: CheckReport): ExitCode {
  const isUnrepaired = nodes.some(({ unrepaired = [] }) => unrepaired.length > 0);
  if (findings.some(({ level }) => level === "error") || isUnrepaired) return ExitCode.Problem;
  return notCompared.length > 0 || problems.length > 0 ? ExitCode.NoAnswer : ExitCode.Success;
}
