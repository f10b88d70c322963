/** Possible faults of a run, and their frequency: the actions of the people and the machines around Berth. */
import { hasPackage } from "../../scripts/setup/paths.mjs";
import { Seeded } from "../world/seeded.ts";
import { type Cluster, type ClusterShape, FAMILIES, FOREIGN_NIC, type Node } from "./cluster.ts";
import { DAMAGE, DAMAGE_AND_KILL, DAMAGE_INDEX } from "./damaged-journals.ts";
import type { KubeletFaults } from "./kubelet.ts";
import { keepWrites, recreateKind, restoreLater } from "./made-anew.ts";
import type { Nic } from "./namespaces.ts";
import { type NetworkFaults, NO_FAULTS, VERY_LATE_MS } from "./network.ts";
import { RECREATE_NODE, REPLACE_OFF, REPLACE_RUNNING } from "./replacements.ts";
import { RESTART_CONTAINERS } from "./simulated-spool.ts";
import type { SimulatedTime } from "./simulated-time.ts";
import { PIN_POOLS, pinsOf, type Workload } from "./workload.ts";

/** A change of the cluster, decided by a seed of its own. */
export interface Action {
  readonly name: string;
  readonly weight: number;
  readonly act: (cluster: Cluster, random: Seeded, time: SimulatedTime) => void;
}

interface Profile {
  /** Absent: {@link NO_FAULTS}. */
  readonly network?: NetworkFaults;
  /** Absent: {@link KUBELET}. */
  readonly kubelet?: KubeletFaults;
  /** Addresses beyond those that all pods need: a share. Absent: 0.3. */
  readonly spare?: number;
  /** See {@link actionsOf}. */
  readonly actions: string;
  /** The differences from {@link SHAPE}. */
  readonly shape?: Partial<ClusterShape>;
  /** With static pods, and pods with NICs that other plugins serve and that never come. */
  readonly isMixed?: boolean;
  /** Workloads share Subnets that are too small for all. */
  readonly hasSubnets?: boolean;
  /** The sets are of a kind that vendor-conf lists. */
  readonly hasListed?: boolean;
  /** A hostile tenant creates pods. */
  readonly hasTenant?: boolean;
  /** Most pods are launchers of virtual machines. */
  readonly hasMachines?: boolean;
  /** Share of main plugins that take long after the answer of an ADD. */
  readonly slowPlugins?: number;
  /** Addresses are reserved for owners, and Services and Nodes have some. */
  readonly hasOwners?: boolean;
}

function up(cluster: Cluster): Node[] {
  return cluster.nodes.filter(({ machine }) => !machine.isOff);
}

/** At most as many as the pools have addresses for. */
const sizes = new WeakMap<Workload, number>();

/** The kubelet hangs, so that the pod's sandbox outlives its object. */
function orphan(cluster: Cluster, { machine: host, pod }: Nic, time: SimulatedTime): void {
  const kubelet = cluster.nodes.find(({ machine }) => machine.host === host)?.kubelet;
  if (kubelet === undefined) return;
  time.pause(kubelet.process, 25_000);
  cluster.forceDeletePod(pod);
}

const action = (name: string, weight: number, act: Action["act"]): Action => ({ name, weight, act });

/** By the names that the profiles have for them. */
const ACTIONS: Readonly<Record<string, Action>> = {
  delete: action("delete a pod", 10, (cluster, random) => {
    const { expected } = cluster;
    if (expected.length > 0) cluster.deletePod(random.pick(expected).name);
  }),
  deleteSome: action("restart a workload", 2, (cluster, random) => {
    const { name } = random.pick(cluster.workloads);
    for (const pod of cluster.expected) if (pod.name.startsWith(`${name}-`)) cluster.deletePod(pod.name);
  }),
  finish: action("a pod finishes", 3, (cluster, random) => {
    const plain = cluster.workloads.filter(({ kind }) => kind === "plain").map(({ name }) => name);
    const found = cluster.expected.filter((pod) => plain.some((name) => pod.name.startsWith(`${name}-`)));
    if (found.length > 0) cluster.finishPod(random.pick(found).name);
  }),
  scale: action("scale a workload", 2, (cluster, random) => {
    const workload = random.pick(cluster.workloads.filter(({ hasClaim }) => hasClaim !== true));
    const most = sizes.getOrInsertComputed(workload, () => workload.replicas);
    cluster.scale(workload, random.below(most + 1));
  }),
  replaceSet: action("a set is deleted and created again", 1, (cluster, random) => {
    const sets = cluster.workloads.filter(({ kind, isAbsent }) => kind === "StatefulSet" && !isAbsent);
    if (sets.length > 0) cluster.replaceSet(random.pick(sets), random.pick([500, 3_000, 12_000]));
  }),
  force: action("delete a pod by force", 4, (cluster, random) => {
    const { pods } = cluster;
    if (pods.length > 0) cluster.forceDeletePod(random.pick(pods).name);
  }),
  killAgent: action("an agent is killed", 3, (cluster, random, time) => {
    const node = random.pick(cluster.nodes);
    node.machine.kill();
    const forMs = random.pick([100, 1_000, 4_000, 30_000]);
    time.schedule(forMs, "an agent starts again", time.current, () => node.machine.start());
  }),
  pauseAgent: action("an agent stands still", 1, (cluster, random) =>
    random.pick(cluster.nodes).machine.pause(random.pick([500, 5_000, 20_000])),
  ),
  loseJournal: action("a journal is lost", 1, (cluster, random) => {
    const { machine } = random.pick(up(cluster));
    machine.kill();
    machine.loseDisk();
    machine.start();
  }),
  copyJournal: action("a journal is copied", 3, (cluster, random) => random.pick(cluster.nodes).machine.copyDisk()),
  restoreJournal: action("an older journal is restored", 2, (cluster, random) => {
    const { machine } = random.pick(up(cluster));
    machine.kill();
    machine.restoreDisk();
    machine.start();
  }),
  restoreMachine: action("a machine boots with an older journal", 3, (cluster, random, time) => {
    const others = up(cluster);
    if (others.length < 2) return;
    const node = random.pick(others);
    cluster.endKubelet(node);
    node.machine.powerOff();
    node.machine.restoreDisk();
    time.schedule(random.pick([1_000, 8_000]), "a machine boots", time.current, () => {
      if (!node.machine.isOff) return;
      node.machine.powerOn();
      cluster.startNode(node);
    });
  }),
  upgrade: action("an agent is upgraded", 4, (cluster, random, time) => {
    const { machine } = random.pick(cluster.nodes);
    const forMs = random.pick([50, 1_000, 5_000]);
    time.inside(time.current, () => void machine.upgrade(forMs).catch((error: unknown) => time.uncaught.push(error)));
  }),
  changeVersion: action("an agent is replaced by one of either version", 16, (cluster, random, time) => {
    const forMs = random.pick([50, 1_000, 5_000]);
    const node = random.pick(cluster.nodes);
    time.inside(
      time.current,
      () => void cluster.upgrade(node, forMs).catch((error: unknown) => time.uncaught.push(error)),
    );
  }),
  rollOut: action("a version is rolled out", 4, (cluster, random, time) => {
    const forMs = random.pick([50, 1_000]);
    time.inside(time.current, () => void cluster.rollOut(forMs).catch((error: unknown) => time.uncaught.push(error)));
  }),
  hang: action("a kubelet hangs", 1, (cluster, random, time) => {
    const { kubelet } = random.pick(cluster.nodes);
    if (kubelet !== undefined) time.pause(kubelet.process, random.pick([2_000, 8_000, 25_000]));
  }),
  loseSandbox: action("a sandbox dies", 3, (cluster, random) =>
    random.pick(cluster.nodes).kubelet?.loseSandbox(random),
  ),
  collect: action("a runtime collects", 1, (cluster, random, time) => {
    const { kubelet } = random.pick(cluster.nodes);
    const isPartial = random.chance(0.5);
    if (kubelet !== undefined) time.inside(kubelet.process, () => void kubelet.collect(random, isPartial));
  }),
  killController: action("the controller is killed", 1, (cluster) => cluster.killController()),
  pauseController: action("the controller stands still", 1, (cluster, random) =>
    cluster.pauseController(random.pick([5_000, 20_000])),
  ),
  deleteObject: action("an allocation is deleted by hand", 1, (cluster, random) =>
    cluster.deleteAllocationLater(random.u32()),
  ),
  restoreObject: action("a deleted allocation is restored by hand", 4, (cluster, random) =>
    cluster.restoreAllocation(random),
  ),
  restoreBackup: action("an allocation is restored from an old backup", 4, (cluster, random) =>
    cluster.restoreBackup(random),
  ),
  compact: action("the history is compacted and all watches break", 1, (cluster) => {
    cluster.server.compact();
    cluster.network.breakWatches();
  }),
  fillDisk: action("a disk is full", 1, (cluster, random, time) => {
    const { machine } = random.pick(cluster.nodes);
    machine.space.isFull = true;
    time.schedule(3_000, "the disk has room", time.current, () => {
      machine.space.isFull = false;
    });
  }),
  breakDisk: action("a disk fails", 2, (cluster, random, time) => {
    const { machine } = random.pick(cluster.nodes);
    machine.space.isBroken = true;
    time.schedule(random.pick([200, 3_000, 12_000]), "the disk works again", time.current, () => {
      machine.space.isBroken = false;
    });
  }),
  cut: action("a machine is cut off", 3, (cluster, random, time) => {
    const { host } = random.pick(up(cluster)).machine;
    const forMs = random.pick([1_000, 8_000, 30_000, 90_000]);
    cluster.cut(host);
    time.schedule(forMs, "a machine is connected again", time.current, () => cluster.heal(host));
  }),
  /**
   * Longer than the grace of a node, so that it is taken for lost while its pods live; by then one of them is deleted
   * by force.
   */
  silence: action("a machine is silent, and one of its pods is deleted by force", 4, (cluster, random, time) => {
    const { name, host } = random.pick(up(cluster)).machine;
    const afterMs = random.pick([1_000, 15_000, 30_000]);
    cluster.cut(host);
    time.schedule(afterMs, "a pod of a silent machine is deleted by force", time.current, () => {
      const own = cluster.pods.filter(({ node }) => node === name);
      if (own.length > 0) cluster.forceDeletePod(random.pick(own).name);
    });
    time.schedule(90_000, "a machine is connected again", time.current, () => cluster.heal(host));
  }),
  power: action("a machine loses power", 2, (cluster, random, time) => {
    const others = up(cluster);
    if (others.length < 2) return;
    const node = random.pick(others);
    const { name } = node.machine;
    cluster.endKubelet(node);
    node.machine.powerOff();
    const isMarked = random.chance(0.4);
    const isRemoved = !isMarked && random.chance(0.3);
    if (isMarked)
      time.schedule(12_000, "a node is marked as off", time.current, () => node.machine.isOff && cluster.markOff(name));
    if (isRemoved)
      time.schedule(12_000, "a node is removed", time.current, () => node.machine.isOff && cluster.removeNode(name));
    time.schedule(random.pick([3_000, 25_000, 80_000]), "a machine boots", time.current, () => {
      if (!node.machine.isOff) return;
      node.machine.powerOn();
      if (isMarked) cluster.setReady(name, true);
      cluster.startNode(node);
    });
  }),
  reboot: action("a kubelet restarts", 1, (cluster, random) => {
    const node = random.pick(up(cluster));
    // Its runtime keeps the sandboxes no longer than this.
    node.machine.namespaces.clear();
    cluster.endKubelet(node);
    cluster.startNode(node);
  }),
  strayDel: action("a DEL names another network", 3, (cluster, random, time) => {
    const { kubelet } = random.pick(cluster.nodes);
    if (kubelet !== undefined) time.inside(kubelet.process, () => kubelet.strayDel(random));
  }),
  changeStatic: action("a static pod changes", 2, (cluster, random) =>
    cluster.changeStaticPod(random.pick(cluster.nodes).machine.name),
  ),
  deleteMirror: action("a mirror pod is deleted", 2, (cluster, random) =>
    cluster.deleteMirror(random.pick(cluster.nodes).machine.name),
  ),
  setClock: action("a wall clock jumps", 2, (cluster, random) =>
    random.pick(cluster.nodes).machine.setWallClock(random.pick([0, 90_000, -90_000, 7_200_000, -7_200_000])),
  ),
  setControllerClock: action("the wall clock of a controller jumps", 1, (cluster, random) =>
    cluster.setControllerClock(random, random.pick([0, 90_000, -90_000, 7_200_000, -7_200_000])),
  ),
  foreign: action("another machine has an address", 8, (cluster, random) => {
    const pick = (from: readonly string[]): string => random.pick(from);
    cluster.ledger.addForeign(pick, random.pick([5_000, 20_000, 60_000]));
  }),
  proxy: action("a machine answers for every address", 1, (cluster, random) =>
    cluster.ledger.answerAll(random.pick([5_000, 20_000])),
  ),
  shrink: action("a pool is shrunk", 4, (cluster, random) => {
    const { poolSize } = cluster;
    const first = 1 + random.below(Math.ceil(poolSize / 2));
    const last = Math.min(poolSize, first + Math.ceil(poolSize * 0.3) + random.below(poolSize));
    cluster.editPool(random.pick(FAMILIES), { first, last });
  }),
  exclude: action("addresses are excluded from a pool", 3, (cluster, random) => {
    const excluded = Array.from({ length: 1 + random.below(6) }, () => 1 + random.below(cluster.poolSize));
    cluster.editPool(random.pick(FAMILIES), { excluded: [...new Set(excluded)] });
  }),
  grow: action("a pool has all of its addresses", 5, (cluster, random) => cluster.editPool(random.pick(FAMILIES))),
  disable: action("a pool is disabled", 1, (cluster, random, time) => {
    const family = random.pick(FAMILIES);
    cluster.editPool(family, { isDisabled: true });
    time.schedule(2_000, "a pool is enabled", time.current, () => cluster.editPool(family));
  }),
  rename: action("a pool gets another name", 3, (cluster, random) => cluster.renamePool(random.pick(FAMILIES))),
  overlap: action("another pool has some of the same addresses", 3, (cluster, random) => {
    const first = 1 + random.below(cluster.poolSize);
    const last = Math.min(cluster.poolSize, first + random.below(cluster.poolSize));
    cluster.overlapPool(random.pick(FAMILIES), { first, last }, random.pick([2_000, 10_000]));
  }),
  reserve: action("addresses are reserved", 2, (cluster, random, time) => {
    const numbers = Array.from({ length: 4 }, () => 1 + random.below(cluster.poolSize));
    cluster.reserve([...new Set(numbers)], false);
    time.schedule(6_000, "nothing is reserved", time.current, () => cluster.reserve([], true));
  }),
  own: action("an address is reserved for an owner", 6, (cluster, random) => cluster.reservations?.reserve(random)),
  disown: action("a reservation is deleted", 2, (cluster, random) => cluster.reservations?.unreserve(random)),
  pin: action("a template names other addresses", 2, (cluster, random) =>
    cluster.pinAnew(random.pick(cluster.workloads.filter(({ name }) => name === "pin" || name === "solo"))),
  ),
  balance: action("a Service of type LoadBalancer comes or goes", 5, (cluster, random) =>
    cluster.reservations?.balance(random),
  ),
  addressNode: action("a Node gets or loses an address of a pool", 3, (cluster, random) =>
    cluster.reservations?.address(random.pick(cluster.nodes).machine.name, random),
  ),
  killAtWrite: action("whoever writes is killed", 3, (cluster, random) => cluster.killAtWrite(1 + random.below(12))),
  outage: action("the API server is away", 1, (cluster, random) => cluster.cutAll(random.pick([1_000, 4_000, 9_000]))),
  scaleRival: action("a user of a Subnet is scaled", 12, (cluster, random) => {
    const workload = random.pick(cluster.workloads.filter(({ subnets }) => subnets !== undefined));
    const most = sizes.getOrInsertComputed(workload, () => workload.replicas);
    cluster.scale(workload, random.below(most + 1));
  }),
  replaceRival: action("a user of a Subnet is deleted and created again", 4, (cluster, random) => {
    const users = cluster.workloads.filter(({ subnets, isAbsent }) => subnets !== undefined && !isAbsent);
    if (users.length > 0) cluster.replaceSet(random.pick(users), random.pick([500, 3_000, 20_000]));
  }),
  renumber: action("a user of a Subnet wants another number", 4, (cluster, random) => {
    // The template of a Thing is that of its pods.
    const users = cluster.workloads.filter(({ subnets, kind }) => subnets !== undefined && kind !== "Thing");
    cluster.setPoolNumber(random.pick(users), random.pick(["+0", "+1", "+2", "3", "6"]));
  }),
  attack: action("the tenant attacks", 30, (cluster, random) => {
    cluster.tenant?.attack(random);
    cluster.thief?.steal();
  }),
  flood: action("the tenant creates many pods", 3, (cluster, random, time) => {
    cluster.tenant?.flood(random);
    // Agents know by then that its namespace has as many addresses as it may.
    time.schedule(8_000, "the tenant creates more pods", time.current, () => cluster.tenant?.flood(random, 6));
  }),
  demand: action("the tenant wants a pool", 4, (cluster, random) => cluster.tenant?.demand(random)),
  retreat: action("the tenant deletes pods", 2, (cluster, random) => cluster.tenant?.retreat(random)),
  migrate: action("a virtual machine migrates", 30, (cluster, random) => cluster.virtualMachines?.migrate(random)),
  restartMachine: action("a virtual machine restarts", 4, (cluster, random) =>
    cluster.virtualMachines?.restart(random, random.pick([0, 3_000, 15_000])),
  ),
  deleteMachine: action("a virtual machine is deleted and created again", 1, (cluster, random) =>
    cluster.virtualMachines?.delete(random, random.pick([0, 3_000, 15_000])),
  ),
  shrinkSubnet: action("a Subnet offers less", 2, (cluster, random) =>
    cluster.editSubnet(random.pick([...RIVAL_SUBNETS.keys()]), 1 + random.below(4)),
  ),
  growSubnet: action("a Subnet offers all of its addresses", 4, (cluster, random) =>
    cluster.editSubnet(random.pick([...RIVAL_SUBNETS.keys()])),
  ),
  deleteGenerated: action("a generated pool is deleted", 1, (cluster, random) => cluster.deleteGeneratedPool(random)),
  recreateKind: action("the kind of allocations is deleted and created again", 1, (cluster, random, time) =>
    recreateKind(cluster, random.pick([200, 3_000, 12_000]), time),
  ),
  restoreEtcd: action("the API server goes back in time", 1, (cluster, random, time) =>
    restoreLater(cluster, random.pick([3_000, 10_000, 30_000]), time),
  ),
  recreateSet: action("a set is created again around its pods", 2, (cluster, random) => {
    const sets = cluster.workloads.filter(({ kind, isAbsent }) => kind === "StatefulSet" && !isAbsent);
    if (sets.length > 0) cluster.recreateSet(random.pick(sets));
  }),
  haunt: action("the tenant creates pods of sets that never were", 6, (cluster, random) =>
    cluster.tenant?.haunt(random, 1 + random.below(3)),
  ),
  retainForOthers: action("a thief retains an address for a member of somebody else's", 4, (cluster) =>
    cluster.thief?.retainForOthers(),
  ),
  webhook: action("a webhook keeps each write", 4, (cluster, random, time) =>
    keepWrites(cluster, random.pick([500, 3_000]), time),
  ),
  slowWebhook: action("a webhook keeps each write for longer than an attempt", 20, (cluster, random, time) =>
    keepWrites(cluster, random.pick([6_000, 10_200]), time),
  ),
  rest: action("nothing happens for a moment", 150, () => {}),
  moveNic: action("a pod renames a NIC or moves its addresses", 10, (cluster, random) => cluster.nics.move(random)),
  orphanMoved: action("an orphan has moved its addresses", 4, (cluster, random, time) => {
    const nic = cluster.nics.move(random);
    if (nic !== undefined) orphan(cluster, nic, time);
  }),
  orphanSlow: action("an orphan's main plugin is slow", 6, (cluster, random, time) => {
    const { pending } = cluster.nics;
    if (pending.length > 0) orphan(cluster, random.pick(pending), time);
  }),
  takeNumber: action("a process gets the number of an earlier one", 6, (cluster, random) =>
    cluster.nics.takeNumber(random),
  ),
  addTool: action("another tool's namespace has a pod's addresses", 6, (cluster, random) =>
    cluster.nics.addTool(random, random.pick([3_000, 20_000, 90_000])),
  ),
  damage: DAMAGE,
  damageAndKill: DAMAGE_AND_KILL,
  damageIndex: DAMAGE_INDEX,
  recreateNode: RECREATE_NODE,
  replaceOff: REPLACE_OFF,
  replaceRunning: REPLACE_RUNNING,
  restartContainers: RESTART_CONTAINERS,
};

/** `delete scale force:8`: each action, some with a weight of their own. */
function actionsOf(words: string): readonly Action[] {
  return words.split(" ").map((word) => {
    const [name = "", weight] = word.split(":");
    const found = ACTIONS[name];
    if (found === undefined) throw new Error(`There is no action ${name}`);
    return weight === undefined ? found : { ...found, weight: Number(weight) };
  });
}

const SHAKY: NetworkFaults = {
  slow: 0.01,
  lostRequest: 0.01,
  lostAnswer: 0.02,
  duplicated: 0.01,
  tooMany: 0.01,
  failing: 0.01,
  late: 0.005,
  veryLate: 0,
  staleList: 0,
  brokenWatch: 0.002,
  laggingWatch: 0.01,
};

const MILD: NetworkFaults = {
  slow: 0.005,
  lostRequest: 0.005,
  lostAnswer: 0.01,
  duplicated: 0.005,
  tooMany: 0.005,
  failing: 0.005,
  late: 0.002,
  veryLate: 0,
  staleList: 0,
  brokenWatch: 0.001,
  laggingWatch: 0.005,
};

const KUBELET: KubeletFaults = { hangUp: 0.02, lateDel: 0.1, twice: 0.1 };

const TABLE = {
  calm: {
    kubelet: { hangUp: 0, lateDel: 0.1, twice: 0.1 },
    actions: "delete deleteSome finish scale replaceSet deleteObject",
  },
  faults: {
    network: SHAKY,
    kubelet: { hangUp: 0.05, lateDel: 0.2, twice: 0.1 },
    actions:
      "delete deleteSome finish scale replaceSet force killAgent pauseAgent loseJournal hang loseSandbox collect " +
      "killController pauseController compact fillDisk",
  },
  statefulsets: {
    network: SHAKY,
    kubelet: { hangUp: 0.1, lateDel: 0.1, twice: 0.1 },
    spare: 0,
    actions: "delete:20 deleteSome force killAgent loseSandbox loseJournal",
  },
  partition: {
    network: { ...SHAKY, laggingWatch: 0.03 },
    kubelet: { hangUp: 0.02, lateDel: 0.2, twice: 0.1 },
    actions: "delete scale force cut power reboot hang killAgent killController pauseController",
  },
  silence: {
    kubelet: { hangUp: 0.02, lateDel: 0.2, twice: 0.1 },
    actions: "delete scale silence killAgent killController",
  },
  runtimes: {
    kubelet: { hangUp: 0.02, lateDel: 0.3, twice: 0.3 },
    isMixed: true,
    actions: "delete finish loseSandbox:8 collect:6 strayDel changeStatic deleteMirror setClock loseJournal killAgent",
  },
  scarce: {
    kubelet: { hangUp: 0, lateDel: 0.2, twice: 0.1 },
    spare: 0.1,
    shape: { cooldown: "90s", isStrict: true },
    actions: "delete:20 finish setClock",
  },
  conflicts: {
    spare: 0.8,
    shape: { isDetecting: true },
    actions: "delete:20 force hang cut power killAgent foreign proxy",
  },
  restores: {
    network: SHAKY,
    kubelet: { hangUp: 0.05, lateDel: 0.2, twice: 0.1 },
    spare: 0.05,
    actions:
      "delete finish scale force loseSandbox:8 copyJournal restoreJournal restoreMachine upgrade killAgent power",
  },
  pools: {
    spare: 0.4,
    actions:
      "delete:14 deleteSome scale force loseSandbox shrink exclude grow disable rename reserve killAgent " +
      "killController compact",
  },
  hands: {
    actions:
      "delete:6 finish scale deleteObject:8 restoreObject restoreBackup overlap breakDisk fillDisk setClock " +
      "setControllerClock pauseAgent hang killController pauseController:2",
  },
  scaled: {
    network: SHAKY,
    kubelet: { hangUp: 0.05, lateDel: 0.1, twice: 0.1 },
    spare: 0,
    actions: "delete:8 deleteSome scale:8 replaceSet force:6 cut power hang pauseAgent killAgent killController",
  },
  subnets: {
    network: { ...NO_FAULTS, slow: 0.005, lostAnswer: 0.01, tooMany: 0.01, brokenWatch: 0.002, laggingWatch: 0.01 },
    hasSubnets: true,
    actions:
      "delete:8 deleteSome force scaleRival replaceRival renumber shrinkSubnet growSubnet deleteGenerated " +
      "killAgent killController pauseController compact",
  },
  tenants: {
    hasTenant: true,
    actions:
      "attack flood demand retreat delete:8 deleteSome force scaleRival:4 loseSandbox killAgent killController " +
      "loseJournal",
  },
  machines: {
    network: MILD,
    kubelet: { hangUp: 0.02, lateDel: 0.2, twice: 0.1 },
    hasMachines: true,
    actions:
      "migrate restartMachine deleteMachine delete:5 force:2 loseSandbox:2 cut power:1 killAgent loseJournal:3 " +
      "pauseAgent hang killController pauseController compact fillDisk",
  },
  registry: {
    spare: 0.1,
    actions: "delete:14 deleteSome scale force loseSandbox recreateKind restoreEtcd recreateSet",
  },
  ghosts: {
    hasTenant: true,
    actions: "delete:14 deleteSome force killAgent killController haunt retainForOthers",
  },
  webhooks: {
    kubelet: { hangUp: 0, lateDel: 0.1, twice: 0.1 },
    actions: "rest delete finish killAgent webhook slowWebhook",
  },
  delays: {
    network: { ...SHAKY, veryLate: 0.05, staleList: 0.5, brokenWatch: 0.01 },
    kubelet: { hangUp: 0.15, lateDel: 0.1, twice: 0.1 },
    actions: "delete:14 deleteSome scale force cut killAgent:6 loseSandbox killController pauseController compact",
  },
  replacements: {
    shape: { hasNodeInfo: true },
    actions: "delete scale force replaceOff replaceRunning recreateNode cut loseSandbox killAgent killController",
  },
  damage: {
    network: { ...NO_FAULTS, slow: 0.005, lostAnswer: 0.01 },
    kubelet: { hangUp: 0.05, lateDel: 0.2, twice: 0.1 },
    isMixed: true,
    actions:
      "delete:14 changeStatic:4 scale force loseSandbox:6 damage damageIndex damageAndKill killAgent upgrade " +
      "fillDisk hang",
  },
  containers: {
    kubelet: { hangUp: 0.05, lateDel: 0, twice: 0, sameId: 0.8 },
    shape: { hasSpool: true },
    actions: "delete force loseSandbox:10 restartContainers killAgent upgrade breakDisk collect",
  },
  nics: {
    network: SHAKY,
    kubelet: { hangUp: 0.05, lateDel: 0.2, twice: 0.1 },
    slowPlugins: 0.2,
    shape: { paths: ["names", "numbers"] },
    actions:
      "delete:8 deleteSome finish scale force:8 hang:4 moveNic takeNumber orphanMoved orphanSlow loseSandbox cut " +
      "power killAgent loseJournal killController collect",
  },
  spaces: {
    kubelet: { hangUp: 0.02, lateDel: 0.2, twice: 0.1 },
    spare: 0.4,
    shape: { isDetecting: true, hasSpaces: true },
    actions:
      "delete:12 deleteSome finish scale replaceSet force:6 hang addTool loseSandbox upgrade killController " +
      "pauseController compact cut power killAgent loseJournal",
  },
  bridges: {
    kubelet: { hangUp: 0.02, lateDel: 0.2, twice: 0.1 },
    slowPlugins: 0.1,
    hasMachines: true,
    shape: { paths: ["names", "numbers"], hasBridges: true },
    actions:
      "migrate restartMachine deleteMachine delete:5 force:8 hang:3 takeNumber loseSandbox cut power killAgent " +
      "killController",
  },
  releases: {
    network: MILD,
    kubelet: { hangUp: 0.02, lateDel: 0.2, twice: 0.1 },
    isMixed: true,
    hasSubnets: true,
    hasMachines: true,
    actions:
      "changeVersion rollOut delete deleteSome finish force killAgent loseJournal loseSandbox collect hang " +
      "pauseAgent cut power killController pauseController compact fillDisk scaleRival:6 replaceRival renumber " +
      "shrinkSubnet growSubnet deleteGenerated migrate:15 restartMachine deleteMachine",
  },
  named: {
    network: SHAKY,
    kubelet: { hangUp: 0.1, lateDel: 0.1, twice: 0.1 },
    spare: 0,
    hasListed: true,
    actions: "delete:20 deleteSome force replaceSet killAgent killController loseSandbox loseJournal",
  },
  reserved: {
    network: { ...NO_FAULTS, lostAnswer: 0.01, brokenWatch: 0.002, laggingWatch: 0.01 },
    kubelet: { hangUp: 0.02, lateDel: 0.2, twice: 0.1 },
    spare: 0.1,
    hasMachines: true,
    hasOwners: true,
    actions:
      "own disown pin balance addressNode killAtWrite outage delete:14 deleteSome:3 scale force:2 replaceSet " +
      "loseSandbox killAgent cut:2 migrate:6 restartMachine deleteMachine " +
      "setClock:1 setControllerClock compact",
  },
} satisfies Readonly<Record<string, Profile>>;

export type ClusterProfile = keyof typeof TABLE;

export type ProfileName = ClusterProfile | "segments";

/** `segments` has a world of its own, in packages/segments. */
export const PROFILES: readonly ProfileName[] = [
  ...(Object.keys(TABLE) as ClusterProfile[]).filter((name) => name !== "reserved" || hasPackage("load-balancers")),
  ...(hasPackage("segments") ? (["segments"] as const) : []),
];

export interface Plan {
  readonly shape: ClusterShape;
  readonly network: NetworkFaults;
  readonly kubelet: KubeletFaults;
  /** Share of main plugins that take long. */
  readonly slowPlugins: number;
  /** Action number `index`; the same number is the same action, whatever happened before. */
  readonly actionAt: (index: number) => { readonly action: Action; readonly random: Seeded; readonly pauseMs: number };
}

/** Writes of pools in a second in the runs in which they are made one after the other. */
const PACED_WRITES = 8;

interface PlanOptions {
  readonly seed: number;
  readonly profile: ClusterProfile;
  readonly nodes: number;
  readonly pods: number;
  /** Multiplies the shares of all faults. */
  readonly faults: number;
}

/** Only with `isStrict` few pods are of StatefulSets. */
const SHAPE = { cooldown: "5s", isDetecting: false, isStrict: false };

const NEW = { life: 1, isAbsent: false };
const ONE_NIC: Workload["nics"] = [["eth0", "lan"]];
const TWO_NICS: Workload["nics"] = [...ONE_NIC, ["net1", "lan2"]];

/** Pods that announce a second NIC whose ADD never comes, and pods with a NIC of another plugin. */
const MIXED: readonly Workload[] = [
  {
    name: "lazy",
    kind: "plain",
    replicas: 2,
    nics: ONE_NIC,
    announced: [["net1", "lan2"]],
    ...NEW,
    annotations: {
      "ipam.vendor.io/ippools": JSON.stringify(
        ["eth0", "net1"].map((ifName) => ({ interface: ifName, ipv4: ["blue"], ipv6: ["six"] })),
      ),
    },
  },
  { name: "mix", kind: "plain", replicas: 2, nics: ONE_NIC, announced: [[FOREIGN_NIC, "san"]], ...NEW },
];

/** Names of Subnets, with the addresses that each offers. */
const RIVAL_SUBNETS: ReadonlyMap<string, number> = new Map([
  ["tight4", 13],
  ["tight6", 15],
  ["more4", 6],
  ["more6", 5],
]);

const TIGHT = { ipv4: ["tight4"], ipv6: ["tight6"], number: "+1", reclaim: true };
const MORE = { ...TIGHT, ipv4: ["tight4", "more4"], ipv6: ["more6", "tight6"] };

const OWN: Workload = { name: "own", kind: "StatefulSet", replicas: 3, nics: TWO_NICS, subnets: TIGHT, ...NEW };
const KEEPING = { ...TIGHT, reclaim: false };
const ROLL: Workload = { name: "roll", kind: "Deployment", replicas: 4, nics: ONE_NIC, subnets: KEEPING, ...NEW };

/** Together they want more than there is. */
const RIVALS: readonly Workload[] = [
  OWN,
  ROLL,
  { name: "both", kind: "Deployment", replicas: 5, nics: ONE_NIC, subnets: MORE, ...NEW },
  { name: "thing", kind: "Thing", replicas: 3, nics: ONE_NIC, subnets: { ...TIGHT, number: "+0" }, ...NEW },
];

/** The tenant may use `tight`, and no other. */
const VICTIM_SUBNETS: ReadonlyMap<string, number> = new Map([
  ["tight4", 50],
  ["tight6", 50],
  ["guarded4", 6],
  ["guarded6", 6],
]);

/** Whom a tenant attacks, besides the others. */
const VICTIMS: readonly Workload[] = [
  {
    name: "bank",
    kind: "StatefulSet",
    replicas: 2,
    nics: ONE_NIC,
    ...NEW,
    annotations: { "ipam.vendor.io/ippool": JSON.stringify({ ipv4: ["vault4"], ipv6: ["vault6"] }) },
  },
  OWN,
  { ...ROLL, subnets: { ...TIGHT, ipv4: ["guarded4"], ipv6: ["guarded6"] } },
];

/** A pod that is no launcher, and whose second NIC has an IPAMClaim. */
const CLAIMANT: Workload = { name: "box", kind: "plain", replicas: 1, nics: TWO_NICS, hasClaim: true, ...NEW };

const LIMITS = { maxAddressesPerPod: 6, maxGeneratedAddressesPerNamespace: 30, maxGeneratedPoolSize: 12 };

const OWNED = 6;
/** Of each family, for Nodes, Services and the pods that are not counted. */
const OPEN = 15;

/** Some name their addresses, of pools that "lend" uses, too; one is owned by the name of its Deployment. */
const PINNED = (
  [
    { name: "pin", kind: "StatefulSet", replicas: 3, nics: ONE_NIC, ...NEW },
    { name: "solo", kind: "Deployment", replicas: 1, nics: ONE_NIC, isGenerated: true, ...NEW },
  ] as const
).map((workload) => ({ ...workload, annotations: pinsOf(workload) }));

const LENDERS: Workload = { name: "lend", kind: "plain", replicas: 3, nics: ONE_NIC, annotations: PIN_POOLS, ...NEW };
const MOVING: Workload = { name: "mix", kind: "plain", replicas: 3, nics: ONE_NIC, ...NEW };
const ONE: Workload = { name: "one", kind: "Deployment", replicas: 1, nics: ONE_NIC, isGenerated: true, ...NEW };

/** Of one address space each. */
const RED: Workload["nics"] = [...ONE_NIC, ["net1", "red"]];

function nicsOf(workloads: readonly Workload[]): number {
  return workloads.reduce((sum, { replicas, nics }) => sum + replicas * nics.length, 0);
}

export function planRun({ seed, profile, nodes, pods: count, faults }: PlanOptions): Plan {
  const random = new Seeded(seed);
  const {
    network = NO_FAULTS,
    kubelet = KUBELET,
    spare = 0.3,
    actions: words,
    shape: own = {},
    isMixed = false,
    hasSubnets = false,
    hasTenant = false,
    hasMachines = false,
    hasListed = false,
    hasOwners = false,
    slowPlugins = 0,
  }: Profile = TABLE[profile];
  const actions = actionsOf(words);
  const pods = hasSubnets || hasTenant || hasMachines ? Math.ceil(count / 4) : count;
  const virtualMachines = hasMachines ? Math.ceil(count / 3) : 0;
  const { isStrict = false, hasSpaces = false } = own;
  const dbs = isStrict ? 1 : Math.ceil(pods * 0.4);
  const webs = isStrict ? 1 : Math.ceil(pods * 0.3);
  const set = { ...NEW, ...(hasListed ? { isListed: true } : {}) };
  const workloads: Workload[] = [
    { name: "db", kind: "StatefulSet", replicas: dbs, nics: hasSpaces ? RED : TWO_NICS, ...set },
    { name: "web", kind: "StatefulSet", replicas: webs, nics: ONE_NIC, ...set },
    {
      name: "app",
      kind: "plain",
      replicas: Math.max(1, pods - dbs - webs),
      nics: random.chance(0.5) ? ONE_NIC : hasSpaces ? RED : TWO_NICS,
      ...NEW,
    },
  ];
  if (isMixed) workloads.push(...MIXED);
  if (hasMachines) workloads.push(CLAIMANT);
  const needed =
    workloads.reduce(
      (sum, { replicas, nics, announced = [] }) => sum + replicas * (nics.length + announced.length),
      0,
    ) +
    (isMixed || hasTenant ? nodes : 0) +
    2 * virtualMachines;
  if (hasOwners) workloads.push(...PINNED, LENDERS, ONE, MOVING);
  if (hasSubnets) workloads.push(...RIVALS);
  if (hasTenant) workloads.push(...VICTIMS);
  // The need of all victims for both families.
  const share = 2 * (needed + nicsOf(VICTIMS));
  const poolSize = needed + Math.ceil(needed * spare) + (hasTenant ? share : 0) + (hasOwners ? OWNED + OPEN : 0);
  const total = actions.reduce((sum, { weight }) => sum + weight, 0);
  return {
    shape: {
      machines: nodes,
      workloads,
      poolSize,
      selection: random.chance(0.7) ? "hash" : "ascending",
      hasStaticPods: isMixed || hasTenant,
      ...SHAPE,
      ...own,
      ...(network.veryLate > 0 ? { lateMs: VERY_LATE_MS } : {}),
      ...(hasMachines ? { virtualMachines } : {}),
      ...(hasOwners ? { owned: OWNED } : {}),
      // Of some runs, as of a cluster with so many nodes that pools are written one after the other.
      ...(seed % 4 === 3 ? { poolEventsPerSecond: PACED_WRITES * nodes } : {}),
      ...(hasSubnets ? { subnets: RIVAL_SUBNETS } : {}),
      ...(hasTenant ? { subnets: VICTIM_SUBNETS, tenant: { ...LIMITS, maxAddressesPerNamespace: share } } : {}),
    },
    network: scaled(network, faults),
    kubelet: scaled(kubelet, faults),
    slowPlugins: Math.min(1, slowPlugins * faults),
    actionAt: (index) => {
      const own = new Seeded(Math.imul(seed, 0x9e3779b1) ^ Math.imul(index + 1, 0x85ebca6b));
      return { action: pickAction(actions, own.below(total)), random: own, pauseMs: 50 + own.below(900) };
    },
  };
}

function pickAction(actions: readonly Action[], at: number): Action {
  let end = 0;
  for (const action of actions) {
    end += action.weight;
    if (at < end) return action;
  }
  throw new Error(`The weights end before ${at}`);
}

function scaled<T extends object>(shares: T, factor: number): T {
  return Object.fromEntries(
    Object.entries(shares).map(([key, share]) => [key, Math.min(1, Number(share) * factor)]),
  ) as T;
}
