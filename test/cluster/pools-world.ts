/**
 * Pools, other objects and allocations on a real API server, for the tests of what the controller says about them: with the account and the policies
 * of deploy/.
 */

import { expect } from "vitest";
import type { ControllerDeps, PoolOwners, StartController } from "../../host/controller/types.ts";
import { parseIp } from "../../host/net/ip.ts";
import {
  allocationLabels,
  allocationName,
  encodeIpAllocation,
  type IpAllocationSpec,
} from "../../host/resources/ip-allocation.ts";
import { type LabController, startParts } from "../../scripts/lab/cluster/controller.ts";
import { writeControllerKubeconfig } from "../../scripts/lab/cluster/in-process.ts";
import { forceDelete } from "../../scripts/lab/cluster/rights.ts";
import type { ControlPlane } from "../../scripts/lab/control-plane.ts";
import { borrowPlane } from "./borrow-plane.ts";
import { ALLOCATIONS, WatchedApi } from "./registry-world.ts";

export const BERTH = "/apis/ipam.vendor.io/v1";
export const POOLS = `${BERTH}/ippools`;

/** `api` tells what the parts asked and wrote, and is a place to stand between. */
export type WatchedController = LabController & { readonly api: WatchedApi };

export class PoolsWorld {
  readonly plane: ControlPlane;
  readonly #kubeconfig: string;
  readonly #running: LabController[] = [];

  private constructor(plane: ControlPlane, kubeconfig: string) {
    this.plane = plane;
    this.#kubeconfig = kubeconfig;
  }

  static async start(): Promise<PoolsWorld> {
    const plane = await borrowPlane();
    return new PoolsWorld(plane, await writeControllerKubeconfig(plane));
  }

  async lead(
    parts: Readonly<Record<string, StartController>>,
    options: {
      prepare?: (api: WatchedApi) => void;
      events?: ControllerDeps["events"];
      poolOwners?: PoolOwners;
    } = {},
  ): Promise<WatchedController> {
    const bare = await startParts(this.#kubeconfig, {});
    this.#running.push(bare);
    const api = new WatchedApi(bare.client);
    options.prepare?.(api);
    const controller = await startParts(this.#kubeconfig, parts, {
      ...(options.poolOwners === undefined ? {} : { poolOwners: options.poolOwners }),
      deps: { ...(options.events === undefined ? {} : { events: options.events }), api },
    });
    this.#running.unshift(controller);
    return { ...controller, api };
  }

  /** All that lead. */
  async depose(): Promise<void> {
    for (const controller of this.#running.splice(0)) await controller.close();
  }

  async create(kind: string, plural: string, name: string, spec: object, metadata: object = {}): Promise<string> {
    const object = { apiVersion: "ipam.vendor.io/v1", kind, metadata: { ...metadata, name }, spec };
    return (await this.plane.client.create(`${BERTH}/${plural}`, object)).metadata.uid;
  }

  pool(name: string, spec: object, metadata: object = {}): Promise<string> {
    return this.create("IPPool", "ippools", name, spec, metadata);
  }

  /** Undefined when there is none. */
  // biome-ignore lint/suspicious/noExplicitAny: an object as the API server has it
  async read(plural: string, name: string): Promise<any> {
    return this.plane.client.get(`${BERTH}/${plural}/${name}`).catch(() => undefined);
  }

  async allocate(pool: string, address: string, more: Partial<IpAllocationSpec> = {}): Promise<void> {
    const ip = parseIp(address) ?? expect.fail(address);
    const holder = { namespace: "shop", pod: "web-0", podUid: "u-1", ifName: "eth0", node: "n1" };
    const base = {
      ip,
      addressSpace: "",
      prefixLength: 24,
      pool,
      state: "Bound",
      node: "n1",
      holders: [holder],
    } as const;
    const spec: IpAllocationSpec = { ...base, ...more };
    const metadata = { name: allocationName(ip, spec.addressSpace), labels: allocationLabels(spec) };
    await this.plane.client.create(ALLOCATIONS, encodeIpAllocation(spec, metadata));
  }

  async release(address: string): Promise<void> {
    await forceDelete(this.plane.client, address);
  }

  async stop(): Promise<void> {
    await this.depose();
    await this.plane.stop();
  }
}
