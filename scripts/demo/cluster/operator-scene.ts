/**
 * An operator's two questions: which pod has this address, and why does this pod not start. The commands are typed in
 * a real shell.
 */
import { join } from "node:path";
import { runCommand } from "../../../test/lab/command.ts";
import { root } from "../../setup/paths.mjs";
import type { Narrator } from "../narrator.ts";
import { attach, nodeOf, requirePod, type Scene } from "./acts.ts";
import type { Node, Stage } from "./stage.ts";

export const OPERATOR_TITLE = "An operator's questions";

/**
 * Types the command on that node as its administrator; prints it and its output, both of which it returns with the
 * exit code.
 */
async function type(stage: Stage, narrator: Narrator, node: Node, line: string) {
  const { agent } = node;
  const functions = `berthctl() { "${process.execPath}" "${join(root, "dist", "berthctl.mjs")}" "$@"; }`;
  const env = { ...agent.env, KUBECONFIG: stage.plane.kubeconfig };
  const { exitCode, stdout, stderr } = await runCommand(node.netns.enter(["bash", "-c", `${functions}; ${line}`]), {
    env,
  });
  const output = `${stdout}${stderr}`;
  narrator.command(line, output);
  return { exitCode, output };
}

export const operatorScene: Scene = async (stage, narrator) => {
  const node = nodeOf(stage, 0);
  const web0 = requirePod(stage, "web-0");
  const [address = ""] = web0.addresses;
  narrator.scene(
    OPERATOR_TITLE,
    "Which pod has this address, which had it before, why does a pod not start, and is everything as it should be?",
  );
  const { output: found } = await type(stage, narrator, node, `berthctl ip ${address}`);
  narrator.claim("the address is the pod's", found.includes("shop/web-0"), "shop/web-0");
  const { output: past } = await type(stage, narrator, node, `berthctl history ${address}`);
  narrator.claim("its ADD is on record", past.includes("ADD"), "ADD");
  // desk has two addresses for pods, and desk-0 has one of them.
  const desk3 = await stage.createPod("70-desk.yaml", "desk-3", node);
  await attach(stage, narrator, desk3);
  const desk4 = await stage.createPod("70-desk.yaml", "desk-4", node);
  const explained = await type(stage, narrator, node, "berthctl explain desk-4 -n shop");
  const { exitCode, stderr } = await stage.call("add", desk4);
  const isRefused = explained.exitCode === 1 && exitCode !== 0;
  narrator.claim("explain says what the ADD then does", isRefused, stderr.trim());
  await stage.call("del", desk4);
  await stage.removePod(desk4);
  const checked = await type(stage, narrator, node, "berthctl check");
  narrator.claim("no address is a duplicate, leaked or lost", checked.exitCode === 0, `exit code ${checked.exitCode}`);
  const counted = await type(
    stage,
    narrator,
    node,
    "curl -s --unix-socket $BERTH_SOCKET http://agent/metrics | grep ^berth_cni_requests_total",
  );
  narrator.claim(
    "every request is counted",
    counted.output.includes('command="ADD"'),
    "Prometheus scrapes these lines",
  );
};
