/**
 * Machines and Node objects whose names are used again: another machine registers under a node's name, or a Node is
 * deleted and created again around the same machine.
 */
import { copyDisk } from "../fakes/memory-journal.ts";
import type { Seeded } from "../world/seeded.ts";
import type { Cluster, Node } from "./cluster.ts";
import type { Kubelet } from "./kubelet.ts";
import type { Call, Machine } from "./machine.ts";
import type { Action } from "./profiles.ts";
import type { Process, SimulatedTime } from "./simulated-time.ts";

/** A machine that has lost its node's name to another one. */
interface Former {
  readonly machine: Machine;
  /** Undefined while the machine is off. */
  readonly kubelet: Kubelet | undefined;
  readonly left: readonly Call[];
}

interface ReplacementsOptions {
  readonly time: SimulatedTime;
  readonly process: Process;
  readonly cluster: Cluster;
  /** Returns a machine with an empty disk, and its own identity, that will register under the name. */
  readonly newMachine: (name: string, host: string) => Machine;
}

/** One of so many machines begins with a copy of the former one's disk. */
const IMAGES = 3;

/** Time after which the pods of a node without a Node object are deleted by force: milliseconds. */
const ORPHANED_MS = 40_000;

export class Replacements {
  /** Those that run on, cut off from the API server. */
  readonly running = new Set<Former>();
  /** Those that stay cut off. */
  readonly givenUp = new Set<string>();
  readonly #options: ReplacementsOptions;
  /** Nodes about which something is going to happen. */
  readonly #busy = new Set<Node>();
  #machines = 0;
  #isOver = false;

  constructor(options: ReplacementsOptions) {
    this.#options = options;
  }

  /** The machine is off; another one takes its name, and in half of the cases gives it back. */
  replaceOff(random: Seeded): void {
    const node = this.#pick(random);
    if (node === undefined) return;
    const { cluster } = this.#options;
    const { machine } = node;
    cluster.endKubelet(node);
    machine.powerOff();
    cluster.ledger.copyJournal(machine.name);
    this.#later(random.pick([2_000, 15_000]), "a machine is given up", node, () => {
      this.#unregister(node, random.chance(0.7));
      this.#later(random.pick([1_000, 30_000]), "another machine registers", node, () => {
        const former = this.#register(node);
        if (random.chance(0.5)) {
          this.#busy.delete(node);
          return;
        }
        this.#later(random.pick([20_000, 60_000]), "the former machine is back", node, () => {
          this.#giveBack(node, former);
          machine.powerOn();
          cluster.ledger.loseJournal(machine.name);
          cluster.ledger.restoreJournal(machine.name);
          cluster.startNode(node);
        });
      });
    });
  }

  /** The machine is cut off and runs on, with its pods, while another one takes its name; later it is off, or back. */
  replaceRunning(random: Seeded): void {
    const node = this.#pick(random);
    if (node === undefined) return;
    const { cluster } = this.#options;
    cluster.cut(node.machine.host);
    this.givenUp.add(node.machine.host);
    this.#later(random.pick([1_000, 15_000, 30_000]), "a machine is given up", node, () => {
      this.#unregister(node, true);
      this.#later(random.pick([1_000, 10_000]), "another machine registers", node, () => {
        const former = this.#register(node);
        this.running.add(former);
        this.#later(random.pick([60_000, 120_000]), "the former machine is off or back", node, () => {
          if (random.chance(0.5)) {
            this.#end(former);
            this.#busy.delete(node);
            return;
          }
          this.running.delete(former);
          this.#giveBack(node, former);
          this.givenUp.delete(former.machine.host);
          cluster.heal(former.machine.host);
        });
      });
    });
  }

  /** The Node object is away for a while; the machine and its pods stay, but those of a Node that is away for long. */
  recreateNode(random: Seeded): void {
    const node = this.#pick(random);
    if (node === undefined) return;
    const forMs = random.pick([300, 5_000, 20_000, 60_000]);
    this.#unregister(node, false);
    if (forMs > ORPHANED_MS)
      this.#later(ORPHANED_MS, "pods without a Node are deleted", node, () => {
        this.#options.cluster.forceDeletePodsOf(node.machine.name);
      });
    this.#later(forMs, "a Node is created again", node, () => {
      node.isUnregistered = false;
      this.#busy.delete(node);
    });
  }

  /** No machine runs without a name any more, nothing that was begun goes on, and a pod has a NIC that can probe. */
  rest(): void {
    const { cluster } = this.#options;
    const [first] = cluster.workloads;
    this.#isOver = true;
    this.givenUp.clear();
    for (const node of cluster.nodes) node.isUnregistered = false;
    if (first !== undefined && cluster.workloads.every(({ replicas }) => replicas === 0)) cluster.scale(first, 1);
    for (const former of [...this.running]) this.#end(former);
  }

  /** A node that is on and registered, while another one was never replaced: else no NIC is left that could probe. */
  #pick(random: Seeded): Node | undefined {
    const { nodes } = this.#options.cluster;
    const able = nodes.filter((node) => !node.machine.isOff && !node.isUnregistered && !this.#busy.has(node));
    const node = able.length < 2 ? undefined : random.pick(able);
    if (node === undefined || able.every(({ machine }) => machine === node.machine || machine.host !== machine.name))
      return undefined;
    this.#busy.add(node);
    return node;
  }

  #later(delayMs: number, label: string, node: Node, act: () => void): void {
    const { time, process } = this.#options;
    time.schedule(delayMs, `${label}: ${node.machine.name}`, process, () => {
      if (!this.#isOver) act();
    });
  }

  #unregister(node: Node, deletesPods: boolean): void {
    const { cluster } = this.#options;
    const { name } = node.machine;
    node.isUnregistered = true;
    node.registrations++;
    cluster.removeNode(name);
    if (deletesPods) cluster.forceDeletePodsOf(name);
  }

  /** Another machine registers. Returns the former one of the name. */
  #register(node: Node): Former {
    const { cluster, newMachine } = this.#options;
    const { machine, kubelet, left } = node;
    node.machine = newMachine(machine.name, `${machine.name}/${++this.#machines}`);
    if (this.#machines % IMAGES === 0) node.machine.disk = copyDisk(machine.disk);
    node.kubelet = undefined;
    node.left = [];
    node.isUnregistered = false;
    cluster.ledger.loseJournal(machine.name);
    cluster.ledger.replaceMachine(machine.name);
    // Its kubelet has registered before it starts the agent's pod.
    cluster.setReady(machine.name, true);
    cluster.startNode(node);
    return { machine, kubelet, left };
  }

  /** The machine that has the name now is off for good; the former one has it again. */
  #giveBack(node: Node, { machine, kubelet, left }: Former): void {
    const { cluster } = this.#options;
    cluster.endKubelet(node);
    node.machine.powerOff();
    this.#unregister(node, true);
    cluster.ledger.replaceMachine(machine.name);
    node.machine = machine;
    node.kubelet = kubelet;
    node.left = left;
    node.isUnregistered = false;
    this.#busy.delete(node);
  }

  #end(former: Former): void {
    this.running.delete(former);
    former.kubelet?.end();
    former.machine.powerOff();
  }
}

export const REPLACE_OFF: Action = {
  name: "a machine that is off is replaced",
  weight: 4,
  act: (cluster, random) => cluster.replacements.replaceOff(random),
};

export const REPLACE_RUNNING: Action = {
  name: "a machine that runs on is replaced",
  weight: 4,
  act: (cluster, random) => cluster.replacements.replaceRunning(random),
};

export const RECREATE_NODE: Action = {
  name: "a Node is deleted and created again",
  weight: 4,
  act: (cluster, random) => cluster.replacements.recreateNode(random),
};
