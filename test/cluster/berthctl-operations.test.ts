/**
 * `kubectl berth release` and `quarantine`: the address's agent is called, and acts on a real API server with its own
 * rights.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { Operations } from "../../host/agent/operate/operations.ts";
import { parseIp } from "../../host/net/ip.ts";
import { root } from "../../scripts/setup/paths.mjs";
import { runKubectlBerth } from "../lab/berthctl.ts";
import type { AgentNode } from "../lab/cluster/agent-node.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { runCommand } from "../lab/command.ts";
import { until } from "../lab/waiting.ts";
import { NO_AUDIT } from "../world/no-audit.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";
import { borrowPlane } from "./borrow-plane.ts";

const WORKLOAD = { kind: "StatefulSet", namespace: "shop", name: "db", uid: "w1", member: "db-0", ifName: "eth0" };
const SILENT = { isDryRun: false, isForced: false };

let world: World;
let agent: AgentNode;
const home = temporaryDirectory("berth-ctl-");

beforeAll(async () => {
  world = await startWorld({
    startPlane: borrowPlane,
    pools: [{ name: "blue", subnet: "10.6.0.0/24" }],
    settings: { allocationCooldown: "10m" },
  });
  agent = await world.openAgent("n1");
  await world.allocate("10.6.0.30", { node: "n2", state: "Cooling", holders: [] });
  await world.allocate("10.6.0.77", { node: "n2", state: "Kept", holders: [], workload: WORKLOAD });
  writeFileSync(
    join(home, "kubectl"),
    `#!/bin/sh\ncase "$*" in *"get pods"*n2*) printf 'berth\\tagent-2\\tn2\\tRunning\\t\\n' ;; *"get pods"*) ;; *) echo "kubectl $*" ;; esac\n`,
    { mode: 0o755 },
  );
});
afterAll(async () => {
  await world?.clear();
  await world?.stop();
});

const operations = () => new Operations({ backend: agent.cluster, audit: NO_AUDIT, nowMs: () => agent.nowMs() });

const named = (address: string) => {
  const ip = parseIp(address);
  if (ip === undefined) throw new TypeError(address);
  return { ip, space: "" };
};

describe("the agent", () => {
  it("releases no address of a pod that exists, unless it is forced; its object shows that it cools", async () => {
    const pod = await world.createPod({ name: "web-0", node: "n1" });
    const [address = ""] = (await agent.add(pod)).ips;
    expect(await operations().release(named(address), SILENT)).toMatchObject({
      steps: [{ refusal: "its pod exists", isForceable: true }],
      isDone: false,
    });
    expect(await world.stateOf(address)).toBe("Bound n1");
    expect(
      await operations().release({ namespace: "shop", pod: "web-0" }, { ...SILENT, isForced: true }),
    ).toMatchObject({ isDone: true });
    await until("the object cools", async () => (await world.stateOf(address)) === "Cooling n1");
  });

  it("releases an address whose pod is gone", async () => {
    const pod = await world.createPod({ name: "web-1", node: "n1" });
    const [address = ""] = (await agent.add(pod)).ips;
    await world.deletePod(pod);
    expect(await operations().release(named(address), SILENT)).toMatchObject({ isDone: true });
    await until("the object cools", async () => (await world.stateOf(address)) === "Cooling n1");
  });

  it("quarantines a free address, with an object that no other node may claim, and ends that", async () => {
    const address = named("10.6.0.200");
    expect(await operations().quarantine(address, 60_000, SILENT)).toMatchObject({ isDone: true });
    await until("the object", async () => (await world.stateOf("10.6.0.200")) === "Quarantined n1");
    expect((await world.spec("10.6.0.200")).holders ?? []).toEqual([]);
    expect(await operations().release(address, SILENT)).toMatchObject({ isDone: false });
    expect(await operations().endQuarantine(address, SILENT)).toMatchObject({ isDone: true });
    await until("it is free", async () => (await world.stateOf("10.6.0.200")) === "free");
  });

  it("quarantines no address of another node", async () => {
    expect(await operations().quarantine(named("10.6.0.30"), 60_000, SILENT)).toMatchObject({
      steps: [{ refusal: "another owner has it, or it has changed meanwhile" }],
      isDone: false,
    });
    expect(await world.stateOf("10.6.0.30")).toBe("Cooling n2");
  });
});

describe("kubectl berth", () => {
  beforeAll(() => {
    for (const [name, value] of Object.entries(env())) vi.stubEnv(name, value);
  });
  afterAll(() => void vi.unstubAllEnvs());
  const env = () => ({ ...{ HOME: home, KUBECONFIG: world.plane.kubeconfig }, PATH: `${home}:${process.env.PATH}` });
  const exec = "kubectl exec --namespace berth agent-2 --container agent -- berthctl ";

  it.each([
    [["release", "10.6.0.30", "--yes"], "release 10.6.0.30 --yes"],
    [["quarantine", "10.6.0.30", "--dry-run"], "quarantine 10.6.0.30 --dry-run"],
    [["--node", "n2", "quarantine", "10.6.0.201", "--for", "5", "-y"], "quarantine 10.6.0.201 --for 5 -y --yes"],
  ])("%j calls the agent of the address", async (words, called) => {
    const argv = [process.execPath, join(root, "dist", "kubectl-berth.mjs"), ...words];
    expect(await runCommand(argv)).toEqual({ exitCode: 0, stdout: `${exec}${called}\n`, stderr: "" });
  });

  it.each<[words: string[], code: number, error: RegExp]>([
    [
      ["release", "10.6.0.77", "--yes"],
      1,
      /retained for StatefulSet shop\/db, member db-0; the controller releases it/,
    ],
    [["release", "10.6.0.99", "--yes"], 1, /10\.6\.0\.99 has no record in this cluster/],
    [["quarantine", "10.6.0.99", "--yes"], 2, /choose the node .* with --node/],
    [["release", "10.6.0.30"], 2, /Give --yes/],
    [["--node", "n7", "release", "10.6.0.30", "--yes"], 3, /No agent is running on node "n7"/],
  ])("%j ends with %i", async (words, code, error) => {
    expect(await runKubectlBerth(...words)).toMatchObject({ code, error: expect.stringMatching(error) });
  });
});
