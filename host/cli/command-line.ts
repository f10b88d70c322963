/**
 * The parts that the commands of berthctl share: global options, the source of records, output, and exit codes.
 * `kubectl berth` is the same program with the API server as its default source.
 */
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { Command, Option } from "commander";
import type { ClusterFacts } from "../findings/find-cluster-damage.ts";
import type { KubeApi } from "../kubernetes/kube-api.ts";
import { messageOf } from "../lib/describe.ts";
import { printableLines } from "../lib/printable.ts";
import type { Finding } from "../records/finding.ts";
import { parsePod } from "./arguments.ts";
import { AgentError } from "./ask-agent.ts";
import type { ClusterOptions } from "./cluster-agents.ts";
import type { ClusterSource } from "./cluster-source.ts";
import { ExitCode, exitCodeOf, UsageError } from "./exit-code.ts";
import { FORMATS, type Format, Output } from "./output.ts";
import type { PodName, Source } from "./source.ts";
import { parseSpan } from "./times.ts";

/** Options of every command. */
interface GlobalOptions {
  readonly socket: string;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly node?: string;
  readonly timeout?: string;
}

/** Options of commands that print records. */
export interface OutputFlags {
  readonly output?: Exclude<Format, "table">;
  readonly headers?: boolean;
  readonly watch?: boolean;
}

/** One command that runs. */
export interface Call {
  /** The source that the global options choose; opened on first use. */
  source(): Promise<Source>;
  readonly out: Output;
  /** Prints text for a person on stderr. */
  note(text: string): void;
  /** Ends with SIGINT and SIGTERM. */
  readonly signal: AbortSignal;
}

export type Program = "berthctl" | "kubectl berth";

/** The streams on which a command prints. */
export interface Terminal {
  readonly write: (text: string) => void;
  readonly writeError: (text: string) => void;
  readonly isColored: boolean;
  /** Whether errors go to a terminal, on which a line may be written again. */
  readonly isRewritable?: boolean;
}

export interface CommandLineOptions {
  readonly program: Program;
  readonly version: string;
  /** Without the names of interpreter and program. */
  readonly words: readonly string[];
  readonly terminal: Terminal;
  /** Adds the commands of folders that the command line does not know. Absent: none. */
  readonly more?: readonly ((cli: CommandLine) => void | Promise<void>)[];
}

/** A package's search in `check` of a cluster. */
interface ClusterCheck {
  /** Added to the command; needs a cluster. */
  readonly option: Option;
  /** `value`: that of the option, if it is given. */
  readonly find: (api: KubeApi, facts: ClusterFacts, value: string | undefined) => Promise<readonly Finding[]>;
}

/** Global options with a value that only choose the agent: words that an agent's own berthctl must not get. */
const PLACE_OPTIONS = ["--socket", "--kubeconfig", "--context", "--node", "--timeout"];

/** The text of the option --namespace of a command about one pod. */
export const NAMESPACE_OF_POD = "namespace of the pod; default: of the kubeconfig's context, else default";

const ELSEWHERE = "for a cluster: kubectl berth, or --kubeconfig FILE";

export class CommandLine {
  readonly root: Command;
  readonly program: Program;
  readonly version: string;
  /** The exit code of the command. */
  exitCode: ExitCode = ExitCode.Success;
  readonly clusterChecks: ClusterCheck[] = [];
  readonly #words: readonly string[];
  readonly #terminal: Terminal;

  constructor({ program, version, words, terminal }: CommandLineOptions) {
    this.program = program;
    this.version = version;
    this.#words = words;
    this.#terminal = terminal;
    const isPlugin = program === "kubectl berth";
    this.root = new Command(program)
      .version(version)
      .exitOverride()
      .configureHelp({ showGlobalOptions: true })
      .configureOutput({ writeOut: terminal.write, writeErr: terminal.writeError })
      .addOption(
        new Option("--socket <path>", `ask the agent on this unix socket${isPlugin ? ", not the cluster" : ""}`)
          .default("/run/berth/agent.sock")
          .env("BERTH_SOCKET"),
      )
      .option(
        "--kubeconfig <file>",
        `ask the cluster of this kubeconfig${isPlugin ? ", not of kubectl's own" : ", not this node's agent"}`,
      )
      .option("--context <name>", "use this context of the kubeconfig")
      .option("--node <name>", "only this node: its allocations, its agent")
      .option("--timeout <duration>", "of a cluster: how long one agent's answer may take, such as 10s");
  }

  /** Whether the words call or describe the command; without words all are described. */
  mentions(name: string): boolean {
    return this.#words.length === 0 || this.#words.includes(name);
  }

  /** Adds a command; its options and action are the caller's. `examples` are words behind the program. */
  command(name: string, description: string, examples: readonly string[]): Command {
    return this.withExamples(this.root.command(name).description(description), examples);
  }

  /** Adds examples to the help of the command. */
  withExamples(command: Command, examples: readonly string[]): Command {
    const lines = examples.map((words) => `\n  ${this.program} ${words}`);
    return command.addHelpText("after", `\nExamples:${lines.join("")}`);
  }

  addClusterCheck(check: ClusterCheck): void {
    this.root.commands.find((command) => command.name() === "check")?.addOption(check.option);
    this.clusterChecks.push(check);
  }

  get options(): GlobalOptions {
    return this.root.opts<GlobalOptions>();
  }

  /** Whether the API server answers, not the agent of this node. */
  get isCluster(): boolean {
    const { kubeconfig, context } = this.options;
    const isSocketGiven = this.root.getOptionValueSource("socket") === "cli";
    if (isSocketGiven && (kubeconfig !== undefined || context !== undefined))
      throw new UsageError("--socket asks an agent, --kubeconfig and --context ask a cluster; give one of them");
    return kubeconfig !== undefined || context !== undefined || (this.program === "kubectl berth" && !isSocketGiven);
  }

  /** Runs a command: prints its errors, and sets the exit code. */
  async run(flags: OutputFlags, work: (call: Call) => Promise<ExitCode>): Promise<void> {
    const ending = new AbortController();
    const end = () => ending.abort();
    for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, end);
    let source: Promise<Source> | undefined;
    const open = () => {
      source ??= this.#openSource();
      return source;
    };
    try {
      // A wrong --timeout is refused where no agent is called, too.
      void this.place;
      await this.#requireSocket();
      this.exitCode = await work({
        source: open,
        out: this.#openOutput(flags),
        note: (text) => this.#terminal.writeError(`${printableLines(text)}\n`),
        signal: ending.signal,
      });
    } catch (error) {
      this.#fail(error);
    } finally {
      for (const name of ["SIGINT", "SIGTERM"] as const) process.removeListener(name, end);
      await source?.then((opened) => opened.close()).catch(() => {});
    }
  }

  /**
   * Runs a command that only agents can answer: on this node `work` asks the agent on the socket; in a cluster
   * berthctl is called with the same words in the agents' pods. `ofPod`: only its node's agent is asked, unless
   * another node is named, with these words.
   */
  async runOnAgents(
    flags: OutputFlags,
    work: (socket: string, call: Call) => Promise<ExitCode>,
    ofPod?: () => Promise<{ readonly pod: PodName; readonly words: readonly string[] }>,
  ): Promise<void> {
    return this.run(flags, async (call) => {
      if (!this.isCluster) return work(this.options.socket, call);
      // Loaded only here: it starts processes.
      const { callAgents, findNode } = await import("./cluster-agents.ts");
      const { place } = this;
      const { pod, words = this.forwarded() } = (await ofPod?.()) ?? {};
      const node = place.node ?? (pod === undefined ? undefined : await findNode(pod, place));
      return callAgents(words, { ...place, node }, call);
    });
  }

  /** The words of this command line for an agent's own berthctl, and more; `renamed`: a word, and its replacement. */
  forwarded(more: readonly string[] = [], renamed: readonly [string, string] = ["", ""]): string[] {
    const words = forwardedWords(this.#words).map((word) => (word === renamed[0] ? renamed[1] : word));
    return [...words, ...more.filter((word) => !words.includes(word))];
  }

  /**
   * Takes `namespace/name`, or a name, whose namespace is `given`, that of the kubeconfig's context, or `default`.
   * Rejects with UsageError.
   */
  async pod(text: string, given: string | undefined): Promise<PodName> {
    return parsePod(text, text.includes("/") ? given : (given ?? (await this.#namespace())));
  }

  /** The words by which a user asks the same cluster, or node, again. */
  get self(): string {
    const { kubeconfig, context } = this.options;
    const options = Object.entries({ kubeconfig, context }).flatMap(([key, value]) =>
      value === undefined ? [] : [`--${key}=${value}`],
    );
    return [this.program, ...options].join(" ");
  }

  /** Which agents are called in a cluster. */
  get place(): ClusterOptions {
    const { node, kubeconfig, context, timeout } = this.options;
    const { writeError, isRewritable = false } = this.#terminal;
    const timeoutMs = timeout === undefined ? undefined : parseSpan("--timeout", timeout);
    const progress = isRewritable ? (text: string): void => writeError(`\r${text}\u001b[K`) : undefined;
    return { node, kubeconfig, context, timeoutMs, progress };
  }

  /** Refuses a socket that Node.js would take for TCP port 80, and the agent of another node than --node. */
  async #requireSocket(): Promise<void> {
    const { socket, node } = this.options;
    if (this.isCluster) return;
    if (socket === "") throw new UsageError('Option --socket, or BERTH_SOCKET: found "", want a path');
    if (node === undefined) return;
    const { readHealth } = await import("./node-source.ts");
    const own = (await readHealth(socket).catch(() => undefined))?.node;
    if (own === undefined) return;
    if (own !== node)
      throw new UsageError(`--node is ${node}, and the agent on ${socket} is of node ${own}; ${ELSEWHERE}`);
    // All its addresses are of its node.
    this.root.setOptionValue("node", undefined);
  }

  #fail(error: unknown): void {
    const isAlone = error instanceof AgentError && !error.isAnswer && !existsSync(this.options.socket);
    const isInAgent = process.env.BERTH_HOST_ROOT !== undefined;
    const elsewhere = isAlone ? `; ${isInAgent ? "see the log of its pod" : ELSEWHERE}` : "";
    this.#terminal.writeError(`${this.program}: ${printableLines(messageOf(error))}${elsewhere}\n`);
    this.exitCode = exitCodeOf(error);
  }

  #openOutput({ output, headers = true }: OutputFlags): Output {
    return new Output({ format: output ?? "table", hasHeaders: headers, ...this.#terminal });
  }

  async #openSource(): Promise<Source> {
    if (!this.isCluster) {
      const { NodeSource } = await import("./node-source.ts");
      return new NodeSource(this.options.socket);
    }
    return this.openCluster();
  }

  /** Opens the API server of the kubeconfig `file`; default: the one that the global options choose. */
  async openCluster(file?: string): Promise<ClusterSource> {
    const { openClusterSource } = await import("./cluster-source.ts");
    const { context } = this.options;
    const access = file === undefined ? { kubeconfig: this.#kubeconfig(), context } : { kubeconfig: [file] };
    return openClusterSource({ context: undefined, ...access, userAgent: `berthctl/${this.version}` });
  }

  async #namespace(): Promise<string | undefined> {
    const paths = this.isCluster ? this.#kubeconfig() : undefined;
    if (paths === undefined) return undefined;
    const { findContext } = await import("../kubernetes/kubeconfig.ts");
    return findContext(paths, this.options.context).names.namespace;
  }

  /** As kubectl finds them. */
  #kubeconfig(): readonly string[] | undefined {
    const { kubeconfig } = this.options;
    if (kubeconfig !== undefined) return [kubeconfig];
    const { KUBECONFIG = "", KUBERNETES_SERVICE_HOST } = process.env;
    const listed = KUBECONFIG.split(":").filter((path) => path !== "");
    const paths = listed.length > 0 ? listed : [join(homedir(), ".kube", "config")];
    return !paths.some((path) => existsSync(path)) && KUBERNETES_SERVICE_HOST !== undefined ? undefined : paths;
  }
}

/** Adds the options of a command that prints a table. */
export function withOutput(command: Command, { canWatch = false } = {}): Command {
  command
    .addOption(
      new Option("-o, --output <format>", "format instead of a table").choices(
        FORMATS.filter((format) => format !== "table"),
      ),
    )
    .option("--no-headers", "no line of titles");
  return canWatch ? command.option("-w, --watch", "go on, and print what changes") : command;
}

/** Adds the option of a command that prints lines for a person, or one record. */
export function withRecordOutput(command: Command): Command {
  return command.addOption(new Option("-o, --output <format>", "format instead of text").choices(["json", "yaml"]));
}

function forwardedWords(words: readonly string[]): string[] {
  const forwarded: string[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    if (PLACE_OPTIONS.includes(word)) at++;
    else if (!PLACE_OPTIONS.some((option) => word.startsWith(`${option}=`))) forwarded.push(word);
  }
  return forwarded;
}
