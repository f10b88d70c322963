/**
 * A world of scale with Subnets: the built controller leads, and every write to pools and Subnets is checked beside those to addresses.
 *
 *   await using world = await openSubnetWorld({ nodes: 20, hasNetwork: true, pools: {}, subnets: { lan: { subnet: "10.64.0.0/16" } } });
 *   const { seconds, controllerMs } = await measureCost(world, async () => { … });
 *   expect(world.breaches()).toEqual([]);
 */
import type { IpPool } from "../../../host/resources/ip-pool.ts";
import { type ControllerProcess, startControllerProcess } from "../cluster/controller-process.ts";
import { until } from "../cluster/objects.ts";
import { type ApiUse, sumUse, useSince } from "../cluster/watched-api.ts";
import { followPools, type PoolHistory } from "../history/follow-pools.ts";
import { daemonCpuMs } from "../statistics.ts";
import { readServerUse, type ServerUse, serverUseSince } from "./server-use.ts";
import { openWorld, type World, type WorldOptions } from "./world.ts";

export interface SubnetWorld extends World {
  readonly pools: PoolHistory;
  readonly controller: ControllerProcess;
  /** Waits until the generated pools are as wanted, and gives them; throws what is there after `patienceMs`. */
  untilPools(isWanted: (pools: readonly IpPool[]) => boolean, patienceMs: number): Promise<readonly IpPool[]>;
  /** Of both histories, up to now. */
  breaches(): Promise<readonly string[]>;
}

/** The cost of an action for agents, controller and API server. */
export interface Cost {
  readonly seconds: number;
  /** Processor time of the controller. */
  readonly controllerMs: number;
  /** Of API server and etcd. */
  readonly serverMs: number;
  /** Of this process: all agents, and the test. */
  readonly ownMs: number;
  /** What the API server was asked, by whomever. */
  readonly server: ServerUse;
  /** What the agents asked, and what their watches brought. */
  readonly agents: ApiUse;
  /** Bytes of Subnets that were written: the status has a line for each pool. */
  readonly subnetBytes: number;
}

const LEADING_MS = 30_000;

/** Resolves when the controller leads. */
export async function openSubnetWorld(options: WorldOptions): Promise<SubnetWorld> {
  const stack = new AsyncDisposableStack();
  try {
    const world = stack.use(await openWorld(options));
    const pools = await followPools(world.plane.etcdUrl);
    stack.defer(() => pools.close());
    const controller = await startControllerProcess({ kubeconfig: world.plane.kubeconfig, name: "scale" });
    stack.defer(() => controller.kill());
    const isLeading = async (): Promise<boolean> => (await controller.status()).isLeading;
    await until(() => `the controller leads:\n${controller.output()}`, isLeading, LEADING_MS);
    const generated = (): IpPool[] =>
      [...pools.checker.pools.values()].filter(({ spec }) => spec.generated !== undefined);
    return {
      ...{ ...world, pools, controller },
      untilPools: async (isWanted, limitMs) => {
        const isSo = async (): Promise<boolean> => {
          await pools.caughtUp();
          return isWanted(generated());
        };
        await until(() => `the pools are as wanted:\n${generated().map(describePool).join("\n")}`, isSo, limitMs);
        return generated();
      },
      breaches: async () => {
        await Promise.all([pools.caughtUp(), world.history.caughtUp()]);
        return [...pools.checker.breaches, ...world.history.checker.breaches];
      },
      [Symbol.asyncDispose]: () => stack.disposeAsync(),
    };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

export async function measureCost(world: SubnetWorld, work: () => Promise<unknown>): Promise<Cost> {
  const { plane, pools, controller } = world;
  await pools.caughtUp();
  const subnetBytes = (): number => pools.writes.get("subnets")?.bytes ?? 0;
  const cpuMs = () => ({
    controller: daemonCpuMs(controller.pid),
    server: plane.pids.reduce((sum, pid) => sum + daemonCpuMs(pid), 0),
    own: (process.cpuUsage().user + process.cpuUsage().system) / 1000,
  });
  const server = await readServerUse(plane.client);
  const [agents, bytes, cpu] = [sumUse([world.use()]), subnetBytes(), cpuMs()];
  const startMs = performance.now();
  await work();
  const seconds = (performance.now() - startMs) / 1000;
  const now = cpuMs();
  await pools.caughtUp();
  return {
    ...{ seconds, subnetBytes: subnetBytes() - bytes },
    ...{ controllerMs: now.controller - cpu.controller, serverMs: now.server - cpu.server, ownMs: now.own - cpu.own },
    server: serverUseSince(await readServerUse(plane.client), server),
    agents: useSince(world.use(), agents),
  };
}

/** Addresses that its `ips` name. */
export function sizeOf({ spec }: IpPool): number {
  return spec.ranges.reduce((sum, { first, last }) => sum + Number(last.value - first.value) + 1, 0);
}

/** Whether each has what it is to have. */
export function areComplete(pools: readonly IpPool[]): boolean {
  return pools.every((pool) => sizeOf(pool) === pool.spec.generated?.wanted);
}

function describePool(pool: IpPool): string {
  const { generated } = pool.spec;
  return `${pool.name}: ${sizeOf(pool)} of ${generated?.wanted} (${generated?.reason})`;
}
