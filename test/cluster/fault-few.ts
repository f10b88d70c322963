/**
 * Plain pods and members of a StatefulSet that want the addresses of a pool with fewer, while something is wrong. Some
 * order of all calls has to be legal (history/pool-calls.ts).
 */
import { expect } from "vitest";
import { ErrorCode } from "../../host/cni/error.ts";
import { seededRandom } from "../lab/cluster/api-faults.ts";
import { createWorkload, type LabPod, type OwnerReference } from "../lab/cluster/objects.ts";
import { forceDelete } from "../lab/cluster/rights.ts";
import type { LabNode, World } from "../lab/cluster/world.ts";
import { PoolCalls } from "../lab/history/pool-calls.ts";
import type { KubeObject } from "../lab/kube-client.ts";
import { until } from "../lab/waiting.ts";
import { insist, objectOf, pause } from "./fault-questions.ts";

const POOL = "few";
const ADDRESSES = ["10.7.1.1", "10.7.1.2", "10.7.1.3", "10.7.1.4"];
/** The first of them are members. */
const CLIENTS = 7;
const MEMBERS = 2;

export interface FewOptions {
  readonly seed: number;
  readonly durationMs: number;
  /** The fault that happens meanwhile. */
  readonly disturb: () => Promise<void>;
}

/** Returns how many ADDs were answered, and how many were refused because the pool was exhausted. */
export async function fightForFew(world: World, { seed, durationMs, disturb }: FewOptions) {
  await world.pool(POOL, { subnet: "10.7.1.0/24", ips: ADDRESSES });
  const { namespace: _, ...owner } = await createWorkload(world.client, "StatefulSet", POOL, { replicas: MEMBERS });
  const fight = new Fight(world, owner);
  const endMs = performance.now() + durationMs;
  const clients = Array.from({ length: CLIENTS }, async (_, client) => {
    const random = seededRandom(seed + client);
    while (performance.now() < endMs) await fight.turn(client, random);
  });
  await Promise.all([disturb(), ...clients]);
  await fight.untilReleased();
  // All at once, and each keeps what it gets: members get theirs, and so many others as there are addresses left.
  await Promise.all(Array.from({ length: CLIENTS }, (_, client) => fight.add(client, client % 2)));
  expect(await fight.calls.check()).toBeUndefined();
  await fight.endAll();
  return { answered: fight.answered, exhausted: fight.exhausted };
}

interface Running {
  readonly client: number;
  readonly pod: LabPod;
  readonly address: string;
}

class Fight {
  readonly calls = new PoolCalls(POOL, ADDRESSES);
  answered = 0;
  exhausted = 0;
  readonly #world: World;
  readonly #owner: OwnerReference;
  readonly #running = new Set<Running>();
  readonly #releases: Promise<void>[] = [];
  #pods = 0;

  constructor(world: World, owner: OwnerReference) {
    this.#world = world;
    this.#owner = owner;
  }

  /** A pod comes, stays for a while if it gets an address, and goes. */
  async turn(client: number, random: () => number): Promise<void> {
    const running = await this.add(client, random() < 0.5 ? 0 : 1);
    await pause(300 * random());
    if (running !== undefined) await this.del(running);
  }

  /** One attempt. */
  async add(client: number, node: number): Promise<Running | undefined> {
    const { name, runtime } = this.#world.nodes()[node] as LabNode;
    const pod = await this.#createPod(client, name);
    const containerId = runtime.newContainerId();
    const call = this.calls.add({ client, pod: pod.uid, member: memberOf(client) });
    const { exitCode, stdout } = await runtime.add(pod, containerId);
    if (exitCode === 0) {
      const address: string = stdout.ips[0].address.split("/")[0];
      call.ends({ address });
      this.answered++;
      const running = { client, pod, address };
      this.#running.add(running);
      return running;
    }
    const isExhausted = stdout?.code === ErrorCode.PoolExhausted;
    if (isExhausted) call.ends({ exhausted: true });
    if (isExhausted) this.exhausted++;
    await runtime.del(pod, containerId);
    await insist(() => this.#world.deletePod(pod));
    if (!isExhausted) this.#releases.push(this.#untilReleased(pod).then(() => call.ends()));
    return undefined;
  }

  async del(running: Running): Promise<void> {
    const { client, pod, address } = running;
    this.#running.delete(running);
    const call = this.calls.del({ client, pod: pod.uid, member: memberOf(client) }, address);
    await this.#world.node(pod.node).runtime.detach(pod);
    await insist(() => this.#world.deletePod(pod));
    this.#releases.push(this.#untilReleased(pod).then(() => call.ends()));
  }

  /** No address is the pod's, and what it may have left cooling has cooled. */
  async #untilReleased({ uid }: LabPod): Promise<void> {
    let left = ADDRESSES;
    await until("the addresses of a pod are released", async () => {
      const objects = await this.#world.allocations();
      const isOpen = (address: string): boolean =>
        objects.some(({ spec }) => {
          const isIts = spec.holders?.some(({ podUID }: KubeObject) => podUID === uid);
          return spec.address === address && (isIts || spec.state === "Cooling");
        });
      left = left.filter(isOpen);
      return left.length === 0;
    });
  }

  /** All pods have ended; what is left is Kept. */
  async untilReleased(): Promise<void> {
    const stateOf = async (address: string) => (await objectOf(this.#world, address))?.spec.state ?? "free";
    let states: string[] = [];
    await until(
      () => `all addresses are released: ${states.join(", ")}`,
      async () => {
        states = await Promise.all(ADDRESSES.map(stateOf));
        return states.every((state) => state === "free" || state === "Kept");
      },
    );
    await Promise.all(this.#releases.splice(0));
  }

  async endAll(): Promise<void> {
    await Promise.all([...this.#running].map((running) => this.del(running)));
    await this.untilReleased();
    await this.#world.client.delete(`/apis/apps/v1/namespaces/shop/statefulsets/${POOL}`);
    // No controller frees what is Kept.
    for (const address of ADDRESSES) await forceDelete(this.#world.client, address);
  }

  async #createPod(client: number, node: string): Promise<LabPod> {
    const member = memberOf(client);
    const owner = member === undefined ? {} : { owner: this.#owner };
    const annotations = { ippool: { ipv4: [POOL] } };
    let pod: LabPod | undefined;
    await insist(async () => {
      const name = member ?? `${POOL}-plain-${++this.#pods}`;
      pod = await this.#world.createPod({ name, node, annotations, ...owner });
    });
    if (pod === undefined) throw new Error("A pod could not be made");
    return pod;
  }
}

const memberOf = (client: number): string | undefined => (client < MEMBERS ? `${POOL}-${client}` : undefined);
