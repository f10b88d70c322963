/** A report of `berthctl check` as lines for a person, and as an exit code. */
import type { CheckReport } from "../../records/check-record.ts";
import { ExitCode } from "../exit-code.ts";

export function describeReport({ nodes, notCompared, findings, problems }: CheckReport): string[] {
  const sum = (of: (node: CheckReport["nodes"][number]) => number): number =>
    nodes.reduce((total, node) => total + of(node), 0);
  const objects = nodes.every((node) => node.objects === undefined)
    ? ""
    : `, ${count(
        sum((node) => node.objects ?? 0),
        "object",
      )}`;
  const where = nodes.length === 1 ? `node ${nodes[0]?.node}` : `${nodes.length} nodes`;
  const addresses = `${count(
    sum(({ records }) => records),
    "record",
  )} and ${sum(({ nics }) => nics)} addresses on NICs`;
  const compared = `${addresses}${objects}, the routes of ${count(
    sum(({ attachments }) => attachments),
    "interface",
  )}`;
  const isOne = nodes.length === 1;
  return [
    ...nodes.flatMap((node) => describeRepairs(node, isOne)),
    `${where}: ${count(findings.length, "finding")}; compared ${compared}`,
    ...findings.flatMap((finding) => describeFinding(finding, isOne)),
    ...notCompared.map(({ node, reason }) => `not compared: node ${node}: ${reason}`),
    ...nodes.flatMap(({ node, problems: own }) =>
      own.map((text) => `not compared: ${isOne ? "" : `node ${node}: `}${text}`),
    ),
    ...problems.map((problem) => `not compared: ${problem}`),
  ];
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}

function describeFinding(finding: CheckReport["findings"][number], isOne: boolean): string[] {
  const { kind, address, pool, namespace, pod, interface: ifName, node, text, remedy, commands = [] } = finding;
  const whose = pod === "" ? "" : ` of pod ${namespace}/${pod}${ifName === "" ? "" : `, ${ifName}`}`;
  const place = pool === "" ? "" : ` of pool ${pool}`;
  const on = isOne || node === "" ? "" : ` on node ${node}`;
  const subject = `${address}${place}${whose}${on}`.trim();
  const line = [kind, ...(subject === "" ? [] : [subject]), text].join(": ");
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

/** Findings count first: they are certain. */
export function exitCodeOfReport({ nodes, findings, notCompared, problems }: CheckReport): ExitCode {
  const isUnrepaired = nodes.some(({ unrepaired = [] }) => unrepaired.length > 0);
  if (findings.length > 0 || isUnrepaired) return ExitCode.Problem;
  return notCompared.length > 0 || problems.length > 0 ? ExitCode.NoAnswer : ExitCode.Success;
}
