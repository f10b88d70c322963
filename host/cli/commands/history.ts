/**
 * `berthctl history`: which pods had an address, or which addresses a pod had, from the audit log of this node, or of
 * each node.
 */
import { type AuditLine, type HistoryPage, historyPageSchema, parseAuditLine } from "../../records/audit-line.ts";
import { normalizeSubject } from "../arguments.ts";
import { askForRecord } from "../ask-agent.ts";
import { type Call, type CommandLine, type OutputFlags, withOutput } from "../command-line.ts";
import { ExitCode, UsageError } from "../exit-code.ts";
import type { Table } from "../output.ts";

interface HistoryFlags extends OutputFlags {
  readonly since?: string;
  readonly until?: string;
  readonly at?: string;
}

const HISTORY_TABLE: Table<AuditLine> = {
  nameOf: ({ time, audit }) => `${time} ${audit}`,
  columns: [
    { title: "TIME", cell: ({ time }) => time },
    { title: "EVENT", cell: ({ audit }) => audit, style: ({ code }) => (code === 0 ? undefined : "red") },
    { title: "POD", cell: podOf },
    { title: "INTERFACE", cell: (line) => line.interface },
    { title: "ADDRESSES", cell: ({ addresses }) => addresses.join(",") },
    { title: "POOLS", cell: ({ pools }) => [...new Set(pools)].join(",") },
    { title: "NODE", cell: ({ node }) => node, isWide: true },
    { title: "NETWORK", cell: ({ network }) => network, isWide: true },
    { title: "UID", cell: ({ uid }) => uid, isWide: true },
    { title: "MS", cell: ({ ms }) => String(ms), isNumber: true, isWide: true },
    { title: "CONTAINER", cell: ({ container }) => container.slice(0, 12) },
    { title: "WHY", cell: whyOf },
  ],
};

export function addHistory(cli: CommandLine): void {
  withOutput(cli.command("history", "Show which pods had an address, or which addresses a pod had: the audit log"))
    .argument("<subject>", "address, or NAMESPACE/NAME of a pod")
    .option("--at <time>", "only the pod that had the address then: 14:02, or 2026-01-31T14:02:00Z")
    .option("--since <time>", "lines from this time on")
    .option("--until <time>", "lines up to this time")
    .action((subject: string, flags: HistoryFlags) =>
      cli.isCluster
        ? cli.run(flags, (call) => showClusterHistory(cli, call, subject, flags))
        : cli.run(flags, (call) => showHistory(cli.options.socket, call, subject, flags)),
    );
}

/** Prints the lines of each agent, then those of the controllers: they have no agent's file, only their logs. */
async function showClusterHistory(
  cli: CommandLine,
  { out }: Call,
  subject: string,
  flags: HistoryFlags,
): Promise<ExitCode> {
  // Loaded only here: it starts processes.
  const { callAgents, readControllerLogs } = await import("../cluster-agents.ts");
  const { since, until } = timesOf(flags);
  const wanted = normalizeSubject(subject);
  const isWanted = (line: AuditLine): boolean =>
    (isAddress(subject) ? line.addresses.includes(wanted) : `${line.namespace}/${line.pod}` === subject) &&
    (since === undefined || line.time >= since) &&
    (until === undefined || line.time <= until);
  // One node has the address; that the others know nothing is no problem.
  const ofAgents = await callAgents(cli.forwarded(), { ...cli.place, join: Math.min });
  const texts = cli.options.node === undefined ? await readControllerLogs(cli.place) : [];
  const lines = texts
    .flatMap((text) => text.split("\n"))
    .flatMap((text) => parseAuditLine(text) ?? [])
    .filter(isWanted)
    .sort((a, b) => (a.time < b.time ? -1 : 1));
  if (lines.length === 0) return ofAgents;
  if (out.format === "table" || out.format === "wide") out.text("# controller");
  await out.list(HISTORY_TABLE, flags.at === undefined ? lines : lines.slice(-1));
  return ExitCode.Success;
}

/** The moments of the flags as the lines have them. */
function timesOf({ since, until, at }: HistoryFlags): { readonly since?: string; readonly until?: string } {
  const times = Object.entries({ since, until: until ?? at });
  return Object.fromEntries(
    times.flatMap(([key, text]) => (text === undefined ? [] : [[key, parseTime(text).toISOString()]])),
  );
}

async function showHistory(socket: string, { out }: Call, subject: string, flags: HistoryFlags): Promise<ExitCode> {
  const { at } = flags;
  const key = isAddress(subject) ? "address" : "pod";
  const pages = await readPages(socket, new URLSearchParams({ [key]: subject, ...timesOf(flags) }));
  const all = pages.flatMap((page) => page.lines);
  const lines = at === undefined ? all : findHolders(all);
  const isText = out.format === "table" || out.format === "wide";
  if (lines.length > 0 && isText && at !== undefined) out.text(lines.map(describeHolder).join("\n"));
  else if (lines.length > 0 || !isText) await out.list(HISTORY_TABLE, lines);
  else out.text(describeNothing(subject, at, pages));
  const missing = pages.reduce((sum, page) => sum + page.missing, 0);
  if (isText && missing > 0) out.text(`At most ${missing} lines of the audit log are missing`, "yellow");
  return lines.length > 0 ? ExitCode.Success : ExitCode.Problem;
}

function isAddress(subject: string): boolean {
  return /^[\d.]+$/.test(subject) || subject.includes(":");
}

/**
 * Returns the time of `14:02`, `14:02:30` (today, as the machine's clock shows it) or of any form that Date knows.
 * Throws RangeError.
 */
function parseTime(text: string, now = new Date()): Date {
  const [, hour, minute, second = "0"] = /^(\d{1,2}):(\d{2})(?::(\d{2}))?$/.exec(text) ?? [];
  const time = hour === undefined ? new Date(text) : new Date(now);
  if (hour !== undefined) time.setHours(Number(hour), Number(minute), Number(second), 0);
  if (Number.isNaN(time.getTime())) {
    throw new UsageError(`Time: found "${text}", want 14:02, 14:02:30 or a time such as 2026-01-31T14:02:00Z`);
  }
  return time;
}

async function readPages(socket: string, query: URLSearchParams): Promise<readonly HistoryPage[]> {
  const pages: HistoryPage[] = [];
  for (;;) {
    const page = await askForRecord(historyPageSchema, socket, `/v1/history?${query}`);
    pages.push(page);
    if (page.next === undefined) return pages;
    query.set("since", page.next.since);
    query.set("skip", String(page.next.skip));
  }
}

function describeNothing(subject: string, at: string | undefined, pages: readonly HistoryPage[]): string {
  const [{ node, from } = { node: "", from: undefined }] = pages;
  const begin = `the audit log of node ${node} ${from === undefined ? "is empty" : `begins at ${from}`}`;
  if (at === undefined) return `No line about ${subject}; ${begin}`;
  return `${subject}: no pod of this node at ${parseTime(at).toISOString()}; ${begin}`;
}

function podOf({ namespace, pod, uid }: AuditLine): string {
  if (pod !== "") return `${namespace}/${pod}`;
  return uid.slice(0, 12);
}

function whyOf({ code, message, sources, rule }: AuditLine): string {
  if (code !== 0) return `refused with code ${code}: ${message ?? ""}`;
  return [[...new Set(sources)].join(","), rule].filter((text) => text !== "").join(", ");
}

/** After these a NIC has the addresses of the line. */
const TAKES: ReadonlySet<string> = new Set(["ADD", "HELD"]);

/**
 * Returns by interface and address the line since when the pod had it, of the pods that had it then; `lines` ends at
 * that time.
 */
function findHolders(lines: readonly AuditLine[]): readonly AuditLine[] {
  const holders = new Map<string, AuditLine>();
  for (const line of lines) {
    // An agent that starts writes what is in use: whatever is not written any more was released shortly before.
    if (line.audit === "START") holders.clear();
    if (line.code !== 0) continue;
    for (const address of line.addresses) {
      const key = `${address} ${line.pools[line.addresses.indexOf(address)] ?? ""}`;
      if (TAKES.has(line.audit)) holders.set(key, { ...line, addresses: [address] });
      else holders.delete(key);
    }
  }
  return [...holders.values()];
}

function describeHolder(line: AuditLine): string {
  const container = line.container.slice(0, 12);
  return `${line.addresses.join(",")}: pod ${podOf(line)} (UID ${line.uid}), interface ${line.interface}, container ${container}, since ${line.time}`;
}
