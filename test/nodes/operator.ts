/**
 * The command line of a real cluster's administrator. kubectl is a script that calls berthctl on the node's machine:
 * agents of the lab are no pods.
 * Effects: a folder below the system's temporary folder.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CheckReport } from "../../host/records/check-record.ts";
import { root } from "../../scripts/setup/paths.mjs";
import { type CommandOutcome, formatShell } from "../lab/command.ts";
import type { RealCluster } from "../lab/nodes/cluster.ts";

export interface Checked {
  readonly exitCode: number | null;
  readonly report: CheckReport;
  /** `kind address node pod`, in order. */
  readonly found: readonly string[];
}

export class Operator implements Disposable {
  /** For files. */
  readonly home = mkdtempSync(join(tmpdir(), "berth-operator-"));
  readonly #cluster: RealCluster;

  constructor(cluster: RealCluster, agents: readonly string[]) {
    this.#cluster = cluster;
    this.setAgents(agents);
  }

  /** From now on these nodes have an agent's pod. */
  setAgents(nodes: readonly string[]): void {
    const rows = nodes.map((name) => `berth\tagent-${name}\t${name}\tRunning\t\n`).join("");
    const places = nodes.map((name) => {
      const { machine, agent } = this.#cluster.node(name);
      const env = Object.entries(agent.env).map(([key, value]) => `${key}=${value}`);
      return `agent-${name}) at() { ${formatShell(machine.enter(["env", ...env]))} "$@"; } ;;`;
    });
    writeFileSync(join(this.home, "rows"), rows);
    const script = `#!/bin/sh
case "$*" in *"get pods"*) exec cat ${join(this.home, "rows")} ;; esac
at() { "$@"; }
while [ "$1" != "--" ]; do
case "$1" in
${places.join("\n")}
esac
shift
done
shift 2
at ${formatShell([process.execPath, join(root, "dist", "berthctl.mjs")])} "$@"
`;
    writeFileSync(join(this.home, "kubectl"), script, { mode: 0o755 });
  }

  /** `kubectl berth`. */
  berth(...words: string[]): Promise<CommandOutcome> {
    return this.#cluster.run([process.execPath, join(root, "dist", "kubectl-berth.mjs"), ...words], {
      env: { HOME: this.home, PATH: `${this.home}:${process.env.PATH}` },
    });
  }

  /** `kubectl berth check`, without its warnings: the lab's nodes do not forward. Throws its error output. */
  async check(...words: string[]): Promise<Checked> {
    const { exitCode, stdout, stderr } = await this.berth("check", "-o", "json", ...words);
    if (stderr !== "") throw new Error(stderr);
    const whole: CheckReport = JSON.parse(stdout);
    const report = { ...whole, findings: whole.findings.filter(({ level }) => level !== "warning") };
    const errors = report.findings.filter(({ level }) => level === "error");
    const found = errors.map(({ kind, address, node, pod }) =>
      [kind, address, node, pod].filter((word) => word !== "").join(" "),
    );
    return { exitCode, report, found: found.sort() };
  }

  [Symbol.dispose](): void {
    rmSync(this.home, { recursive: true });
  }
}
