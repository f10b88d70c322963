/** `berthctl release` and `berthctl quarantine`: agents act on their addresses. Both show a preview first, and ask. */
import { documentation } from "../../lib/documentation.ts";
import { parseIp } from "../../net/ip.ts";
import { type OperationRecord, operationRecord } from "../../records/operation-record.ts";
import { NO_NODE } from "../../resources/ip-allocation.ts";
import { describeMember } from "../../resources/member.ts";
import { parseAddressName, parsePod } from "../arguments.ts";
import { askForRecord } from "../ask-agent.ts";
import { type Call, type CommandLine, NAMESPACE_OF_POD } from "../command-line.ts";
import { ExitCode, ProblemError, UsageError } from "../exit-code.ts";
import type { Output } from "../output.ts";
import { parseSpan } from "../times.ts";

interface OperationFlags {
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly force?: boolean;
}

interface ReleaseFlags extends OperationFlags {
  readonly fromReport?: string;
  readonly namespace?: string;
}

/** The default of `quarantine --for`. */
const QUARANTINE_TIME = "1h";

export function addRelease(cli: CommandLine): void {
  withGuards(
    cli.command(
      "release",
      "Release an address, or those of a pod, whose DEL never came; it cools before it is allocated again",
      ["release 10.6.0.21 --dry-run", "release shop/web-0 --yes"],
    ),
  )
    .argument("[address|pod]", "address, address/space, namespace/name of a pod, or its name with -n")
    .option("-n, --namespace <name>", NAMESPACE_OF_POD)
    .option(
      "--from-report <file>",
      "release what this report of check finds releasable, if it still is (-: standard input); --force: of any age",
    )
    .action((target: string | undefined, flags: ReleaseFlags) =>
      cli.run({}, async (call) => {
        if (flags.fromReport !== undefined) {
          if (target !== undefined) throw new UsageError("Give an address, a pod or --from-report, not several");
          return releaseReported(cli, call, flags.fromReport, flags);
        }
        if (target === undefined) throw new UsageError("Give an address, a pod, or --from-report");
        if (isAddress(target)) {
          const query = new URLSearchParams({ address: parseAddressName(target).name });
          return operate(cli, call, { path: "/v1/release", query, typed: target, target, flags });
        }
        const { namespace, name } = await cli.pod(target, flags.namespace);
        const pod = `${namespace}/${name}`;
        const query = new URLSearchParams({ pod });
        // With the option the agent's berthctl finds the pod by the same words.
        const typed = flags.namespace === undefined ? target : pod;
        return operate(cli, call, { path: "/v1/release", query, typed, target: pod, flags });
      }),
    );
}

export function addQuarantine(cli: CommandLine): void {
  withGuards(
    cli.command(
      "quarantine",
      "Keep an address from being allocated until a probe finds it silent, or end its quarantine",
      ["quarantine 10.6.0.21 --for 30m", "quarantine 10.6.0.21 --remove"],
    ),
  )
    .argument("<address>", "address or address/space")
    .option("--for <duration>", "time until it is first probed; a number alone is of minutes", QUARANTINE_TIME)
    .option("--remove", "end its quarantine, although a machine may answer for it")
    .action((target: string, flags: OperationFlags & { for: string; remove?: boolean }) =>
      cli.run({}, async (call) => {
        const seconds = Math.ceil(parseSpan("--for", flags.for, 60_000) / 1_000);
        const query = new URLSearchParams({ address: parseAddressName(target).name, seconds: String(seconds) });
        if (flags.remove === true) query.set("remove", "");
        return operate(cli, call, { path: "/v1/quarantine", query, typed: target, target, flags });
      }),
    );
}

async function releaseReported(
  cli: CommandLine,
  { out }: Call,
  path: string,
  flags: OperationFlags,
): Promise<ExitCode> {
  requireConsent(flags);
  const { readReport, releaseInCluster, releaseOnNode } = await import("../check/release-report.ts");
  const report = readReport(path);
  const { socket } = cli.options;
  const isForced = flags.force === true;
  const release = (isDryRun: boolean): Promise<ExitCode> =>
    cli.isCluster
      ? releaseInCluster(report, { cli, out }, { isDryRun, isForced })
      : releaseOnNode(report, { socket, out }, { isDryRun, isForced });
  if (flags.dryRun === true) return release(true);
  if (flags.yes !== true) {
    const code = await release(true);
    if (code === ExitCode.NoAnswer || !(await confirm())) return code === ExitCode.Success ? ExitCode.Problem : code;
  }
  return release(false);
}

/** Throws UsageError without a terminal to ask on and a flag that decides. */
function requireConsent(flags: OperationFlags): void {
  if (flags.dryRun !== true && flags.yes !== true && process.stdin.isTTY !== true)
    throw new UsageError("Give --yes, or --dry-run to see what would happen: there is no terminal to ask on");
}

interface Operation {
  readonly path: string;
  readonly query: URLSearchParams;
  /** The word of the command line. */
  readonly typed: string;
  /** An address, or `namespace/name` of a pod. */
  readonly target: string;
  readonly flags: OperationFlags;
}

async function operate(cli: CommandLine, call: Call, operation: Operation): Promise<ExitCode> {
  const { flags, path, target } = operation;
  requireConsent(flags);
  if (path === "/v1/release" && isAddress(target)) await tellReserved(call, target);
  if (cli.isCluster) return operateInCluster(cli, call, operation);
  const { socket } = cli.options;
  const planned = await send(socket, operation, true);
  if (flags.dryRun === true || planned.steps.some(({ refusal }) => refusal !== undefined))
    return showPlan(call.out, planned);
  if (flags.yes !== true) {
    showPlan(call.out, planned);
    if (!(await confirm())) return ExitCode.Problem;
  }
  const done = await send(socket, operation, false);
  const code = showPlan(call.out, done);
  if (done.isDone && code === ExitCode.Success) call.out.text("Done");
  return done.isDone ? code : ExitCode.Problem;
}

/** Says which ReservedIP keeps the address from others. Rejects with ProblemError if nothing else does. */
async function tellReserved(call: Call, target: string): Promise<void> {
  const { address, space, name } = parseAddressName(target);
  const source = await call.source();
  const { places, allocations } = await source.address(address);
  const by = places.find(({ addressSpace }) => addressSpace === space)?.reserved;
  // For a whole cluster, the question to the node's agent tells it.
  if (by === undefined || (await source.scope()) !== undefined) return;
  const owner = by.owner === undefined ? "" : ` for ${by.owner}`;
  const text = `ReservedIP "${by.name}" keeps ${target}${owner} until it is deleted (kubectl delete reservedips.ipam.vendor.io ${by.name}, or its manifest)`;
  if (!allocations.some(({ cursor }) => cursor === name)) throw new ProblemError(`${text}; no pod has it`);
  call.note(text);
}

/** The agent of the address's node does it: only its journal knows the NIC. */
async function operateInCluster(cli: CommandLine, from: Call, operation: Operation): Promise<ExitCode> {
  const { typed, target, flags, path } = operation;
  const node = cli.options.node ?? (await nodeOf(from, target, path));
  const { callAgents } = await import("../cluster-agents.ts");
  const call = (...more: string[]) => callAgents(cli.forwarded(more, [typed, target]), { ...cli.place, node }, from);
  if (flags.dryRun === true) return call();
  if (flags.yes !== true) {
    const trial = await call("--dry-run");
    if (trial !== ExitCode.Success || !(await confirm())) return trial === ExitCode.Success ? ExitCode.Problem : trial;
  }
  return call("--yes");
}

async function nodeOf(call: Call, target: string, path: string): Promise<string> {
  const source = await call.source();
  const { address, space, name } = isAddress(target) ? parseAddressName(target) : {};
  const records = address
    ? (await source.address(address, space)).allocations.filter(({ cursor }) => cursor === name)
    : (await source.pod(parsePod(target, undefined))).allocations;
  const kept = records.find(({ state }) => state === "Kept");
  if (kept?.workload !== undefined && (path === "/v1/release" || kept.node === NO_NODE))
    throw new ProblemError(
      `${kept.cursor} is retained for ${describeMember(kept.workload)}; the controller releases it when that is gone (${documentation("garbage-collection.html")})`,
    );
  const nodes = new Set(records.flatMap(({ node }) => node ?? []));
  const [node] = nodes;
  if (nodes.size > 1)
    throw new ProblemError(
      `${target} has addresses on several nodes (${[...nodes].join(", ")}); choose one with --node`,
    );
  if (node !== undefined) return node;
  if (path === "/v1/release") throw new ProblemError(`${target} has no record in this cluster`);
  throw new UsageError(`${target} has no record; choose the node whose agent quarantines and probes it with --node`);
}

function send(socket: string, { path, query, flags }: Operation, isDryRun: boolean): Promise<OperationRecord> {
  const words = new URLSearchParams(query);
  if (isDryRun) words.set("dryRun", "");
  if (flags.force === true) words.set("force", "");
  return askForRecord(operationRecord, socket, `${path}?${words}`, "POST");
}

function showPlan(out: Output, { steps }: OperationRecord): ExitCode {
  for (const { address, what, refusal, isForceable } of steps) {
    if (refusal === undefined) out.text(`${address}: ${what}`);
    else
      out.text(`${address}: refused: ${refusal}${isForceable === true ? "; --force does it nevertheless" : ""}`, "red");
  }
  if (steps.length === 0) out.text("The pod has no address on this node");
  return steps.length > 0 && steps.every(({ refusal }) => refusal === undefined) ? ExitCode.Success : ExitCode.Problem;
}

async function confirm(): Promise<boolean> {
  const { createInterface } = await import("node:readline/promises");
  const reader = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await reader.question("Continue? [y/N] ")).trim());
  } finally {
    reader.close();
  }
}

function isAddress(target: string): boolean {
  return parseIp(target.split("/")[0] ?? "") !== undefined;
}

function withGuards(command: ReturnType<CommandLine["command"]>): ReturnType<CommandLine["command"]> {
  return command
    .option("--dry-run", "show what would happen, and do nothing")
    .option("-y, --yes", "do not ask; needed where there is no terminal")
    .option("--force", "although its pod may be alive: another pod may get its address");
}
