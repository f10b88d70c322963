/** ADDs without a pause while the agent is stopped and started again, as an upgrade does it on a busy node. */
import type { NetnsWorld } from "../lab/netns/world.ts";

export interface Storm {
  readonly restarts: number;
  /** Callers at any time. */
  readonly atOnce: number;
  /** ADDs after each restart, before the next one; and the callers go on while the agent is away. */
  readonly addsBetween: number;
}

export interface StormOutcome {
  readonly adds: number;
  readonly addresses: number;
  /** Output of the ADDs that were lost. */
  readonly lost: readonly string[];
}

export async function restartUnderLoad(
  world: NetnsWorld,
  { restarts, atOnce, addsBetween }: Storm,
): Promise<StormOutcome> {
  const [addresses, lost] = [new Set<string>(), [] as string[]];
  let [adds, isOver] = [0, false];
  let restarted = Promise.withResolvers<void>();
  const env = { ...world.agent.env, BERTH_CONNECT_WAIT: "60" };
  const callers = Array.from({ length: atOnce }, async () => {
    while (!isOver) {
      const { exitCode, stdout, text } = await world.call("ADD", `c${++adds}`, { env });
      if (exitCode === 0) addresses.add(stdout.ips[0].address);
      else lost.push(text);
      restarted.resolve();
    }
  });
  for (let restart = 0; restart < restarts; restart++) {
    const before = addresses.size;
    while (addresses.size + lost.length < before + addsBetween) {
      restarted = Promise.withResolvers();
      await restarted.promise;
    }
    await world.agent.stop();
    await world.agent.start();
  }
  isOver = true;
  await Promise.all(callers);
  return { adds, addresses: addresses.size, lost };
}
