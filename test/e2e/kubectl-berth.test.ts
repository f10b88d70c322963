/** `kubectl berth` with a kubectl that prints its arguments instead of talking to a cluster. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { root } from "../../scripts/setup/paths.mjs";
import { formatShell, runCommand } from "../lab/command.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";

const KUBECTL = `#!/bin/sh
case "$*" in
*"spec.nodeName=none"*) ;;
*"spec.nodeName=b"*) printf 'berth\\tagent-2\\tb\\tRunning\\t\\n' ;;
*"get pods"*) printf 'berth\\tagent-2\\tb\\tRunning\\t\\nberth\\tagent-1\\ta\\tRunning\\t\\n' ;;
*"--context=one"*) exit 1 ;;
*"--context=three"*) exit 3 ;;
*"--context=away"*) exit 137 ;;
*"--context=hanging"*agent-1*) exec sleep 60 ;;
*"history 10.6.0.6"*) printf '\\033[2Jcleared\\n' ;;
*"agent-1"*"--output=json"*) echo '[{"pod":"web-0","node":"a"}]' ;;
*"agent-2"*"--output=json"*) echo '[]'; exit 1 ;;
*"-o yaml"*) echo 'succeeds: true' ;;
*"agent-1"*"-o json"*) echo 'busy' ;;
*"agent-2"*"-o json"*) echo '{"succeeds":true}' ;;
*"agent-1"*"history 10.6.0.9"*) echo "No line"; exit 1 ;;
*"agent-2"*"history 10.6.0.8"*) echo "no agent" >&2; exit 3 ;;
*) echo "kubectl $*" ;;
esac
`;
const bin = temporaryDirectory("berth-kubectl-");

beforeAll(() => {
  writeFileSync(join(bin, "kubectl"), KUBECTL, { mode: 0o755 });
  mkdirSync(join(bin, ".kube"));
  writeFileSync(join(bin, ".kube", "config"), CONTEXTS);
});
/** A kubeconfig whose context has a namespace, and another that has none. No cluster: no call waits for one. */
const CONTEXTS = `
current-context: a
contexts: [{name: a, context: {cluster: c, namespace: shop}}, {name: two, context: {cluster: c}}]
`;

const call = (...words: string[]) => callIn("UTC", ...words);
const callIn = (TZ: string, ...words: string[]) =>
  runCommand([process.execPath, join(root, "dist", "kubectl-berth.mjs"), ...words], {
    env: { HOME: bin, PATH: `${bin}:${process.env.PATH}`, TZ },
  });
const exec = (pod: string, words: string) =>
  `kubectl exec --namespace berth ${pod} --container agent -- berthctl ${words}\n`;

it.each([
  [
    "every agent in the order of the nodes",
    ["recover"],
    `# a\n${exec("agent-1", "recover")}# b\n${exec("agent-2", "recover")}`,
  ],
  ["the agent of a node", ["--node", "b", "recover"], exec("agent-2", "recover")],
  [
    "an agent with the options of berthctl's command",
    ["--node", "b", "explain", "web-0", "-n", "shop"],
    exec("agent-2", "explain web-0 -n shop"),
  ],
  [
    "an agent of any version with a pod's name and its namespace",
    ["--node", "b", "explain", "lab/web-0"],
    exec("agent-2", "explain web-0 --namespace=lab"),
  ],
  [
    "an agent with the namespace of the context",
    ["--node", "b", "explain", "web-0"],
    exec("agent-2", "explain web-0 --namespace=shop"),
  ],
  [
    "an agent with a pod named as its namespace",
    ["--node", "b", "release", "web", "-n", "web", "--dry-run"],
    exec("agent-2", "release web -n web --dry-run"),
  ],
  ["an agent, and escapes its words", ["--node", "b", "history", "10.6.0.6"], "\\u{1b}[2Jcleared\n"],
  ["agents with the same of a history", ["--node", "b", "history", "web-0"], exec("agent-2", "history shop/web-0")],
])("it calls %s", async (_, words, stdout) => {
  expect(await call(...words)).toEqual({ exitCode: 0, stdout, stderr: "" });
});

it.each([
  ["one", 1],
  ["three", 3],
  ["away", 3],
])("ends with the exit code of the agent's berthctl, %s; others are no answer", async (context, code) => {
  expect((await call("--context", context, "--node", "b", "recover")).exitCode).toBe(code);
});

it("a context without a namespace means default, one that is not there is named by its option", async () => {
  const asked = exec("agent-2", "history default/web-0").replace("kubectl", "kubectl --context=two");
  expect((await call("--context", "two", "--node", "b", "history", "web-0")).stdout).toBe(asked);
  const { exitCode, stderr } = await call("--context", "nope", "history", "web-0");
  expect([exitCode, stderr]).toEqual([
    2,
    expect.stringMatching(/field "--context": found "nope", want the name of a context: "a", "two"/),
  ]);
});

it("says which labels it looked for when no agent is running", async () => {
  const { exitCode, stderr } = await call("--node", "none", "recover");
  expect([exitCode, stderr]).toEqual([
    3,
    expect.stringContaining('No agent is running on node "none": no pod has the labels app.kubernetes.io/name=berth,'),
  ]);
});

it("a time means the same to caller and agents", async () => {
  const at = ["--at", "2026-11-26 14:02"];
  const { stdout, stderr } = await callIn("America/New_York", "--node", "b", "history", "10.6.0.7", ...at);
  const moment = "2026-11-26T19:02:00.000Z";
  expect(stdout).toBe(exec("agent-2", `history 10.6.0.7 --at ${moment}`));
  expect(stderr).toBe(`${at.join(" ")} is ${moment} (zone of this machine: America/New_York, UTC-05:00)\n`);
});

it("of several agents one that knows the history is enough", async () => {
  const at = ["--since", "2026-11-26T14:02:00Z"];
  const words = "--since 2026-11-26T14:02:00.000Z";
  const b = `# b\n${exec("agent-2", `history 10.6.0.9 ${words}`)}`;
  expect(await call("history", "10.6.0.9", ...at)).toEqual({ exitCode: 0, stdout: b, stderr: "" });
  const a = `# a\n${exec("agent-1", `history 10.6.0.8 ${words}`)}# b\n`;
  expect(await call("history", "10.6.0.8", ...at)).toEqual({ exitCode: 0, stdout: a, stderr: "no agent\n" });
});

it("records of several agents are one document", async () => {
  const history = await call("history", "10.6.0.5", "-o", "json");
  expect(JSON.parse(history.stdout)).toEqual([{ pod: "web-0", node: "a" }]);
  const yaml = { exitCode: 0, stdout: "- node: a\n  succeeds: true\n- node: b\n  succeeds: true\n", stderr: "" };
  expect(await call("explain", "pool", "blue", "-o", "yaml")).toEqual(yaml);
  const { exitCode, stdout, stderr } = await call("explain", "pool", "blue", "-o", "json");
  expect(JSON.parse(stdout)).toEqual([{ node: "b", succeeds: true }]);
  expect([exitCode, stderr]).toEqual([3, expect.stringContaining("node a: the answer is no json: ")]);
  expect((await call("history", "10.6.0.7", "-o", "name")).stdout).not.toContain("#");
});

it("an agent that does not answer in time delays no other", async () => {
  const { exitCode, stdout, stderr } = await call("--context", "hanging", "--timeout", "0.5", "recover");
  expect(stdout).toBe(`# a\n# b\n${exec("agent-2", "recover").replace("kubectl", "kubectl --context=hanging")}`);
  expect([exitCode, stderr]).toEqual([3, "node a: no answer within 0.5 s\n"]);
});

it("on a terminal it tells how many have answered", async () => {
  const program = formatShell([process.execPath, join(root, "dist", "kubectl-berth.mjs"), "recover"]);
  const { stdout } = await runCommand(["script", "-qec", program, "/dev/null"], {
    env: { HOME: bin, PATH: `${bin}:${process.env.PATH}` },
  });
  expect(stdout).toContain("\r0 of 2 nodes\u001b[K");
  expect(stdout).toContain("\r2 of 2 nodes\u001b[K\r\u001b[K");
});
