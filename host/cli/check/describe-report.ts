/** A report of `berthctl check` as lines for a person, and as an exit code. */
import type { CheckReport } from "../../records/check-record.ts";
import { ExitCode } from "../exit-code.ts";
import type { Line } from "../output.ts";

export function describeReport({ nodes, findings }: CheckReport): Line[] {
  const sum = (key: "records" | "nics" | "objects" | "attachments"): number =>
    nodes.reduce((total, node) => total + (node[key] ?? 0), 0);
  const objects = nodes.some((node) => node.objects !== undefined) ? `, ${count(sum("objects"), "object")}` : "";
  const addresses = `${count(sum("records"), "record")} and ${sum("nics")} addresses on NICs`;
  const routes = `the routes of ${count(sum("attachments"), "interface")}`;
  const compared = nodes.length === 0 ? "nothing" : `${addresses}${objects}, ${routes}`;
  const named = new Set([...nodes, ...findings].map(({ node }) => node).filter((name) => name !== ""));
  const isOne = named.size === 1;
  const where = isOne ? `node ${[...named][0]}` : count(nodes.length, "node");
  const text = `${where}: ${count(findings.length, "finding")}; compared ${compared}`;
  return [
    ...nodes.flatMap((node) => describeRepairs(node, isOne)),
    findings.length === 0 ? { text, style: "green" } : text,
    ...findings.flatMap((finding) => describeFinding(finding, isOne)),
  ];
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
  const line: Line = { text: words.join(": "), style: level === "error" ? "red" : "yellow" };
  return [line, `  ${remedy}`, ...commands.map((command) => `    ${command}`)];
}

function describeRepairs({ node, repaired = [] }: CheckReport["nodes"][number], isOne: boolean): string[] {
  const on = isOne ? "" : `node ${node}: `;
  return repaired.flatMap(({ namespace, pod, interface: ifName, netns, operations }) => [
    `${on}repaired${pod === "" ? "" : ` pod ${namespace}/${pod},`} ${ifName} in ${netns}:`,
    ...operations.map((text) => `    ${text}`),
  ]);
}

/** Errors count first: they are certain. Warnings do not count. */
export function exitCodeOfReport({ findings }: CheckReport): ExitCode {
  const levels = new Set(findings.map(({ level }) => level));
  if (levels.has("error")) return ExitCode.Problem;
  return levels.has("unknown") ? ExitCode.NoAnswer : ExitCode.Success;
}
