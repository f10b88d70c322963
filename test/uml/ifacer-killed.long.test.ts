/** An agent that is killed while addresses move to a bond: the next one restores the node before it serves requests. */

import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { type Agent, startAgent } from "../lab/agent.ts";
import { runPlugin } from "../lab/cnitool.ts";
import { ipPool } from "../lab/manifests.ts";
import { NetnsWorld } from "../lab/netns/world.ts";
import { addVeth, type Netns } from "../lab/netns.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";

const CONFIG = { "pool.yaml": ipPool("trunk", "10.66.0.0/24", { default: true }) };
const CONF = {
  ...{ cniVersion: "1.0.0", name: "trunk", type: "ifacer", interfaces: ["e0", "e1"], takeOver: true },
  bond: { name: "b0", mode: 1, options: "miimon=100" },
};

const world = new NetnsWorld("uik");
let node: Netns;
let other: Netns;
const stateDir = temporaryDirectory("uik-");

beforeAll(async () => {
  [node, other] = [await world.addNetns("node"), await world.addNetns("other")];
  for (const name of ["e0", "e1"]) await addVeth({ netns: node, name }, { netns: other, name });
  await other.ip("addr add 10.9.0.254/24 dev e0");
  await node.ip("addr add 10.9.0.1/24 dev e0");
  await node.ip("route add default via 10.9.0.254 metric 30");
});

afterAll(async () => {
  await world.delete();
});

const start = (fault?: string): Promise<Agent> =>
  startAgent({ config: CONFIG, node, stateDir, env: { BERTH_FAULT: fault } });

const add = (agent: Agent) =>
  runPlugin({
    ...{ plugin: "ifacer", command: "ADD", containerId: "c1", netns: other.path, ifName: "net1", node },
    ...{ stdin: CONF, env: { ...agent.env, BERTH_CONNECT_WAIT: "1" } },
  });

const carried = async (): Promise<string> =>
  `${await node.ip("-4 -o addr show scope global")}${await node.ip("-4 route show")}`.replaceAll(/ +/g, " ");

async function isTakenBack(agent: Agent, before: string): Promise<void> {
  expect(await carried(), "served by the next agent").toBe(before);
  expect(await node.ip("-o link show type bond")).toBe("");
  expect(agent.stderr()).toContain("An agent ended while it was moving addresses to a bond; the move was undone");
}

it("an ADD that was cut off is taken back by the next agent, and the ADD after it moves everything", async () => {
  const before = await carried();
  expect(before).toMatch(/e0.*10\.9\.0\.1\/24[\s\S]*default via 10\.9\.0\.254 dev e0/);
  // Each agent but the first undoes the work that the one before began, and each but the last is killed in its turn.
  for (const number of [6, 10]) {
    const killed = await start(`kill@${number}:kernel.apply`);
    try {
      if (number > 6) await isTakenBack(killed, before);
      expect((await add(killed)).exitCode).toBe(1);
    } finally {
      await killed.delete();
    }
    expect(await carried(), `killed at ${number}`).not.toBe(before);
  }
  const agent = await start();
  onTestFinished(() => agent.delete());
  await isTakenBack(agent, before);
  const outcome = await add(agent);
  expect(outcome.exitCode, outcome.text).toBe(0);
  expect(await carried()).toMatch(/b0.*10\.9\.0\.1\/24[\s\S]*default via 10\.9\.0\.254 dev b0/);
});
