import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ChainNode, dumpNetns, ENTRY, expectNetns, MACVLAN, makeChainNode } from "../lab/netns/coordinator.ts";
import type { LabPod } from "../lab/netns/world.ts";
import { eventually } from "../lab/waiting.ts";

const NETWORK = `cd${process.pid}`;
/** The NIC without the coordinator, which is then called by itself. */
const PLAIN = `${NETWORK}-plain`;
/** Points at which an ADD is cut, in percent of its operations. */
const PLACES = [0, 10, 40, 70, 100];
const AT_ONCE = 8;

let node: ChainNode;
/** After a first pod came and went. */
let start: readonly string[];
/** Number of operations of a pod's ADD, by the coordinator's log. */
let operations: number;

beforeAll(async () => {
  node = await makeChainNode("cd");
  await node.define(NETWORK, [MACVLAN, ENTRY]);
  await node.define(PLAIN, [MACVLAN]);
  for (const name of ["first", "second"]) {
    await node.withPod(name, async (pod) => {
      await pod.attach(NETWORK);
      operations = await countOperations(pod);
      await pod.detach(NETWORK);
    });
  }
  start = await node.dump();
  expect(operations).toBeGreaterThan(10);
});

async function countOperations({ containerId }: LabPod): Promise<number> {
  const find = (log: string): string[] =>
    log.split("\n").filter((line) => line.includes(containerId) && line.includes('"msg":"Attached"'));
  const file = join(node.agent.logDir, "coordinator.log");
  const text = await eventually(
    () => readFile(file, "utf8"),
    (log) => find(log).length > 0,
  );
  return Number(/"operations":(\d+)/.exec(find(text)[0] ?? "")?.[1]);
}

const operationAt = (percent: number): number => 1 + Math.floor(((operations - 1) * percent) / 100);

afterAll(() => node.delete());

const coordinate = (pod: LabPod, command: "ADD" | "CHECK" | "DEL") => pod.coordinate(command, PLAIN, { entry: ENTRY });

async function succeed(pod: LabPod, command: "ADD" | "CHECK" | "DEL"): Promise<void> {
  const outcome = await coordinate(pod, command);
  expect(outcome.exitCode, `${command}: ${outcome.text}`).toBe(0);
}

async function expectNoneBound(): Promise<void> {
  const allocations: { state: string }[] = await node.agent.get("/v1/allocations");
  expect(allocations.filter(({ state }) => state === "Bound")).toEqual([]);
}

/** DEL of the coordinator and of the main plugin, as a runtime does it for the whole chain. */
async function detach(pod: LabPod): Promise<void> {
  await succeed(pod, "DEL");
  await pod.detach(PLAIN);
  await node.expectState(start);
}

describe("the agent killed during the coordinator's ADD", () => {
  it.each(PLACES.map((percent, index) => [percent, index % 2 === 0] as const))(
    "at %i percent of its operations, with a repeated ADD: %s; DEL leaves pod and node as they were",
    (percent, isRepeated) =>
      node.withPod(`kill${percent}`, async (pod) => {
        await pod.attach(PLAIN);
        const inside = await dumpNetns(pod.netns);
        await node.agent.restart(`kill@${operationAt(percent)}:kernel.apply`);
        const cut = await coordinate(pod, "ADD");
        expect([cut.exitCode, cut.stdout?.code]).toEqual([1, 11]);
        await node.agent.restart();
        expect((await coordinate(pod, "CHECK")).stdout?.code).toBe(106);
        if (isRepeated) {
          await succeed(pod, "ADD");
          await succeed(pod, "CHECK");
        }
        await succeed(pod, "DEL");
        await expectNetns(pod.netns, inside);
        await detach(pod);
      }),
  );
});

describe("the agent killed during the coordinator's DEL", () => {
  it("the DEL is written down and carried out at the next start", () =>
    node.withPod("del", async (pod) => {
      await pod.attach(PLAIN);
      await succeed(pod, "ADD");
      await node.agent.restart("kill@1:kernel.apply");
      await succeed(pod, "DEL");
      await pod.detach(PLAIN);
      await node.agent.restart();
      await node.expectState(start);
      await expectNoneBound();
    }));
});

describe("the agent killed after the coordinator's DEL", () => {
  it("the next one deletes the pair that it left, and cleans the pod, whose namespace stays", () =>
    node.withPod("left", async (pod) => {
      await pod.attach(PLAIN);
      const inside = await dumpNetns(pod.netns);
      await succeed(pod, "ADD");
      await succeed(pod, "DEL");
      await node.agent.kill("SIGKILL");
      await node.agent.start();
      await expectNetns(pod.netns, inside);
      await pod.detach(PLAIN);
      await node.expectState(start);
      await expectNoneBound();
    }));
});

describe("no agent runs", () => {
  it("a DEL of the whole chain is written down and carried out at the next start", () =>
    node.withPod("spool", async (pod) => {
      await pod.attach(NETWORK);
      const address = pod.address(4);
      await node.agent.kill("SIGKILL");
      await pod.detach(NETWORK);
      expect(await node.netns.ip("route show table 500")).toContain(address);
      await node.agent.start();
      await node.expectState(start);
      await expectNoneBound();
    }));

  it("so is one whose pod's namespace is gone by then", () =>
    node.withPod("both", async (pod) => {
      await pod.attach(NETWORK);
      await node.agent.kill("SIGKILL");
      await pod.detach(NETWORK);
      await pod.netns.delete();
      await node.agent.start();
      await node.expectState(start);
      await expectNoneBound();
    }));

  it("an ADD of the chain is refused, and its DEL leaves nothing", () =>
    node.withPod("none", async (pod) => {
      await node.agent.kill("SIGKILL");
      const outcome = await pod.call("add", NETWORK);
      expect([outcome.exitCode, outcome.stderr]).toEqual([1, expect.stringContaining("agent.sock")]);
      await pod.detach(NETWORK);
      await node.agent.start();
      await node.expectState(start);
      await expectNoneBound();
    }));
});

describe(`the agent killed while ${AT_ONCE} chains are attached`, () => {
  it("ADDs that succeeded stand, DEL of all of them leaves nothing", async () => {
    const pods: LabPod[] = [];
    for (let index = 0; index < AT_ONCE; index++) pods.push(await node.addPod(node, `storm-${index}`));
    await node.agent.restart(`kill@15:kernel.apply`);
    const outcomes = await Promise.all(pods.map((pod) => pod.call("add", NETWORK)));
    await node.agent.restart();
    const added = pods.filter((_, index) => outcomes[index]?.exitCode === 0);
    expect(added.length).toBeLessThan(AT_ONCE);
    for (const pod of added) await pod.check(NETWORK);
    await Promise.all(pods.map((pod) => pod.detach(NETWORK)));
    await node.expectState(start);
    await expectNoneBound();
    await Promise.all(pods.map((pod) => pod.attach(NETWORK)));
    await Promise.all(pods.map((pod) => pod.detach(NETWORK)));
    for (const pod of pods) await pod.netns.delete();
    await node.expectState(start);
  });
});

it("nothing that was written down waits or was rejected", async () => {
  const ask = async () => (await node.agent.get("/v1/health")).spool;
  expect(await eventually(ask, ({ waiting }) => waiting === 0)).toEqual({ waiting: 0, rejected: 0 });
});
