/**
 * `kubectl berth` where agents are asked, too: a real API server, the real kubectl, the built agent and controller; the
 * built plugin where it prints an agent's answer, or writes files. For `exec` and `logs` a script in kubectl's place
 * does the kubelet's work: it starts the built berthctl beside the agent, or prints the process's log.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, vi } from "vitest";
import { referenceTool, root } from "../../scripts/setup/paths.mjs";
import { type CommandLineEnding, runKubectlBerth } from "../lab/berthctl.ts";
import type { ControllerProcess } from "../lab/cluster/controller-process.ts";
import * as lab from "../lab/cluster/objects.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { type CommandOutcome, formatShell, runCommand } from "../lab/command.ts";
import { borrowPlane } from "./borrow-plane.ts";

/** Each is planted in one place, and no bundle may have it. */
export const SECRETS = ["s3cret-in-a-setting", "s3cretOfAHeader99", "s3cret-of-a-variable", "s3cret-applied-before"];

const labelsOf = (component: string) => ({
  "app.kubernetes.io/name": "berth",
  "app.kubernetes.io/component": component,
});
const containersOf = (component: string) => [
  { name: component, image: "local/berth:1.2.3", env: [{ name: "ODD", value: SECRETS[2] }] },
];

export const statusOf = (isReady: boolean, restartCount = 0) => ({
  phase: "Running",
  conditions: [{ type: "Ready", status: isReady ? "True" : "False" }],
  containerStatuses: [
    { name: "agent", restartCount, ready: isReady, image: "local/berth:1.2.3", imageID: "", state: {} },
  ],
});

export const DAEMON_SETS = `/apis/apps/v1/namespaces/${lab.SYSTEM}/daemonsets`;
const BERTH_PODS = `${lab.NAMESPACES}/${lab.SYSTEM}/pods`;

/** Opened before the file's tests, closed after them. */
export class KubectlScene {
  home = "";
  /** Of one node, n1. */
  declare world: World;
  declare controller: ControllerProcess;

  constructor() {
    beforeAll(() => this.#open());
    afterAll(() => this.#close());
  }

  async #open(): Promise<void> {
    this.home = mkdtempSync(join(tmpdir(), "berth-kubectl-"));
    this.world = await startWorld({
      startPlane: borrowPlane,
      nodes: ["n1"],
      pools: [{ name: "blue", subnet: "10.6.0.0/24" }],
      settings: { garbageCollection: { interval: "1s", grace: "1s" } },
    });
    const { client } = this.world;
    const annotations = {
      "example.org/token": SECRETS[0],
      "kubectl.kubernetes.io/last-applied-configuration": `{"odd":"${SECRETS[3]}"}`,
    };
    await client.patch(lab.SETTINGS, { metadata: { annotations } });
    const labels = labelsOf("agent");
    const template = { metadata: { labels }, spec: { containers: containersOf("agent") } };
    const spec = { selector: { matchLabels: labels }, template };
    const metadata = { name: "berth-agent", labels };
    await client.create(DAEMON_SETS, { apiVersion: "apps/v1", kind: "DaemonSet", metadata, spec });
    await this.createBerthPod("agent", "berth-agent-1", "n1", statusOf(true));
    await this.createBerthPod("controller", "berth-controller-a", "n1", statusOf(true));
    this.controller = await this.world.startController("one");
    this.#writeKubectl();
    vi.stubEnv("HOME", this.home);
    vi.stubEnv("KUBECONFIG", this.world.plane.kubeconfig);
    vi.stubEnv("PATH", `${this.home}:${process.env.PATH}`);
  }

  async #close(): Promise<void> {
    vi.unstubAllEnvs();
    await this.controller?.kill();
    rmSync(this.home, { recursive: true });
    // The next borrower of the control plane finds no pod of Berth's.
    await this.world?.client.delete(BERTH_PODS, { gracePeriodSeconds: 0 });
    await this.world?.clear();
    await this.world?.stop();
  }

  /** A pod of Berth's as the kubelet reports it. */
  async createBerthPod(component: string, name: string, node: string, status: object): Promise<void> {
    const pod = lab.podObject({ name, namespace: lab.SYSTEM, node, labels: labelsOf(component) });
    const containers = containersOf(component);
    await this.world.client.create(BERTH_PODS, { ...pod, spec: { ...pod.spec, containers } });
    await this.world.client.patch(`${BERTH_PODS}/${name}/status`, { status });
  }

  #writeKubectl(): void {
    const { agent } = this.world.node("n1");
    const env = Object.entries(agent.env).map(([name, value]) => `${name}='${value}'`);
    const options = `--cni-conf-dir '${agent.cniConfDir}' --log-dir '${agent.logDir}'`;
    const berthctl = `env ${env.join(" ")} ${formatShell([process.execPath, join(root, "dist", "berthctl.mjs")])}`;
    const script = `#!/bin/sh
all="$*"
case "$all" in
*"exec "*berth-agent-1*)
    while [ "$1" != -- ]; do shift; done
    shift 2
    case "$1" in
    support-bundle) exec ${berthctl} "$@" ${options} ;;
    *) exec ${berthctl} "$@" ;;
    esac ;;
*"exec "*berth-agent-2*) exec sleep 600 ;;
*"exec "*berth-agent-3*) echo 'error: unable to upgrade connection: no such container' >&2; exit 1 ;;
*"exec "*berth-agent-4*) echo 'error: unknown command'; exit 0 ;;
*"exec "*berth-controller-a*) echo '{"isLeading":true}' ;;
*"logs "*--previous*) echo 'the one before'; exit 0 ;;
*"logs "*berth-controller-a*) exec cat '${this.home}/controller.log' ;;
*"logs "*) echo 'Authorization: Bearer ${SECRETS[1]}'; exit 0 ;;
esac
exec '${join(referenceTool("kubectl").directory, "kubectl")}' "$@"
`;
    writeFileSync(join(this.home, "kubectl"), script, { mode: 0o755 });
  }

  /** In the caller's process. */
  ask(...words: string[]): Promise<CommandLineEnding> {
    writeFileSync(join(this.home, "controller.log"), this.controller.output());
    return runKubectlBerth(...words);
  }

  /** The built program. */
  berth(...words: string[]): Promise<CommandOutcome> {
    writeFileSync(join(this.home, "controller.log"), this.controller.output());
    return runCommand([process.execPath, join(root, "dist", "kubectl-berth.mjs"), ...words], { cwd: this.home });
  }
}
