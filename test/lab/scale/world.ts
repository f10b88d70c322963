/**
 * A control plane with pools, a fleet of agents, and the history of all addresses: where the scenarios of scale happen.
 *
 *   await using world = await openWorld({ nodes: 50, hasNetwork: false, pools: { scale: "10.128.0.0/16" } });
 */

import type { AgentNode } from "../cluster/agent-node.ts";
import { applyCrds } from "../cluster/crds.ts";
import * as objects from "../cluster/objects.ts";
import { type ApiUse, sumUse } from "../cluster/watched-api.ts";
import { type ControlPlane, startControlPlane } from "../control-plane.ts";
import { followHistory, type History, type HistoryOptions } from "../history/follow.ts";
import type { KubeClient } from "../kube-client.ts";
import { type FleetOptions, openFleet } from "./fleet.ts";
import { NAMESPACE } from "./pods.ts";

export interface WorldOptions extends Pick<FleetOptions, "nodes" | "hasNetwork">, Pick<HistoryOptions, "markEveryMs"> {
  /** IPv4 pools by name: a subnet, of which `ips` are handed out, all of it when absent. The first one is the default pool. */
  readonly pools: Readonly<Record<string, { readonly subnet: string; readonly ips?: string }>>;
  /** Subnets by name. */
  readonly subnets?: Readonly<Record<string, { readonly subnet: string }>>;
  /** Of vendor-conf, added to those that all worlds have. */
  readonly settings?: Readonly<Record<string, unknown>>;
}

export interface World extends AsyncDisposable {
  readonly plane: ControlPlane;
  readonly history: History;
  readonly nodes: readonly AgentNode[];
  /** What all agents together have asked of the API server so far. */
  use(): ApiUse;
  /** Waits until no address has an object; throws with their number after `patienceMs`. */
  empty(patienceMs: number): Promise<void>;
}

/** How long a released address rests, and how soon no other pod may have one. */
const COOLDOWN = "2s";
const MIN_REUSE_MS = 2_000;
const SETTINGS = { enableIPv6: false, allocationCooldown: COOLDOWN };

export async function openWorld(options: WorldOptions): Promise<World> {
  const stack = new AsyncDisposableStack();
  try {
    const plane = await startControlPlane();
    stack.defer(() => plane.stop());
    await applyCrds(plane.client);
    await plane.client.create(objects.NAMESPACES, objects.namespaceObject(NAMESPACE));
    await furnish(plane.client, options);
    const history = await followHistory(plane.etcdUrl, {
      minReuseMs: MIN_REUSE_MS,
      markEveryMs: options.markEveryMs ?? 0,
    });
    stack.defer(() => history.close());
    const fleet = stack.use(await openFleet({ ...options, plane }));
    return {
      ...{ plane, history, nodes: fleet.nodes },
      use: () => sumUse(fleet.nodes.map(({ api }) => api.use)),
      empty: (patienceMs) => waitUntilEmpty(history, patienceMs),
      [Symbol.asyncDispose]: () => stack.disposeAsync(),
    };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

async function furnish(client: KubeClient, { pools, subnets = {}, settings }: WorldOptions): Promise<void> {
  await client.apply(objects.SETTINGS, objects.settingsObject({ ...SETTINGS, ...settings }));
  for (const [name, spec] of Object.entries(subnets))
    await client.create(objects.SUBNETS, objects.berthObject("Subnet", name, spec));
  for (const [index, [name, { subnet, ips }]] of Object.entries(pools).entries()) {
    const spec = { name, subnet, ...(ips === undefined ? {} : { ips: [ips] }), default: index === 0 };
    await client.create(objects.POOLS, objects.poolObject(spec));
  }
}

async function waitUntilEmpty({ caughtUp, checker }: History, limitMs: number): Promise<void> {
  const { objects: left } = checker;
  const isEmpty = async (): Promise<boolean> => {
    await caughtUp();
    return left.size === 0;
  };
  const names = (): string => `${left.size} have, the first is ${left.keys().next().value}`;
  await objects.until(() => `no address has an object; ${names()}`, isEmpty, limitMs);
}
