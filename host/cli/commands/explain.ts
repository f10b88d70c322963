/** `berthctl explain`: the answer that an ADD of a pod would get now and why, and the known facts about a pool. */
import { decodeExplanation, describeOutcome, type ExplanationRecord } from "../../records/explanation-record.ts";
import { AgentError, askAgent } from "../ask-agent.ts";
import { type CommandLine, NAMESPACE_OF_POD, type OutputFlags, withRecordOutput } from "../command-line.ts";
import { ExitCode, UsageError } from "../exit-code.ts";
import type { Line } from "../output.ts";
import type { Style } from "../text.ts";

interface ExplainFlags extends OutputFlags {
  readonly namespace?: string;
  readonly interface: string;
  readonly network: string;
}

export function addExplain(cli: CommandLine): void {
  const command = cli.command(
    "explain",
    "Explain what an ADD of a pod would get now, from which pools and why, or the owner and the size of a pool",
    ["explain shop/web-0", "explain pool blue"],
  );
  withRecordOutput(command)
    .usage("[options] <pod> | explain [options] pool <pool>")
    .argument("<pod>", 'namespace/name, or the name with -n; or "pool" and the name of a pool')
    .argument("[name]", 'name of the pool, or a pod after "pod"')
    .option("-n, --namespace <name>", NAMESPACE_OF_POD)
    .option("-i, --interface <name>", "only this interface of the pod", "")
    .option("--network <name>", "name of the network, if not as the pod's annotations say", "")
    .action((subject: string, name: string | undefined, flags: ExplainFlags) => {
      const pod = name === undefined || subject === "pod" ? (name ?? subject) : undefined;
      return cli.runOnAgents(
        flags,
        async (socket, { out }) => {
          const question = pod === undefined ? poolOf(subject, name) : await questionOf(cli, pod, flags);
          const explanation = await explain(socket, question);
          await out.report(outcomesFirst(explanation), explanation);
          return explanation.succeeds ? ExitCode.Success : ExitCode.Problem;
        },
        pod === undefined ? undefined : () => wordsOf(cli, pod, flags),
      );
    });
}

/** An agent of an older version has the verdict at the end. */
function outcomesFirst({ lines, nics }: ExplanationRecord): Line[] {
  const outcomes = new Map<string, Style>(
    nics.map((nic) => [describeOutcome(nic), nic.outcome === "allocated" ? "green" : "red"]),
  );
  return [...[...outcomes].map(([text, style]) => ({ text, style })), ...lines.filter((line) => !outcomes.has(line))];
}

/** An agent of an older version takes a name without its namespace. */
async function wordsOf(cli: CommandLine, text: string, { namespace: given }: ExplainFlags) {
  const pod = await cli.pod(text, given);
  const more = given === undefined ? [`--namespace=${pod.namespace}`] : [];
  return { pod, words: cli.forwarded(more, [text, pod.name]) };
}

async function questionOf(cli: CommandLine, text: string, flags: ExplainFlags): Promise<URLSearchParams> {
  const { name: pod, namespace } = await cli.pod(text, flags.namespace);
  const { interface: ifName, network } = flags;
  return new URLSearchParams({ pod, namespace, interface: ifName, network });
}

function poolOf(subject: string, name = ""): URLSearchParams {
  if (subject === "pool") return new URLSearchParams({ pool: name });
  throw new UsageError(`expected "pool" or "pod" before "${name}", found "${subject}"`);
}

/** Rejects with AgentError if the agent could not read something that the answer depends on. */
async function explain(socket: string, question: URLSearchParams): Promise<ExplanationRecord> {
  const answer = await askAgent(socket, `/v1/explain?${question}`);
  const { error } = Object(answer) as { readonly error?: string };
  const explanation = decodeExplanation(answer);
  if (explanation === undefined || error !== undefined)
    throw new AgentError(error ?? "The agent's answer is not an explanation");
  return explanation;
}
