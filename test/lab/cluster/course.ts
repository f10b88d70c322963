/**
 * A fixed course of ordinary life and trouble, some 40 seconds, for observers of a world: plain pods come and go,
 * some of them in a pool that is nearly full, a member moves, pods are deleted by force, a DEL is lost, agents are
 * killed, a node is cut off, a journal is lost and another one put back, a record is deleted by hand, and a machine
 * migrates. What a call comes to is not checked: a pod that is refused is left out.
 */
import { randomUUID } from "node:crypto";
import { cp, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Attachment } from "./ledger.ts";
import type { LabPod, PodSpec } from "./objects.ts";
import { forceDelete } from "./rights.ts";
import type { AttachOptions } from "./runtime.ts";
import { INSTANCES, instance, MACHINES, machine, SETS, statefulSet } from "./workload-kinds.ts";
import type { LabNode, World } from "./world.ts";

/** Options of the course's world. The pool `few` has fewer addresses than pods that want one. */
export const COURSE = {
  nodes: ["n1", "n2", "n3", "n4"],
  pools: [
    { name: "blue", subnet: "10.6.0.0/24", ips: ["10.6.0.1-10.6.0.60"] },
    { name: "few", subnet: "10.7.0.0/24", ips: ["10.7.0.1-10.7.0.4"], default: false },
  ],
  settings: { enableKubevirt: true, garbageCollection: { interval: "2s", grace: "10s" } },
} as const;
/** It is cut off for most of the time; nothing else happens there. */
const LOST = "n4";
/** More than addresses of the pool `few`. */
const CROWD = 5;
const PATIENCE_MS = 5_000;
/** Longer than the time after which a pod without an object and without a NIC is a leak. */
const LEAKED_MS = 30_000;
/** Agents have seen a new object. */
const SEEN_MS = 1_500;
/** An agent has compared its journal with the records. */
const TAKEN_IN_MS = 3_000;
/** A node that is back has looked at its addresses. */
const COME_BACK_MS = 5_000;
/** A pod without its record has it again. */
const RECREATED_MS = 7_000;

/** Ends early when the signal says so. Throws if what plays the cluster fails. */
export async function runCourse(world: World, signal: AbortSignal): Promise<void> {
  const course = new Course(world, signal);
  const ordinary = new AbortController();
  const life = course.live(AbortSignal.any([signal, ordinary.signal]));
  try {
    for (const step of course.steps) if (!signal.aborted) await step();
  } finally {
    ordinary.abort();
    await life;
  }
  for (const step of course.last) if (!signal.aborted) await step();
}

/** Without a name it gets one. */
type NewPod = Omit<PodSpec, "name"> & Partial<Pick<PodSpec, "name">>;

class Course {
  readonly #world: World;
  readonly #signal: AbortSignal;
  #startMs = performance.now();
  #pods = 0;

  constructor(world: World, signal: AbortSignal) {
    this.#world = world;
    this.#signal = signal;
  }

  readonly steps: readonly (() => Promise<void>)[] = [
    () => this.#cutOff(),
    () => this.#forget(),
    () => this.#move(),
    () => this.#migrate(),
    () => this.#kill(),
    () => this.#releaseOthers(),
    () => this.#putBack(),
    () => this.#loseJournal(),
    () => this.#rest(LEAKED_MS - (performance.now() - this.#startMs)),
  ];
  /** No pod asks meanwhile: it might get an address whose record was deleted. */
  readonly last: readonly (() => Promise<void>)[] = [() => this.#comeBack(), () => this.#deleteRecord()];

  get #nodes(): readonly LabNode[] {
    return this.#world.nodes().filter(({ name }) => name !== LOST);
  }

  /** Pods that come and go meanwhile. */
  async live(signal: AbortSignal): Promise<void> {
    const nodes = this.#nodes;
    const annotations = { ippool: { ipv4: ["few"] } };
    const loops = nodes.map(({ name }, index) => this.#comeAndGo(signal, { node: name }, 600 + 300 * index));
    const crowd = Array.from({ length: CROWD }, (_, index) =>
      this.#comeAndGo(signal, { node: nodes[index % nodes.length]?.name ?? "", annotations }, 400),
    );
    await Promise.all([...loops, ...crowd]);
  }

  async #comeAndGo(signal: AbortSignal, spec: Omit<PodSpec, "name">, lifeMs: number): Promise<void> {
    while (!signal.aborted) {
      const pod = await this.#start(spec);
      await sleep(lifeMs);
      if (pod !== undefined) await this.#end(pod);
    }
  }

  /** A node cannot reach the API server, and its pod, which is deleted by force, runs on. */
  async #cutOff(): Promise<void> {
    const pod = await this.#start({ node: LOST });
    this.#world.node(LOST).proxy.refuse();
    await this.#world.setNode(LOST, "Unknown");
    if (pod !== undefined) await this.#world.deletePod(pod);
  }

  async #comeBack(): Promise<void> {
    this.#world.node(LOST).proxy.accept();
    await this.#world.setNode(LOST, "True");
    await this.#rest(COME_BACK_MS);
  }

  /** One pod is deleted by force and lives on; of another the runtime forgets the DEL. */
  async #forget(): Promise<void> {
    this.#startMs = performance.now();
    const undead = await this.#start({ node: "n1" });
    if (undead !== undefined) await this.#world.deletePod(undead);
    const lost = await this.#start({ node: "n1" });
    if (lost === undefined) return;
    const attachment = this.#drop(lost);
    await this.#world.deletePod(lost);
    if (attachment !== undefined) await this.#world.wire.unplug(attachment);
  }

  /** A member restarts elsewhere, then is deleted by force while it runs, and goes on elsewhere. */
  async #move(): Promise<void> {
    const { client } = this.#world;
    const { uid } = (await client.create(SETS, statefulSet("web", 1))).metadata;
    const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "web", uid };
    await this.#rest(SEEN_MS);
    for (const node of ["n1", "n2"]) {
      const pod = await this.#start({ name: "web-0", node, owner });
      if (pod !== undefined) await this.#end(pod);
    }
    const forced = await this.#start({ name: "web-0", node: "n3", owner });
    if (forced === undefined) return;
    // From here on its node may take the address off its NIC.
    const attachment = this.#drop(forced);
    await this.#world.deletePod(forced);
    await this.#start({ name: "web-0", node: "n1", owner });
    if (attachment !== undefined) await this.#world.node("n3").runtime.del(forced, attachment.containerId);
  }

  /** A virtual machine migrates: the NIC of its second launcher is silent until the first one ends. */
  async #migrate(): Promise<void> {
    const { client } = this.#world;
    const { uid } = (await client.create(MACHINES, machine("vm"))).metadata;
    const run = (await client.create(INSTANCES, instance("vm", uid))).metadata.uid;
    const labels = { "kubevirt.io": "virt-launcher", "vm.kubevirt.io/name": "vm" };
    const owner = { apiVersion: "kubevirt.io/v1", kind: "VirtualMachineInstance", name: "vm", uid: run };
    await this.#rest(SEEN_MS);
    const from = await this.#start({ node: "n1", labels, owner });
    // The ledger knows one NIC of an address.
    const source = from && this.#world.ledger.find(from, "eth0");
    const to = await this.#start({ node: "n2", labels, owner }, { isPlugged: false });
    if (source === undefined) return;
    this.#world.ledger.drop(source);
    await this.#world.node("n1").runtime.del(source.pod, source.containerId);
    await this.#world.deletePod(source.pod);
    const target = to && this.#world.ledger.find(to, "eth0");
    if (target !== undefined) await this.#world.wire.plug(target, target.addresses);
  }

  /** An agent is killed, and all are, while answers are lost. */
  async #kill(): Promise<void> {
    const nodes = this.#nodes;
    const fault = { kind: "reset-after" } as const;
    for (const { proxy } of nodes)
      proxy.rules.add({ verbs: ["post", "put", "delete"], path: /ipallocations/, probability: 0.3, fault });
    for (const killed of [nodes.slice(0, 1), nodes]) {
      await this.#rest(500);
      await Promise.all(killed.map(restart));
    }
    await this.#rest(1_000);
    for (const { proxy } of nodes) proxy.rules.clear();
  }

  /** A DEL of another network, and a GC whose list is empty, concern no NIC that lives. */
  async #releaseOthers(): Promise<void> {
    const pod = await this.#start({ node: "n3" });
    const { runtime } = this.#world.node("n3");
    const attachment = pod && this.#world.ledger.find(pod, "eth0");
    if (attachment !== undefined)
      await runtime.call("DEL", attachment.pod, attachment.containerId, { network: "other" });
    await runtime.gc([]);
    await this.#rest(500);
  }

  /** An agent starts with an older journal. */
  async #putBack(): Promise<void> {
    const node = this.#world.node("n2");
    const { agent } = node;
    const copy = join(agent.directory, `copy-${randomUUID()}`);
    await this.#replaceJournal(node, () => cp(agent.state, copy, { recursive: true }));
    await Promise.all([1, 2, 3].map(() => this.#start({ node: "n2" })));
    await this.#replaceJournal(node, async () => {
      await rm(agent.state, { recursive: true });
      await cp(copy, agent.state, { recursive: true });
    });
  }

  /** An administrator deletes a record of a pod that lives. */
  async #deleteRecord(): Promise<void> {
    const pod = await this.#start({ node: "n1" });
    const [address] = (pod && this.#world.ledger.find(pod, "eth0")?.addresses) ?? [];
    await this.#rest(SEEN_MS);
    if (address !== undefined) await forceDelete(this.#world.client, address).catch(() => {});
    await this.#rest(RECREATED_MS);
  }

  async #loseJournal(): Promise<void> {
    const node = this.#world.node("n3");
    await this.#start({ node: "n3" });
    await this.#replaceJournal(node, async () => {
      await rm(node.agent.state, { recursive: true });
      await mkdir(node.agent.state);
    });
  }

  async #replaceJournal({ agent }: LabNode, work: () => Promise<void>): Promise<void> {
    await agent.kill("SIGKILL");
    await work();
    await agent.start();
    // A DEL that comes before the agent has taken its addresses in finds nothing to release.
    await this.#rest(TAKEN_IN_MS);
    this.#world.witness?.lostJournal();
  }

  /** Undefined: it was refused for as long as its kubelet would wait. */
  async #start(given: NewPod, options: AttachOptions = {}): Promise<LabPod | undefined> {
    const pod = await this.#world.createPod({ name: `pod-${++this.#pods}`, ...given });
    const { runtime } = this.#world.node(pod.node);
    const { addresses } = await runtime.attach(pod, { limitMs: PATIENCE_MS, ...options });
    if (addresses.length > 0) await this.#world.setRunning(pod);
    else await this.#world.deletePod(pod);
    return addresses.length > 0 ? pod : undefined;
  }

  async #end(pod: LabPod): Promise<void> {
    await this.#detach(pod);
    await this.#world.deletePod(pod);
  }

  #detach(pod: LabPod): Promise<void> {
    return this.#world.node(pod.node).runtime.detach(pod);
  }

  #drop(pod: LabPod): Attachment | undefined {
    const attachment = this.#world.ledger.find(pod, "eth0");
    if (attachment !== undefined) this.#world.ledger.drop(attachment);
    return attachment;
  }

  /** Shorter when the course ends early. */
  async #rest(ms: number): Promise<void> {
    if (ms > 0) await sleep(ms, undefined, { signal: this.#signal }).catch(() => {});
  }
}

async function restart({ agent }: LabNode): Promise<void> {
  await agent.kill("SIGKILL");
  await agent.start();
}
