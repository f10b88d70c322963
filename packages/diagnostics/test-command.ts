/** `kubectl berth test`: whether pods, nodes and services of a cluster reach each other. */
import { type Call, type CommandLine, type OutputFlags, withOutput } from "../../host/cli/command-line.ts";
import { ExitCode, ProblemError, UsageError } from "../../host/cli/exit-code.ts";
import type { Table } from "../../host/cli/output.ts";
import type { TestResult } from "./connectivity/run-test.ts";

interface TestFlags extends OutputFlags {
  readonly image?: string;
}

/** Longest time until all pods run, unless --timeout says otherwise: milliseconds. */
const START_MS = 120_000;

const RESULT_TABLE: Table<TestResult> = {
  nameOf: ({ node, from, to, family }) => `${node}/${from}/${to}/${family}`,
  columns: [
    { title: "NODE", cell: ({ node }) => node },
    { title: "FROM", cell: ({ from }) => from },
    { title: "TO", cell: ({ to }) => to },
    { title: "FAMILY", cell: ({ family }) => (family === 0 ? undefined : `IPv${family}`) },
    {
      title: "RESULT",
      cell: ({ outcome }) => outcome,
      style: ({ outcome }) => (({ ok: "green", failed: "red", none: "dim" }) as const)[outcome],
    },
    { title: "DETAILS", cell: ({ text }) => text },
  ],
};

export function addTest(cli: CommandLine): void {
  withOutput(
    cli.command(
      "test",
      "Test a cluster: pods on each node, and whether gateways, nodes, pods and a service reach each other; all is removed",
      ["test", "test --node worker-1 --timeout 3m"],
    ),
  )
    .option(
      "--image <image>",
      "image of the pods, with Node.js as node in PATH; default: the agents' own, which nodes have",
    )
    .action((flags: TestFlags) => cli.run(flags, (call) => runAndShow(cli, call, flags)));
}

async function runAndShow(cli: CommandLine, { out, note, signal }: Call, { image }: TestFlags): Promise<ExitCode> {
  if (!cli.isCluster) throw new UsageError("test needs a cluster: give --kubeconfig or --context");
  const [{ findTests, runTest, sortResults }, { readBerthPods }] = await Promise.all([
    import("./connectivity/run-test.ts"),
    import("../../host/cli/berth-pods.ts"),
  ]);
  const source = await cli.openCluster();
  const { api } = source;
  const { place } = cli;
  try {
    const agents = (await readBerthPods(api)).filter(({ component, node }) => component === "agent" && node !== "");
    const chosen = agents.filter(({ node }) => place.node === undefined || node === place.node);
    if (chosen.length === 0)
      throw new ProblemError(
        `No agent's pod is ${place.node === undefined ? "in the cluster" : `on node "${place.node}"`}: its nodes are not Berth's`,
      );
    for (const other of await findTests(api))
      note(`Namespace ${other} is of another test; if none runs: kubectl delete namespace ${other}`);
    const images = new Map(chosen.map((agent) => [agent.node, image ?? agent.image]));
    const { progress = () => {}, timeoutMs = START_MS } = place;
    const results = sortResults(await runTest({ api, access: place, images, signal, progress, startMs: timeoutMs }));
    await out.list(RESULT_TABLE, results);
    const failed = results.filter(({ outcome }) => outcome === "failed").length;
    const count = `${results.length} probes on ${images.size} nodes, ${failed} failed`;
    if (out.hasTitles)
      out.text(failed === 0 ? count : `${count}; what is wrong: ${cli.self} check`, failed === 0 ? "green" : "red");
    return failed === 0 ? ExitCode.Success : ExitCode.Problem;
  } catch (error) {
    if (signal.aborted && !(error instanceof ProblemError))
      throw new ProblemError("Interrupted; everything that the test made is removed");
    throw error;
  } finally {
    await source.close();
  }
}
