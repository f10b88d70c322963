/**
 * `kubectl berth` where agents are asked, too: a real API server, the real kubectl, the built agent and controller;
 * the built plugin where it prints what an agent says, or writes files.
 * What a kubelet would do for `exec` and `logs`, a script in kubectl's place does: it starts the built berthctl
 * beside the agent, or prints the process's log.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { referenceTool, root } from "../../scripts/setup/paths.mjs";
import { type CommandLineEnding, runKubectlBerth } from "../lab/berthctl.ts";
import { type ControllerProcess, QUICK_LEASE, startControllerProcess } from "../lab/cluster/controller-process.ts";
import * as lab from "../lab/cluster/objects.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { type CommandOutcome, formatShell, requireCommand, runCommand } from "../lab/command.ts";
import { until } from "../lab/waiting.ts";
import { borrowPlane } from "./borrow-plane.ts";

const SECRETS = ["s3cret-in-a-setting", "s3cretOfAHeader99", "s3cret-of-a-variable", "s3cret-applied-before"];

let world: World;
let controller: ControllerProcess;
let home: string;

const labelsOf = (component: string) => ({
  "app.kubernetes.io/name": "berth",
  "app.kubernetes.io/component": component,
});
const containersOf = (component: string) => [
  { name: component, image: "local/berth:1.2.3", env: [{ name: "ODD", value: SECRETS[2] }] },
];

/** A pod of Berth's as the kubelet reports it. */
async function createBerthPod(component: string, name: string, node: string, status: object): Promise<void> {
  const pod = lab.podObject({ name, namespace: lab.SYSTEM, node, labels: labelsOf(component) });
  const containers = containersOf(component);
  const pods = `${lab.NAMESPACES}/${lab.SYSTEM}/pods`;
  await world.client.create(pods, { ...pod, spec: { ...pod.spec, containers } });
  await world.client.patch(`${pods}/${name}/status`, { status });
}

const DAEMON_SETS = `/apis/apps/v1/namespaces/${lab.SYSTEM}/daemonsets`;

async function createDaemonSet(): Promise<void> {
  const labels = labelsOf("agent");
  const template = { metadata: { labels }, spec: { containers: containersOf("agent") } };
  const spec = { selector: { matchLabels: labels }, template };
  const metadata = { name: "berth-agent", labels };
  await world.client.create(DAEMON_SETS, { apiVersion: "apps/v1", kind: "DaemonSet", metadata, spec });
}

const statusOf = (isReady: boolean, restartCount = 0) => ({
  phase: "Running",
  conditions: [{ type: "Ready", status: isReady ? "True" : "False" }],
  containerStatuses: [
    { name: "agent", restartCount, ready: isReady, image: "local/berth:1.2.3", imageID: "", state: {} },
  ],
});

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "berth-kubectl-"));
  world = await startWorld({
    startPlane: borrowPlane,
    nodes: ["n1"],
    pools: [{ name: "blue", subnet: "10.6.0.0/24" }],
    settings: { garbageCollection: { interval: "1s", grace: "1s" } },
  });
  const { client } = world;
  const annotations = {
    "example.org/token": SECRETS[0],
    "kubectl.kubernetes.io/last-applied-configuration": `{"odd":"${SECRETS[3]}"}`,
  };
  await client.patch(lab.SETTINGS, { metadata: { annotations } });
  await createDaemonSet();
  await createBerthPod("agent", "berth-agent-1", "n1", statusOf(true));
  await createBerthPod("controller", "berth-controller-a", "n1", statusOf(true));
  const kubeconfig = await world.controllerKubeconfig();
  controller = await startControllerProcess({ kubeconfig, name: "one", args: QUICK_LEASE });
  writeKubectl();
  vi.stubEnv("HOME", home);
  vi.stubEnv("KUBECONFIG", world.plane.kubeconfig);
  vi.stubEnv("PATH", `${home}:${process.env.PATH}`);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await controller?.kill();
  rmSync(home, { recursive: true });
  await deleteBerthPods();
  await world?.clear();
  await world?.stop();
});

/** The next borrower of the control plane finds no pod of Berth's. */
async function deleteBerthPods(): Promise<void> {
  await world?.client.delete(`${lab.NAMESPACES}/${lab.SYSTEM}/pods`, { gracePeriodSeconds: 0 });
}

function writeKubectl(): void {
  const { agent } = world.node("n1");
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
*"logs "*berth-controller-a*) exec cat '${home}/controller.log' ;;
*"logs "*) echo 'Authorization: Bearer ${SECRETS[1]}'; exit 0 ;;
esac
exec '${join(referenceTool("kubectl").directory, "kubectl")}' "$@"
`;
  writeFileSync(join(home, "kubectl"), script, { mode: 0o755 });
}

function ask(...words: string[]): Promise<CommandLineEnding> {
  writeFileSync(join(home, "controller.log"), controller.output());
  return runKubectlBerth(...words);
}

function berth(...words: string[]): Promise<CommandOutcome> {
  writeFileSync(join(home, "controller.log"), controller.output());
  return runCommand([process.execPath, join(root, "dist", "kubectl-berth.mjs"), ...words], { cwd: home });
}

it("explain asks the agent of the pod's node", async () => {
  const isReady = async () => (await world.node("n1").agent.request("/v1/health")).status === 200;
  await expect.poll(isReady, { timeout: 20_000 }).toBe(true);
  const pod = await world.createPod({ name: "web-0", node: "n1" });
  const { exitCode, stdout, stderr } = await berth("explain", "web-0", "-n", "shop");
  expect([exitCode, stderr], stdout).toEqual([0, ""]);
  expect(stdout).toMatch(/pool "blue": fits, 25\d of 254 addresses are free\n/);
  expect(stdout).toMatch(/an ADD of eth0 now would get 10\.6\.0\.\d+ of pool "blue"/);
  expect((await world.node("n1").runtime.attach(pod)).attempts).toBe(1);
  const none = await berth("explain", "none", "-n", "shop");
  expect([none.exitCode, none.stdout]).toEqual([1, expect.stringContaining("would be refused with code 103")]);
});

it("says that a namespace or a pool does not exist", async () => {
  const asked = async (...words: string[]) => {
    const { code, error } = await ask("allocations", ...words);
    return [code, error];
  };
  expect(await asked("-n", "nope")).toEqual([1, 'kubectl berth: There is no namespace "nope"\n']);
  expect(await asked("--pool", "nope")).toEqual([1, 'kubectl berth: There is no pool "nope"\n']);
  expect(await asked("-n", "default")).toEqual([0, "No address is in use with namespace default\n"]);
});

describe("status", () => {
  it("shows agents, leader, versions, pools and a pod that waits; and ends with 1 while an agent is not ready", async () => {
    const counts = {
      observedGeneration: 1,
      desiredNumberScheduled: 2,
      currentNumberScheduled: 1,
      numberMisscheduled: 0,
    };
    const setStatus = (numberReady: number) =>
      world.client.patch(`${DAEMON_SETS}/berth-agent/status`, {
        status: { ...counts, numberReady, updatedNumberScheduled: numberReady },
      });
    await setStatus(1);
    const { code, out } = await ask("status");
    expect([code, out]).toEqual([1, expect.stringMatching(/^agents +1 of 2 ready, 1 of the newest revision\n/)]);
    expect(out).toMatch(
      /\ncontrollers +1 of 1 ready, one leads\nversions +API server v1\..*, agent 1\.2\.3 \(1\), controller/,
    );
    expect(out).toMatch(/\npools +1 .*\n {2}blue: \d of 254 used, <1%\n/);
    const waiting = ask("status", "--wait", "60", "-o", "json");
    await setStatus(2);
    expect(JSON.parse((await waiting).out)).toMatchObject({ isReady: true, problems: [] });
    expect((await waiting).code).toBe(0);
    await setStatus(1);
    expect(await ask("status", "--wait", "1")).toMatchObject({ code: 1, error: "Not ready after 1 s\n" });
  });
});

const HOLDER = { namespace: "shop", pod: "lost-0", podUid: "u-lost", ifName: "eth0", node: "n9" };

describe("history", () => {
  const history = (...words: string[]) => ask("history", ...words);

  it("has what the controller did with the addresses of a node that is gone, and who had them", async () => {
    await world.allocate("10.6.0.50", { node: "n9", holders: [HOLDER] });
    await world.allocate("10.6.0.60", { node: "n9", state: "Cooling", holders: [] });
    // The controller may have quarantined addresses of earlier tests.
    const lines = (audit: string, address: string) =>
      controller
        .output()
        .split("\n")
        .filter((line) => line.includes(`"audit":"${audit}"`) && line.includes(address));
    await until("10.6.0.50 is quarantined", () => lines("QUARANTINE", "10.6.0.50").length > 0);
    await until("10.6.0.60 is released", () => lines("RELEASE", "10.6.0.60").length > 0);
    expect([await world.stateOf("10.6.0.50"), await world.stateOf("10.6.0.60")]).toEqual(["Quarantined n9", "free"]);
    const [lost, cooled] = [await history("10.6.0.50"), await history("10.6.0.60")];
    expect(lost.out).toMatch(
      /# controller\nTIME +EVENT .*\n\S+ +QUARANTINE +shop\/lost-0 +eth0 +10\.6\.0\.50 +blue +- +its pod and its node are gone/,
    );
    expect(cooled.out).toMatch(/RELEASE +- +- +10\.6\.0\.60 +blue +- +its cooldown is over, and its node is gone\n/);
    expect([lost.code, cooled.code]).toEqual([0, 0]);
    const ofPod = await history("shop/lost-0", "-o", "wide");
    expect(ofPod.out).toMatch(/QUARANTINE +shop\/lost-0 .* n9 /);
    const before = await history("10.6.0.50", "--until", "2026-01-01T00:00:00Z");
    expect(before.out).not.toContain("QUARANTINE");
  });
});

describe("support-bundle", () => {
  let files: Map<string, string>;
  let printed: CommandOutcome;
  beforeAll(async () => {
    await createBerthPod("agent", "berth-agent-2", "n2", statusOf(true, 3));
    await createBerthPod("agent", "berth-agent-3", "n3", statusOf(false));
    await createBerthPod("agent", "berth-agent-4", "n4", statusOf(true));
    printed = await berth("support-bundle", "--file", "b.tar.gz", "--timeout", "10");
    files = await unpack("b.tar.gz");
  });
  const text = (name: string) => files.get(name) ?? "";
  const records = (name: string): AnyRecord[] =>
    text(name)
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line));

  it("is written, and says how much of it is not complete", () => {
    expect([printed.exitCode, printed.stderr]).toEqual([0, ""]);
    expect(printed.stdout).toMatch(/^Wrote b\.tar\.gz: \d+ files, \d+ of them not complete \(LEFT-OUT lists them\)/);
  });

  it("has versions, definitions, Berth's objects, settings, nodes, pods and events", async () => {
    expect(JSON.parse(text("about.json"))).toMatchObject({
      berthctl: expect.any(String),
      apiServer: expect.stringMatching(/^v1\./),
    });
    expect(records("definitions.jsonl").map(({ name }) => name)).toEqual(
      expect.arrayContaining(["ippools.ipam.vendor.io", "network-attachment-definitions.k8s.cni.cncf.io"]),
    );
    expect(records("definitions.jsonl")[0]).toMatchObject({ versions: [{ name: "v1", served: true, storage: true }] });
    expect(records("objects/ippools.jsonl")).toMatchObject([{ metadata: { name: "blue" }, spec: {} }]);
    expect(text("objects/ippools.jsonl")).not.toContain("managedFields");
    expect(records("objects/ipallocations.jsonl").length).toBeGreaterThan(0);
    expect(records("configuration/kube-system-configmaps.jsonl")).toMatchObject([
      { metadata: { name: "vendor-conf" } },
    ]);
    expect(text("configuration/kube-system-daemonsets.jsonl")).toContain('"env":[{"name":"ODD"}]');
    expect(records("nodes.jsonl").map(({ name }) => name)).toEqual(["n1"]);
    expect(records("pods.jsonl")).toHaveLength(5);
    expect(text("events/berth-controller.jsonl")).toContain("NodeLost");
  });

  it("has the controller's log and status", () => {
    expect(text("controllers/berth-controller-a/log.txt")).toContain('"audit":"QUARANTINE"');
    expect(text("controllers/berth-controller-a/status.json")).toContain('"isLeading":true');
  });

  it("has the bundle of an agent that answers, and its log", () => {
    expect(JSON.parse(text("nodes/n1/agent/health.json"))).toMatchObject({ mode: "cluster", node: "n1" });
    expect(text("nodes/n1/agent/metrics.txt")).toContain("berth_build_info");
    expect(text("nodes/n1/net.d/10-underlay.conflist")).toContain("berth");
    expect(text("nodes/n1/agent-log.txt")).toContain("[redacted]");
  });

  it.each([
    ["n2", "No answer within 10 s"],
    ["n3", "unable to upgrade connection"],
    ["n4", "its version may be too old"],
  ])("notes that %s does not answer, and has its log", (node, reason) => {
    expect(text(`nodes/${node}/no-answer.txt`)).toContain(reason);
    expect(text("LEFT-OUT")).toMatch(new RegExp(`^nodes/${node}/no-answer.txt: .*${reason}`, "m"));
    expect(text(`nodes/${node}/agent-log.txt`)).not.toBe("");
  });

  it("has the log before a restart", () => expect(text("nodes/n2/agent-log-previous.txt")).toContain("the one before"));

  it.each(SECRETS)("has no %s", (secret) => {
    for (const [name, content] of files) expect(content.includes(secret), name).toBe(false);
  });

  it("of one node has its files alone, and none of a node without agent", async () => {
    expect((await berth("--node", "n1", "support-bundle", "--file", "n1.tar.gz")).exitCode).toBe(0);
    const own = [...(await unpack("n1.tar.gz")).keys()].filter((name) => name.startsWith("nodes/"));
    expect(new Set(own.map((name) => name.split("/")[1]))).toEqual(new Set(["n1"]));
    const { code, error } = await ask("--node", "n7", "support-bundle");
    expect([code, error]).toEqual([3, expect.stringContaining('No agent is on node "n7"')]);
  });
});

// biome-ignore lint/suspicious/noExplicitAny: tests look into records by name.
type AnyRecord = Record<string, any>;

async function unpack(file: string): Promise<Map<string, string>> {
  const folder = join(home, `${file}.d`);
  mkdirSync(folder);
  const names = await requireCommand(["tar", "-xvzf", join(home, file), "-C", folder]);
  return new Map(
    names
      .trim()
      .split("\n")
      .map((name) => [name.replace(/^[^/]*\//, ""), readFileSync(join(folder, name), "utf8")]),
  );
}
