/** One walk: what the kubelets do, at random, and what has to be true in the end. */
import { formatIp } from "../../../host/net/ip.ts";
import { parseAllocationName } from "../../../host/resources/ip-allocation.ts";
import { openDisk } from "../../fakes/memory-journal.ts";
import { Seeded } from "../../world/seeded.ts";
import { claimAddresses, MEMBERS } from "./walk-claim.ts";
import { COOLDOWN_MS, flush, type Live, Nodes, type WalkNode, type WalkPod } from "./walk-nodes.ts";

export interface WalkOptions {
  readonly seed: number;
  readonly steps: number;
  /** Share of the calls whose answer is lost. */
  readonly faultShare: number;
  readonly log?: boolean;
}

class Walk {
  readonly world: Nodes;
  readonly random: Seeded;
  readonly options: WalkOptions;

  constructor(options: WalkOptions) {
    this.options = options;
    this.random = new Seeded(options.seed);
    const poolSize = this.random.chance(0.5) ? 256 : 1_000;
    const cooldownMs = this.random.chance(0.15) ? 0 : COOLDOWN_MS;
    this.world = new Nodes(this.random, { nodes: 2 + this.random.below(2), poolSize, cooldownMs });
  }

  async run(): Promise<readonly string[]> {
    const { world, options } = this;
    for (const node of world.nodes) await world.start(node);
    for (let step = 0; step < options.steps && world.problems.length === 0; step++) {
      await this.step();
      await flush();
      world.check();
    }
    if (world.problems.length === 0) await this.end();
    for (const node of world.nodes) world.crash(node);
    return world.problems;
  }

  async step(): Promise<void> {
    const { world, random } = this;
    const node = random.pick(world.nodes);
    const dice = random.below(100);
    if (dice < 45 && world.calls.all.length > 0) return world.calls.step(random, this.options.faultShare);
    if (dice < 58) return this.deliverSome();
    if (dice < 67) return this.add(random.pick(world.nodes));
    if (dice < 73) return this.del();
    if (dice < 76) return this.podEnds();
    if (dice < 78) return this.hangUp();
    if (dice < 84) return world.advance(random.pick([10, 500, 2_100, 2_100, 2_100, 6_000, 31_000]));
    if (dice < 88) return void node.agent?.registry.expire().catch(() => {});
    if (dice < 91) return void node.agent?.reconciler.reconcile().catch(() => {});
    if (dice < 94) return void this.collect(node);
    if (dice < 95) return this.crash(node);
    if (node.agent === undefined) await this.restart(node);
    else world.calls.step(random, this.options.faultShare);
  }

  deliverSome(): void {
    const node = this.random.pick(this.world.nodes);
    for (let left = this.random.below(4); left > 0; left--) this.world.deliver(node);
  }

  crash(node: WalkNode): void {
    const { world, random } = this;
    world.crash(node);
    const chance = random.below(10);
    if (chance === 1) {
      world.note(`${node.name} loses its disk`);
      node.disk = openDisk();
    }
    if (chance === 0) {
      world.note(`${node.name} boots`);
      node.boot++;
      for (const each of world.live) if (each.pod.node === node.name) world.live.delete(each);
    }
  }

  async restart(node: WalkNode): Promise<void> {
    await this.world.start(node);
    this.drain(node);
  }

  drain(node: WalkNode): void {
    for (const attachment of node.spool.splice(0)) this.release(node, attachment);
  }

  release(node: WalkNode, attachment: { containerId: string; ifName: string }): void {
    const { agent } = node;
    if (agent === undefined) {
      node.spool.push(attachment);
      return;
    }
    agent.registry.release(attachment).catch(() => node.spool.push(attachment));
  }

  add(node: WalkNode): void {
    const { world, random } = this;
    const { agent } = node;
    if (agent === undefined) return;
    const idle = world.pods.filter(
      (pod) => pod.node === node.name && !pod.isGone && pod.adding === undefined && !this.isLive(pod),
    );
    const isNew = idle.length === 0 || random.chance(0.4);
    const pod = isNew ? this.createPod(node) : random.pick(idle);
    if (pod === undefined || pod.adding !== undefined) return;
    const controller = new AbortController();
    pod.adding = controller;
    const containerId = world.next("c");
    world.note(`${node.name} ADD ${pod.name} (${pod.uid}) ${containerId}`);
    const isCurrent = (): boolean => pod.adding === controller;
    const done = agent.reconciler
      .reconciled()
      .then(() => claimAddresses(world, node, { pod, containerId, signal: controller.signal }));
    done.then(
      (addresses) => {
        if (!isCurrent()) return;
        pod.adding = undefined;
        world.note(`${node.name} ADD ${pod.uid} ${containerId} has ${addresses.join(" and ")}`);
        if (controller.signal.aborted) return this.release(node, { containerId, ifName: "eth0" });
        if (pod.sides.some((side) => !addresses.some((address) => sideOf(address) === side)))
          world.problems.push(
            `${pod.uid} ${containerId} wants ${pod.sides} and was answered ${addresses.join(" and ")}`,
          );
        for (const address of addresses) world.live.add({ pod, containerId, address });
      },
      (error: unknown) => {
        if (!isCurrent()) return;
        pod.adding = undefined;
        world.note(`${node.name} ADD ${pod.uid} ${containerId} failed: ${error}`);
        this.release(node, { containerId, ifName: "eth0" });
      },
    );
  }

  isLive(pod: WalkPod): boolean {
    return [...this.world.live].some((each) => each.pod === pod);
  }

  createPod(node: WalkNode): WalkPod | undefined {
    const { world, random } = this;
    const uid = world.next("p");
    const member = random.chance(0.4) ? random.pick(MEMBERS) : undefined;
    if (member !== undefined && world.pods.some((pod) => pod.name === member && !pod.isGone)) return undefined;
    if (world.pods.filter((pod) => !pod.isGone).length > 6) return undefined;
    const workload = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w", member: member ?? "" };
    const pod: WalkPod = {
      name: member ?? uid,
      uid,
      node: node.name,
      isGone: false,
      sides: random.pick([[4], [6], [4, 6]] as const),
      ...(member === undefined ? {} : { workload }),
    };
    world.pods.push(pod);
    return pod;
  }

  nodeOf(pod: WalkPod): WalkNode {
    const found = this.world.nodes.find(({ name }) => name === pod.node);
    if (found === undefined) throw new Error(pod.node);
    return found;
  }

  detach(live: Live): void {
    const { pod, containerId } = live;
    this.world.note(`${pod.node} DEL ${pod.uid} ${containerId} (${live.address})`);
    for (const each of this.world.live) if (each.containerId === containerId) this.world.live.delete(each);
    this.release(this.nodeOf(pod), { containerId, ifName: "eth0" });
  }

  del(): void {
    const { world, random } = this;
    if (world.live.size > 0) this.detach(random.pick([...world.live]));
  }

  podEnds(): void {
    const { world, random } = this;
    const ended = world.pods.filter((pod) => !pod.isGone && pod.adding === undefined && !this.isLive(pod));
    if (ended.length === 0) return;
    const pod = random.pick(ended);
    world.note(`pod ${pod.uid} is gone`);
    pod.isGone = true;
  }

  hangUp(): void {
    const adding = this.world.pods.filter((pod) => pod.adding !== undefined);
    if (adding.length > 0) this.random.pick(adding).adding?.abort(new Error("the caller hung up"));
  }

  async collect(node: WalkNode): Promise<void> {
    const { agent } = node;
    if (agent === undefined) return;
    const rows = await agent.registry.list(undefined, 100);
    for (const row of rows) {
      if (row.state === "Bound" && row.containerId !== "" && this.world.isGone(row.owner))
        await agent.registry.collect(row);
    }
  }

  /** All faults end, all pods go: only addresses retained for a member may be left. */
  async end(): Promise<void> {
    const { world } = this;
    world.note("-- calm");
    world.calls.finish();
    world.isCalm = true;
    await flush();
    for (const node of world.nodes) if (node.agent === undefined) await this.restart(node);
    for (let round = 0; round < 3; round++) await this.round();
    world.check();
    for (const live of world.live) this.detach(live);
    await flush();
    for (const pod of world.pods) pod.isGone = true;
    for (let round = 0; round < 24; round++) await this.round();
    for (const { metadata, spec } of world.server.objects.values()) {
      if (spec.state !== "Kept")
        world.problems.push(`${metadata.name} is left ${spec.state} ${JSON.stringify(spec.holders)} on ${spec.node}`);
    }
    for (const { name, agent } of world.nodes) {
      for (const row of (await agent?.registry.list(undefined, 100)) ?? []) {
        world.problems.push(`${name} has a row ${formatIp(row.ip)} ${row.state} of ${row.owner} in the end`);
      }
      if (agent?.registry.size.backlog !== 0)
        world.problems.push(`${name} has a backlog of ${agent?.registry.size.backlog}`);
    }
  }

  async round(): Promise<void> {
    const { world } = this;
    await world.advance(15_000);
    for (const node of world.nodes) {
      while (node.notices.length > 0) world.deliver(node);
      await flush();
      await this.collect(node);
      await node.agent?.registry.expire();
      await node.agent?.reconciler.reconcile().catch(() => {});
      await node.agent?.registry.idle();
      await flush();
    }
  }
}

function sideOf(name: string): 4 | 6 | undefined {
  return parseAllocationName(name)?.ip.family;
}

export async function walk(options: WalkOptions): Promise<{ problems: readonly string[]; log: readonly string[] }> {
  const one = new Walk(options);
  const problems = await one.run();
  return { problems, log: one.world.log };
}
