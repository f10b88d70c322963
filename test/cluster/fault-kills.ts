/** Kills an agent at its nth effect, by the fault seam, and checks the invariants afterwards. */
import { expect } from "vitest";
import type { LabNode, World } from "../lab/cluster/world.ts";
import { endPod, expectOwned, pause, report } from "./fault-questions.ts";

/**
 * More than the effects of an ADD, a DEL and the agent's own work meanwhile, which is more where they take longer: the
 * walk must end before.
 */
const MOST_EFFECTS = 100;

/** Starts the agent again with a fault plan, or none. False: the plan killed it before it answered. */
export async function restart({ agent }: LabNode, fault?: string): Promise<boolean> {
  await agent.kill("SIGKILL");
  if (fault === undefined) {
    await agent.start();
    return true;
  }
  process.env.BERTH_FAULT = fault;
  try {
    return await agent.start().then(
      () => true,
      () => false,
    );
  } finally {
    delete process.env.BERTH_FAULT;
  }
}

/** Whether the agent is dead, at once or within that time. */
export async function died({ agent }: LabNode, limitMs = 60_000): Promise<boolean> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const isAlive = await agent.request("/v1/health").then(
      () => true,
      () => false,
    );
    if (!isAlive) return true;
    if (performance.now() > deadline) return false;
    await pause(20);
  }
}

/**
 * Effect 1, 1 + step, … of an agent that starts, adds and deletes, until there is no such effect. Gives how many
 * kills there were.
 */
export async function killAtEffects(world: World, name: string, step: number): Promise<number> {
  const node = world.node(name);
  let kills = 0;
  for (let number = 1; ; number += step) {
    expect(number).toBeLessThan(MOST_EFFECTS);
    if (!(await killAt(world, node, number))) break;
    kills++;
  }
  report("effects of ADD and DEL", { kills, step });
  await restart(node);
  return kills;
}

/** A pod comes and goes, and the agent dies at that effect. False: it has fewer. */
async function killAt(world: World, node: LabNode, number: number): Promise<boolean> {
  const isStarted = await restart(node, `kill@${number}`);
  if (!isStarted) await restart(node);
  const pod = await world.createPod({ name: `killed-${number}`, node: node.name });
  const attaching = node.runtime.attach(pod);
  const isKilled = isStarted && (await Promise.race([died(node), attaching.then(() => false)]));
  if (isKilled) await restart(node);
  expect((await attaching).addresses, `kill@${number}`).toHaveLength(1);
  await world.setRunning(pod);
  await expectOwned(world, pod);
  const ending = endPod(world, pod);
  const isKilledLate = isStarted && !isKilled && (await Promise.race([died(node), ending.then(() => died(node, 300))]));
  if (isKilledLate) await restart(node);
  await ending;
  // A DEL's work for later has effects, too, and nothing becomes clean while the agent is dead.
  const cleaning = world.untilClean().then(() => false);
  const isKilledLast = isStarted && !isKilled && !isKilledLate && (await Promise.race([died(node), cleaning]));
  if (isKilledLast) {
    cleaning.catch(() => {});
    await restart(node);
    await world.untilClean();
  } else await cleaning;
  return !isStarted || isKilled || isKilledLate || isKilledLast;
}
