/** `berthctl history`: the pods of an address, or the addresses of a pod, from the audit log of one node or of each. */
import { type AuditLine, type HistoryPage, historyPageSchema, parseAuditLine } from "../../records/audit-line.ts";
import { isAddress, parseAddress, parsePod } from "../arguments.ts";
import { askForRecord } from "../ask-agent.ts";
import { type Call, type CommandLine, NAMESPACE_OF_POD, type OutputFlags, withOutput } from "../command-line.ts";
import { ExitCode } from "../exit-code.ts";
import type { Table } from "../output.ts";
import { describeZone, parseTime } from "../times.ts";

interface HistoryFlags extends OutputFlags {
  readonly since?: string;
  readonly until?: string;
  readonly at?: string;
  readonly namespace?: string;
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
  const command = cli.command(
    "history",
    "Show which pods had an address, or which addresses a pod had: the audit log",
    ["history 10.6.0.21 --at 14:02", "history web-0 -n shop --since 1h"],
  );
  withOutput(command)
    .argument("<address|pod>", "address; namespace/name of a pod, or its name with -n")
    .option("-n, --namespace <name>", NAMESPACE_OF_POD)
    .option("--at <time>", "only the pod that had the address then: 14:02, 1h (ago), or 2026-01-31T14:02:00Z")
    .option("--since <time>", "lines from this time on")
    .option("--until <time>", "lines up to this time")
    .action((text: string, flags: HistoryFlags) =>
      cli.run(flags, async (call) => {
        const subject = await parseSubject(cli, text, flags.namespace);
        const times = parseTimes(flags, call);
        return cli.isCluster
          ? showClusterHistory(cli, call, { subject, times, flags })
          : showHistory(cli.options.socket, call, { subject, times });
      }),
    );
}

/** Returns an address in its usual form, or `namespace/name` of a pod. Rejects with UsageError. */
async function parseSubject(cli: CommandLine, text: string, given: string | undefined): Promise<string> {
  if (isAddress(text)) return parseAddress(text);
  const { namespace, name } = await cli.pod(text, given);
  return `${namespace}/${name}`;
}

type Times = { readonly [key in "at" | "since" | "until"]?: string };

interface Question {
  /** An address, or namespace/name of a pod. */
  readonly subject: string;
  readonly times: Times;
}

/** Returns the times of the flags as the lines have them, and tells which zone was meant where the text has none. */
function parseTimes({ at, since, until }: HistoryFlags, { note }: Call): Times {
  const now = new Date();
  const times = Object.entries({ at, since, until }).flatMap(([key, text]) => {
    if (text === undefined) return [];
    const { time, isLocal } = parseTime(text, now);
    if (isLocal) note(`--${key} ${text} is ${time.toISOString()} (zone of this machine: ${describeZone(time)})`);
    return [[key, time.toISOString()]];
  });
  return Object.fromEntries(times);
}

/** Prints the lines of each agent, then those of the controllers: they have no agent's file, only their logs. */
async function showClusterHistory(
  cli: CommandLine,
  call: Call,
  { subject, times, flags }: Question & { readonly flags: HistoryFlags },
): Promise<ExitCode> {
  const { out } = call;
  // Loaded only here: it starts processes.
  const { callAgents, findNode, readControllerLogs } = await import("../cluster-agents.ts");
  const { at, since, until = at } = times;
  const isWanted = (line: AuditLine): boolean =>
    (isAddress(subject) ? line.addresses.includes(subject) : `${line.namespace}/${line.pod}` === subject) &&
    (since === undefined || line.time >= since) &&
    (until === undefined || line.time <= until);
  const { output, headers } = flags;
  // An agent's clock has another zone: it gets moments.
  const words = [
    ...["history", subject, ...Object.entries(times).flatMap(([key, time]) => [`--${key}`, time])],
    ...(output === undefined ? [] : [`--output=${output}`]),
    ...(headers === false ? ["--no-headers"] : []),
  ];
  const findFirst = () =>
    isAddress(subject) ? nodeNow(call, subject) : findNode(parsePod(subject, undefined), cli.place);
  const first = cli.options.node ?? (await findFirst());
  const texts = cli.options.node === undefined ? await readControllerLogs(cli.place) : [];
  const lines = texts
    .flatMap((text) => text.split("\n"))
    .flatMap((text) => parseAuditLine(text) ?? [])
    .filter(isWanted)
    .sort((a, b) => (a.time < b.time ? -1 : 1));
  const more = at === undefined ? lines : lines.slice(-1);
  const ofAgents = await callAgents(words, cli.place, { out, first, isAny: true, more });
  if (more.length === 0) return ofAgents;
  if (out.isTable) out.text("# controller");
  if (!out.isDocument) await out.list(HISTORY_TABLE, more);
  return ExitCode.Success;
}

/** Returns the node that has the address now; undefined also if the API server does not say. */
async function nodeNow({ source }: Call, address: string): Promise<string | undefined> {
  const found = source().then((opened) => opened.address(address));
  return (await found.catch(() => undefined))?.allocations[0]?.node;
}

async function showHistory(socket: string, { out }: Call, { subject, times }: Question): Promise<ExitCode> {
  const { at, since, until = at } = times;
  const key = isAddress(subject) ? "address" : "pod";
  const range = Object.entries({ since, until }).flatMap(([name, time]) => (time === undefined ? [] : [[name, time]]));
  const pages = await readPages(socket, new URLSearchParams({ [key]: subject, ...Object.fromEntries(range) }));
  const all = pages.flatMap((page) => page.lines);
  const lines = at === undefined ? all : findHolders(all);
  if (lines.length > 0 && out.isTable && at !== undefined) out.text(lines.map(describeHolder).join("\n"));
  else if (lines.length > 0 || !out.isTable) await out.list(HISTORY_TABLE, lines);
  else out.text(describeNothing(subject, at, pages));
  const missing = pages.reduce((sum, page) => sum + page.missing, 0);
  if (out.isTable && missing > 0) out.text(`At most ${missing} lines of the audit log are missing`, "yellow");
  return lines.length > 0 ? ExitCode.Success : ExitCode.Problem;
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
  return `${subject}: no pod of this node at ${at}; ${begin}`;
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

/** Returns, by interface and address, the line since when its pod at the end of `lines` has had it. */
function findHolders(lines: readonly AuditLine[]): readonly AuditLine[] {
  const holders = new Map<string, AuditLine>();
  for (const line of lines) {
    // A starting agent writes the addresses in use: others were released shortly before.
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
