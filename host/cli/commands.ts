/** The commands of berthctl: each sends a request to the agent and formats its answer. */
import { AgentError, askAgent, askForList, refusalOf } from "./ask-agent.ts";
import { formatTable } from "./table.ts";

/** The text to print, and whether all is well. */
export interface Outcome {
  readonly text: string;
  readonly ok: boolean;
}

interface PoolLine {
  readonly name: string;
  readonly subnet?: string;
  readonly total?: string;
  readonly used?: string;
  readonly free?: string;
  readonly gone?: boolean;
  readonly disabled?: boolean;
  readonly default?: boolean;
  readonly states: Readonly<Record<string, number>>;
}

interface AllocationLine {
  readonly cursor: string;
  readonly address: string;
  readonly pool: string;
  readonly state: string;
  readonly namespace: string;
  readonly pod: string;
  readonly interface: string;
  readonly containerId: string;
  /** Of an address that another machine answers for. */
  readonly quarantine?: { readonly mac?: string; readonly parent: string };
}

interface Health {
  readonly status: string;
  readonly version: string;
  readonly mode?: string;
  readonly node?: string;
  readonly problems: readonly string[];
  readonly spool: { readonly waiting: number; readonly rejected: number };
}

export async function showHealth(socket: string): Promise<Outcome> {
  const answer = await askAgent(socket, "/v1/health");
  if (!isHealth(answer)) throw refusalOf(socket, "/v1/health", answer);
  const { status, version, mode, node, problems, spool } = answer;
  const where = mode === "cluster" ? `, node ${node} of a cluster` : "";
  const lines = [`berth-agent ${version}: ${status}${where}`, ...problems.map((problem) => `- ${problem}`)];
  if (spool.waiting > 0) lines.push(`- ${spool.waiting} DELs wait in the spool`);
  if (spool.rejected > 0) lines.push(`- ${spool.rejected} spooled requests could not be read`);
  return { text: lines.join("\n"), ok: status === "ready" && lines.length === 1 };
}

/** For probes of a kubelet: `live` if the agent answers at all, `ready` if pods can be attached, whatever problems it reports. */
export async function probeHealth(socket: string, probe: "live" | "ready"): Promise<Outcome> {
  const answer = await askAgent(socket, "/v1/health");
  if (!isHealth(answer)) throw refusalOf(socket, "/v1/health", answer);
  return { text: answer.status, ok: probe === "live" || answer.status === "ready" };
}

function isHealth(answer: unknown): answer is Health {
  return typeof answer === "object" && answer !== null && "problems" in answer && "spool" in answer;
}

export async function showPools(socket: string): Promise<Outcome> {
  const pools = (await askForList(socket, "/v1/pools")) as readonly PoolLine[];
  const rows = pools.map((pool) => [
    pool.name,
    pool.subnet ?? "-",
    pool.total ?? "-",
    pool.used ?? "-",
    pool.free ?? "-",
    String(pool.states.Cooling ?? 0),
    String(pool.states.Quarantined ?? 0),
    [pool.default && "default", pool.disabled && "disabled", pool.gone && "deleted"].filter(Boolean).join(","),
  ]);
  const header = ["POOL", "SUBNET", "TOTAL", "USED", "FREE", "COOLING", "QUARANTINED", "NOTES"];
  return { text: formatTable(header, rows), ok: true };
}

export async function showAllocations(socket: string): Promise<Outcome> {
  const rows: string[][] = [];
  for (let after = ""; ; ) {
    const query = after === "" ? "" : `?after=${encodeURIComponent(after)}`;
    const page = (await askForList(socket, `/v1/allocations${query}`)) as readonly AllocationLine[];
    rows.push(...page.map(describeLine));
    const last = page.at(-1);
    if (last === undefined) break;
    after = last.cursor;
  }
  return { text: formatTable(["ADDRESS", "POOL", "STATE", "POD", "INTERFACE", "CONTAINER"], rows), ok: true };
}

function describeLine(line: AllocationLine): string[] {
  const pod = line.quarantine === undefined || line.pod !== "" ? podOf(line) : rivalOf(line.quarantine);
  return [line.address, line.pool, line.state, pod, line.interface, line.containerId.slice(0, 12)];
}

function podOf({ namespace, pod }: AllocationLine): string {
  return pod === "" ? "-" : `${namespace}/${pod}`;
}

/** Describes the other machine that has the address. */
function rivalOf({ mac = "unknown MAC", parent }: { mac?: string; parent: string }): string {
  return parent === "" ? `(${mac})` : `(${mac} behind ${parent})`;
}

export interface ExplainOptions {
  readonly namespace: string;
  readonly interface: string;
  readonly network: string;
}

export function explainPod(socket: string, pod: string, options: ExplainOptions): Promise<Outcome> {
  return explain(socket, new URLSearchParams({ pod, ...options }));
}

export function explainPool(socket: string, pool: string): Promise<Outcome> {
  return explain(socket, new URLSearchParams({ pool }));
}

export interface RecoverOptions {
  readonly results: readonly string[];
  readonly netns: readonly string[];
  readonly dryRun?: true;
}

/** Restores lost rows of the registry; the text lists what was found, and where. */
export async function recover(socket: string, { results, netns, dryRun }: RecoverOptions): Promise<Outcome> {
  const query = new URLSearchParams([
    ...results.map((path) => ["results", path]),
    ...netns.map((path) => ["netns", path]),
    ...(dryRun === undefined ? [] : [["dryRun", ""]]),
  ]);
  const answer = await askAgent(socket, `/v1/recover?${query}`, "POST");
  if (typeof answer === "object" && answer !== null && "report" in answer && Array.isArray(answer.report)) {
    return { text: answer.report.join("\n"), ok: true };
  }
  throw refusalOf(socket, "/v1/recover", answer, "POST");
}

async function explain(socket: string, query: URLSearchParams): Promise<Outcome> {
  const answer = await askAgent(socket, `/v1/explain?${query}`);
  if (typeof answer !== "object" || answer === null) throw new AgentError("The agent's answer is not a JSON object");
  if ("explanation" in answer) return { text: String(answer.explanation), ok: true };
  const { msg, details } = answer as { msg?: string; details?: string };
  return { text: [msg, details].filter(Boolean).join("\n"), ok: false };
}
