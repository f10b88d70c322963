/** `kubectl berth` where agents are asked, too. */
import { expect, it } from "vitest";
import { until } from "../lab/waiting.ts";
import { DAEMON_SETS, KubectlScene } from "./kubectl-scene.ts";

const scene = new KubectlScene();
const ask: KubectlScene["ask"] = (...words) => scene.ask(...words);

it("explain asks the agent of the pod's node", async () => {
  const isReady = async () => (await scene.world.node("n1").agent.request("/v1/health")).status === 200;
  await expect.poll(isReady, { timeout: 20_000 }).toBe(true);
  const pod = await scene.world.createPod({ name: "web-0", node: "n1" });
  const { exitCode, stdout, stderr } = await scene.berth("explain", "web-0", "-n", "shop");
  expect([exitCode, stderr], stdout).toEqual([0, ""]);
  expect(stdout).toMatch(/pool "blue": fits, 25\d of 254 addresses are free\n/);
  expect(stdout).toMatch(/an ADD of eth0 now would get 10\.6\.0\.\d+ of pool "blue"/);
  expect((await scene.world.node("n1").runtime.attach(pod)).attempts).toBe(1);
  const none = await scene.berth("explain", "none", "-n", "shop");
  expect([none.exitCode, none.stdout]).toEqual([
    1,
    expect.stringContaining("with code 103: Pod shop/none is unknown: the"),
  ]);
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

it("status ends with 1 while an agent is not ready", async () => {
  const counts = { desiredNumberScheduled: 2, currentNumberScheduled: 1, numberMisscheduled: 0, numberReady: 1 };
  const status = { ...counts, observedGeneration: 1, updatedNumberScheduled: 1 };
  await scene.world.client.patch(`${DAEMON_SETS}/berth-agent/status`, { status });
  const { out, ...ending } = await ask("status", "--wait", "1");
  expect(ending).toEqual({ code: 1, error: "Not ready after 1 s\n" });
  for (const pattern of [
    /^agents +1 of 2 ready, 1 of the newest revision\n/,
    /\ncontrollers +1 of 1 ready, one leads\nversions +API server v1\..*, agent 1\.2\.3 \(1\), controller/,
    /\npools +1 .*\n {2}blue: \d of 254 used, <1%\n/,
  ])
    expect(out).toMatch(pattern);
});

const HOLDER = { namespace: "shop", pod: "lost-0", podUid: "u-lost", ifName: "eth0", node: "n9" };

const history = (...words: string[]) => ask("history", ...words);

it("history has the controller's work on the addresses of a node that is gone, and their former holders", async () => {
  await scene.world.allocate("10.6.0.50", { node: "n9", holders: [HOLDER] });
  await scene.world.allocate("10.6.0.60", { node: "n9", state: "Cooling", holders: [] });
  // The controller may have quarantined addresses of earlier tests.
  const lines = (audit: string, address: string) =>
    scene.controller
      .output()
      .split("\n")
      .filter((line) => line.includes(`"audit":"${audit}"`) && line.includes(address));
  await until("10.6.0.50 is quarantined", () => lines("QUARANTINE", "10.6.0.50").length > 0);
  await until("10.6.0.60 is released", () => lines("RELEASE", "10.6.0.60").length > 0);
  expect([await scene.world.stateOf("10.6.0.50"), await scene.world.stateOf("10.6.0.60")]).toEqual([
    "Quarantined n9",
    "free",
  ]);
  const [lost, cooled] = [await history("10.6.0.50"), await history("10.6.0.60")];
  expect(lost.out).toMatch(
    /# controller\nTIME +EVENT .*\n\S+ +QUARANTINE +shop\/lost-0 +eth0 +10\.6\.0\.50 +blue +- +its pod and its node are gone/,
  );
  expect(cooled.out).toMatch(/RELEASE +- +- +10\.6\.0\.60 +blue +- +its cooldown is over, and its node is gone\n/);
  expect([lost.code, cooled.code]).toEqual([0, 0]);
  expect((await history("shop/lost-0", "-o", "wide")).out).toMatch(/QUARANTINE +shop\/lost-0 .* n9 /);
  const document = await history("shop/lost-0", "-o", "json");
  expect(JSON.parse(document.out)).toMatchObject([{ audit: "QUARANTINE", node: "n9" }]);
  expect((await history("10.6.0.50", "--until", "2026-01-01T00:00:00Z")).out).not.toContain("QUARANTINE");
});
