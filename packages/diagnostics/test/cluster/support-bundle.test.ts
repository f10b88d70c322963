/** `kubectl berth support-bundle` of a real API server, the built agent and controller. */
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { KubectlScene, SECRETS, statusOf } from "../../../../test/cluster/kubectl-scene.ts";
import type { CommandOutcome } from "../../../../test/lab/command.ts";
import { until } from "../../../../test/lab/waiting.ts";
import { unpack } from "../unpack.ts";

const scene = new KubectlScene();

describe("support-bundle", () => {
  let files: Map<string, string>;
  let printed: CommandOutcome;
  beforeAll(async () => {
    await scene.createBerthPod("agent", "berth-agent-2", "n2", statusOf(true, 3));
    await scene.createBerthPod("agent", "berth-agent-3", "n3", statusOf(false));
    await scene.createBerthPod("agent", "berth-agent-4", "n4", statusOf(true));
    const holder = { namespace: "shop", pod: "lost-0", podUid: "u-lost", ifName: "eth0", node: "n9" };
    await scene.world.allocate("10.6.0.50", { node: "n9", holders: [holder] });
    const events = async () => JSON.stringify(await scene.world.client.get("/api/v1/events"));
    await until("the controller has quarantined an address", async () => (await events()).includes("NodeLost"));
    printed = await scene.berth("support-bundle", "--file", "b.tar.gz", "--timeout", "10");
    files = await unpack(join(scene.home, "b.tar.gz"));
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
    expect((await scene.berth("--node", "n1", "support-bundle", "--file", "n1.tar.gz")).exitCode).toBe(0);
    const own = [...(await unpack(join(scene.home, "n1.tar.gz"))).keys()].filter((name) => name.startsWith("nodes/"));
    expect(new Set(own.map((name) => name.split("/")[1]))).toEqual(new Set(["n1"]));
    const { code, error } = await scene.ask("--node", "n7", "support-bundle");
    expect([code, error]).toEqual([3, expect.stringContaining('No agent is on node "n7"')]);
  });
});

// biome-ignore lint/suspicious/noExplicitAny: tests look into records by name.
type AnyRecord = Record<string, any>;
