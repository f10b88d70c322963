/** `berthctl explain`: what an ADD of a pod would get now and why, and what is known of a pool. */
import { decodeExplanation, describeOutcome, type ExplanationRecord } from "../../records/explanation-record.ts";
import { AgentError, askAgent } from "../ask-agent.ts";
import { type CommandLine, type OutputFlags, withRecordOutput } from "../command-line.ts";
import { ExitCode, UsageError } from "../exit-code.ts";
import type { Line } from "../output.ts";
import type { Style } from "../text.ts";

interface ExplainFlags extends OutputFlags {
  readonly namespace: string;
  readonly interface: string;
  readonly network: string;
}

export function addExplain(cli: CommandLine): void {
  const command = cli.command(
    "explain",
    "Explain what an ADD of a pod would get now, from which pools and why, or the owner and the size of a pool",
  );
  withRecordOutput(command)
    .usage("[options] <pod> | explain [options] pool <pool>")
    .argument("<pod>", 'name of the pod, or "pool" and the name of a pool')
    .argument("[name]", 'name of the pool, or of a pod after "pod"')
    .option("-n, --namespace <name>", "namespace of the pod", "default")
    .option("-i, --interface <name>", "only this interface of the pod", "")
    .option("--network <name>", "name of the network, if not as the pod's annotations say", "")
    .action((subject: string, name: string | undefined, flags: ExplainFlags) =>
      cli.runOnAgents(
        flags,
        async (socket, { out }) => {
          const explanation = await explain(socket, questionOf(subject, name, flags));
          await out.report(outcomesFirst(explanation), explanation);
          return explanation.succeeds ? ExitCode.Success : ExitCode.Problem;
        },
        { pod: podOf(subject, name, flags) },
      ),
    );
}

/** An agent of an older version has the verdict at the end. */
function outcomesFirst({ lines, nics }: ExplanationRecord): Line[] {
  const outcomes = new Map<string, Style>(
    nics.map((nic) => [describeOutcome(nic), nic.outcome === "allocated" ? "green" : "red"]),
  );
  return [...[...outcomes].map(([text, style]) => ({ text, style })), ...lines.filter((line) => !outcomes.has(line))];
}

/** Returns undefined if the question is not about a pod. */
function podOf(subject: string, name: string | undefined, { namespace }: ExplainFlags) {
  if (name !== undefined && subject !== "pod") return undefined;
  return { namespace, name: name ?? subject };
}

function questionOf(subject: string, name: string | undefined, flags: ExplainFlags): URLSearchParams {
  const { namespace, interface: ifName, network } = flags;
  if (name === undefined || subject === "pod")
    return new URLSearchParams({ pod: name ?? subject, namespace, interface: ifName, network });
  if (subject === "pool") return new URLSearchParams({ pool: name });
  throw new UsageError(`expected "pool" or "pod" before "${name}", found "${subject}"`);
}

async function explain(socket: string, question: URLSearchParams): Promise<ExplanationRecord> {
  const explanation = decodeExplanation(await askAgent(socket, `/v1/explain?${question}`));
  if (explanation === undefined) throw new AgentError("The agent's answer is not an explanation");
  return explanation;
}
