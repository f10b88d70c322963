/** Requests that the coordinator must refuse for the state that it finds, and requests by attackers. */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ErrorCode } from "../../host/cni/error.ts";
import { runPlugin } from "../lab/cnitool.ts";
import { makePreparedWorld, type PreparedPod, type PreparedWorld } from "../lab/netns/coordinator.ts";
import type { PodCall } from "../lab/netns/world.ts";
import { eventually } from "../lab/waiting.ts";

/** With one macvlan NIC, eth0. */
let world: PreparedWorld;
let pod: PreparedPod;
/**
 * State of node and pod without an attachment, but with the part that the first one leaves for all pods of the node.
 */
let detached: readonly string[];

beforeAll(async () => {
  world = await makePreparedWorld("ch");
  ({ pod } = world);
  await pod.succeed("ADD");
  await pod.succeed("DEL");
  detached = await pod.state();
}, 60_000);

afterAll(() => world?.delete());

it("a refused ADD or CHECK leaves an attachment as it is", async () => {
  await pod.succeed("ADD", { conf: { hijackCIDR: ["169.254.20.10", "fd00:20::10"] } });
  const attached = await pod.state();
  const bad = [
    { hostRuleTable: 254 },
    { hijackCIDR: ["fd00::/129"] },
    { logOptions: { logFile: "/var/log/vendor/no/a" } },
  ];
  for (const conf of bad) {
    for (const verb of ["ADD", "CHECK"] as const) {
      expect(await pod.refused(verb, { conf })).toMatchObject({ code: ErrorCode.InvalidNetworkConfig });
    }
  }
  await pod.expectState(attached, "after the refusals");
  await pod.succeed("DEL", { conf: { hostRuleTable: 254 } });
  await pod.expectState(detached, "after DEL");
});

const PREV = '"prevResult", found nothing; put the coordinator after the main plugin in "plugins"';
it.each<[what: string, call: PodCall, code: number, text: string]>([
  ["no prevResult", { prevResult: undefined }, ErrorCode.InvalidNetworkConfig, PREV],
  ["a NIC that is not there", { ifName: "net7" }, ErrorCode.InterfaceRefused, 'Interface "net7"'],
  ["a pod that is gone", { netns: "/run/netns/ch-none" }, ErrorCode.InvalidNetns, "/run/netns/ch-none"],
])("a request without a foundation of the coordinator is refused: %s", async (_what, call, code, text) => {
  for (const verb of ["ADD", "CHECK"] as const) {
    const refusal = await pod.refused(verb, call);
    expect(refusal.msg, verb).toContain(text);
    expect(refusal, verb).toMatchObject({ code });
  }
  await pod.expectState(detached, "after the refusals");
});

describe("a pod named by an attacker", () => {
  const LEVELS = ["debug", "info", "warn"];
  const linesOf = (text: string): Record<string, unknown>[] =>
    text
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line));

  it.each<[what: string, name: string]>([
    ["the end of a text", '","level":"fatal","msg":"forged'],
    ["a shell's orders", "$(touch /tmp/x)`id`|&"],
    ["the alias of another", "x c-other lab shop/other"],
    ["very much", "p".repeat(20_000)],
  ])("is served and forges nothing: %s", async (_what, name) => {
    const args = `IgnoreUnknown=1;K8S_POD_NAMESPACE=${name};K8S_POD_NAME=${name};K8S_POD_UID=${name}`;
    const conf = { logOptions: { logFile: "/var/log/vendor/hostile.log" }, tune_mode: "underlay" };
    await pod.succeed("ADD", { args, conf });
    await pod.succeed("CHECK", { args, conf });
    await pod.succeed("DEL", { args, conf });
    await pod.expectState(detached, "after DEL");
    const path = join(world.node.agent.logDir, "hostile.log");
    const lines = await eventually(
      async () => linesOf(readFileSync(path, "utf8")),
      (found) => found.at(-1)?.msg === "Detached",
    );
    expect(lines.filter(({ level }) => !LEVELS.includes(String(level)))).toEqual([]);
    expect(new Set(lines.map((line) => line.name))).toEqual(new Set(["coordinator"]));
    expect(linesOf(world.node.agent.stderr()).filter(({ level }) => !LEVELS.includes(String(level)))).toEqual([]);
  });

  it.each<[what: string, name: string, shown: string]>([
    ["a line feed", 'x"}\n{"level":"fatal","msg":"forged"}', String.raw`\x0a`],
    ["a terminal's orders", "\u001b[2J", String.raw`\x1b[2J`],
    ["a direction", "a\u202eb", String.raw`a\xe2\x80\xaeb`],
  ])("is refused by the plugin itself: %s", async (_what, name, shown) => {
    const call = { args: `IgnoreUnknown=1;K8S_POD_NAME=${name}` };
    for (const verb of ["ADD", "CHECK"] as const) {
      const refusal = await pod.refused(verb, call);
      expect(refusal).toMatchObject({ code: ErrorCode.InvalidEnvironment });
      expect(refusal.msg).toContain(shown);
      expect(refusal.msg).not.toMatch(/\p{Cc}|\p{Cf}/u);
    }
    await pod.expectState(detached, "after the refusals");
  });

  it("with an annotation by the attacker is refused, and shown without a terminal's commands", async () => {
    const annotations = { "ipam.vendor.io/default-route-nic": 'x\n{"level":"fatal"}\u001b[2J\u009b' };
    const conf = { runtimeConfig: { "io.kubernetes.cri.pod-annotations": annotations } };
    const args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0";
    for (const verb of ["ADD", "CHECK"] as const) {
      const refusal = await pod.refused(verb, { args, conf });
      expect(refusal).toMatchObject({ code: ErrorCode.InvalidAnnotation });
      expect(refusal.msg).toContain("ipam.vendor.io/default-route-nic");
      expect(refusal.msg).not.toMatch(/\p{Cc}/u);
    }
    await pod.expectState(detached, "after the refusals");
    expect(linesOf(world.node.agent.stderr()).filter(({ level }) => !LEVELS.includes(String(level)))).toEqual([]);
  });
});

it("a bad definition in the node's directory is reported by STATUS of berth and by health, and stops no pod", async () => {
  const { agent } = world.node;
  const file = join(agent.cniConfDir, "10-lab.conflist");
  const plugins = [{ type: "macvlan" }, { type: "coordinator", detectIPConflikt: true }];
  const text = JSON.stringify({ cniVersion: "1.1.0", name: "lab", plugins });
  writeFileSync(file, text);
  const problem = `File "${file}", plugins[1]: field "detectIPConflikt": found an unknown key, want the key "detectIPConflict"`;
  const status = await runPlugin({
    plugin: "berth",
    command: "STATUS",
    stdin: { cniVersion: "1.1.0", name: "lab", type: "macvlan", ipam: { type: "berth" } },
    env: agent.env,
  });
  expect([status.exitCode, status.text]).toEqual([0, ""]);
  expect(status.stderr).toContain(problem);
  expect((await agent.get("/v1/health")).problems).toEqual([problem]);
  rmSync(file);
  expect((await agent.get("/v1/health")).problems).toEqual([]);
});
