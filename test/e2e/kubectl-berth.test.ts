/** `kubectl berth` with a kubectl that prints its arguments instead of talking to a cluster. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { root } from "../../scripts/setup/paths.mjs";
import { runCommand } from "../lab/command.ts";

const KUBECTL = `#!/bin/sh
case "$*" in
*"spec.nodeName=none"*) ;;
*"spec.nodeName=b"*) printf 'berth\\tagent-2\\tb\\tRunning\\t\\n' ;;
*"get pods"*) printf 'berth\\tagent-2\\tb\\tRunning\\t\\nberth\\tagent-1\\ta\\tRunning\\t\\n' ;;
*"--context=one"*) exit 1 ;;
*"--context=three"*) exit 3 ;;
*"--context=away"*) exit 137 ;;
*) echo "kubectl $*" ;;
esac
`;
let bin: string;

beforeAll(() => {
  bin = mkdtempSync(join(tmpdir(), "berth-kubectl-"));
  writeFileSync(join(bin, "kubectl"), KUBECTL, { mode: 0o755 });
});
afterAll(() => rmSync(bin, { recursive: true }));

const call = (...words: string[]) =>
  runCommand([process.execPath, join(root, "dist", "kubectl-berth.mjs"), ...words], {
    env: { PATH: `${bin}:${process.env.PATH}` },
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

it("says which labels it looked for when no agent is running", async () => {
  const { exitCode, stderr } = await call("--node", "none", "recover");
  expect([exitCode, stderr]).toEqual([
    3,
    expect.stringContaining('No agent is running on node "none": no pod has the labels app.kubernetes.io/name=berth,'),
  ]);
});
