/** The screen of `status`: each line with the command that shows more. */
import type { PoolRecord } from "../../records/pool-record.ts";
import type { BerthPod } from "../berth-pods.ts";
import type { Line } from "../output.ts";
import { formatCount, formatPercent } from "../text.ts";
import type { Incident, StatusRecord } from "./read-status.ts";

/** Most lines of one section. */
const MAX_LINES = 5;

/** `self`: the words by which the user calls this program. */
export function describeStatus(status: StatusRecord, self: string): Line[] {
  const { agents, controllers, pools, quarantined, repairs, waiting } = status;
  const isUpdated = agents.updated >= agents.wanted;
  const update = isUpdated ? "" : `, ${agents.updated} of the newest revision`;
  const { leader } = controllers;
  const leads = leader === undefined ? "none is known to lead" : `${leader} leads`;
  const isLed = controllers.ready > 0 && leader !== undefined;
  return [
    line(
      "agents",
      `${agents.ready} of ${agents.wanted} ready${update}`,
      agents.wanted > 0 && agents.ready >= agents.wanted && isUpdated,
    ),
    ...section(agents.notReady.map(describePod)),
    line("controllers", `${controllers.ready} of ${controllers.wanted} ready, ${leads}`, isLed),
    ...section(controllers.notReady.map(describePod)),
    `${title("versions")}${describeVersions(status)}${next(`${self} version`)}`,
    `${title("pools")}${pools.length}${pools.length > 1 ? ", the fullest first" : ""}${next(`${self} pools -o wide`)}`,
    ...section(pools.map(describePool)),
    counted(
      "conflicts",
      quarantined,
      "address in quarantine",
      "addresses in quarantine",
      `${self} allocations --state quarantined`,
    ),
    counted("repairs", repairs.length, "in the last hour", "in the last hour", `${self} check`),
    ...section(repairs.map(({ time, name, text }) => `node ${name}, ${time}: ${text}`)),
    counted("waiting", waiting.length, "pod has no address", "pods have no address", `${self} allocations`),
    ...section(waiting.map((each) => describeWaiting(each, self))),
    ...status.problems.map((problem): Line => ({ text: `not known: ${problem}`, style: "yellow" })),
    `What is wrong, and what to do about it${next(`${self} check`)}`,
  ];
}

function title(text: string): string {
  return text.padEnd(13);
}

function next(command: string): string {
  return `  → ${command}`;
}

function line(name: string, text: string, isWell: boolean): Line {
  return { text: `${title(name)}${text}`, style: isWell ? "green" : "red" };
}

function counted(name: string, number: number, one: string, several: string, command: string): Line {
  if (number === 0) return `${title(name)}none`;
  return { text: `${title(name)}${number} ${number === 1 ? one : several}${next(command)}`, style: "yellow" };
}

function section(lines: readonly Line[]): Line[] {
  const rest = lines.length - MAX_LINES;
  const indented = lines
    .slice(0, MAX_LINES)
    .map((each) => (typeof each === "string" ? `  ${each}` : { ...each, text: `  ${each.text}` }));
  return rest > 0 ? [...indented, `  and ${rest} more`] : indented;
}

function describePod({ namespace, name, node, phase, restarts }: BerthPod): string {
  const where = node === "" ? "no node yet" : `node ${node}`;
  return `${name}: ${phase}, not ready, ${restarts} restarts, ${where}${next(`kubectl describe pod -n ${namespace} ${name}`)}`;
}

function describeVersions({ versions }: StatusRecord): string {
  return versions
    .map(({ component, version, count }) => `${component} ${version}${count === undefined ? "" : ` (${count})`}`)
    .join(", ");
}

function describePool({ name, used, total, refused, disabled }: PoolRecord): Line {
  if (refused !== undefined) return { text: `${name} ${refused}`, style: "red" };
  if (used === undefined || total === undefined) return `${name}: not counted yet`;
  const [part, whole] = [BigInt(used), BigInt(total)];
  const text = `${name}: ${formatCount(part)} of ${formatCount(whole)} used, ${formatPercent(part, whole)}${disabled === true ? ", disabled" : ""}`;
  return part >= whole && whole > 0n ? { text, style: "red" } : text;
}

function describeWaiting({ namespace, name, reason, text }: Incident, self: string): string {
  return `${namespace}/${name}: ${reason}: ${text}${next(`${self} explain ${name} -n ${namespace}`)}`;
}
