/** `berthctl explain`: why a pod gets its addresses from these pools, and what is known of a pool. */
import { AgentError, askAgent } from "../ask-agent.ts";
import type { CommandLine } from "../command-line.ts";
import { ExitCode, UsageError } from "../exit-code.ts";

interface ExplainFlags {
  readonly namespace: string;
  readonly interface: string;
  readonly network: string;
}

export function addExplain(cli: CommandLine): void {
  cli
    .command(
      "explain",
      "Explain which pools a pod may use and why others are excluded, or the owner and the size of a pool",
    )
    .usage("[options] <pod> | explain [options] pool <pool>")
    .argument("<pod>", 'name of the pod, or "pool" and the name of a pool')
    .argument("[name]", 'name of the pool, or of a pod after "pod"')
    .option("-n, --namespace <name>", "namespace of the pod", "default")
    .option("-i, --interface <name>", "interface of the pod", "eth0")
    .option("--network <name>", "name of the network configuration", "")
    .action((subject: string, name: string | undefined, flags: ExplainFlags) =>
      cli.runOnAgents({}, async (socket, { out }) => {
        const { text, ok } = await explain(socket, questionOf(subject, name, flags));
        out.text(text);
        return ok ? ExitCode.Success : ExitCode.Problem;
      }),
    );
}

function questionOf(subject: string, name: string | undefined, flags: ExplainFlags): URLSearchParams {
  const { namespace, interface: ifName, network } = flags;
  if (name === undefined || subject === "pod")
    return new URLSearchParams({ pod: name ?? subject, namespace, interface: ifName, network });
  if (subject === "pool") return new URLSearchParams({ pool: name });
  throw new UsageError(`expected "pool" or "pod" before "${name}", found "${subject}"`);
}

/** Returns the agent's explanation, or its refusal. */
async function explain(socket: string, question: URLSearchParams): Promise<{ text: string; ok: boolean }> {
  const answer = await askAgent(socket, `/v1/explain?${question}`);
  if (typeof answer !== "object" || answer === null) throw new AgentError("The agent's answer is not a JSON object");
  if ("explanation" in answer) return { text: String(answer.explanation), ok: true };
  const { msg, details } = answer as { msg?: string; details?: string };
  return { text: [msg, details].filter(Boolean).join("\n"), ok: false };
}
