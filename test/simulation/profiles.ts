/** Possible faults of a run, and their frequency: the actions of the people and the machines around Berth. */
import { Seeded } from "../world/seeded.ts";
import { type Cluster, type ClusterShape, FOREIGN_NIC, type Node } from "./cluster.ts";
import { DAMAGE, DAMAGE_AND_KILL, DAMAGE_INDEX } from "./damaged-journals.ts";
import type { KubeletFaults } from "./kubelet.ts";
import { keepWrites, recreateKind, restoreLater } from "./made-anew.ts";
import type { Nic, Paths } from "./namespaces.ts";
import { type NetworkFaults, NO_FAULTS, VERY_LATE_MS } from "./network.ts";
import { RECREATE_NODE, REPLACE_OFF, REPLACE_RUNNING } from "./replacements.ts";
import { RESTART_CONTAINERS } from "./simulated-spool.ts";
import type { SimulatedTime } from "./simulated-time.ts";
import type { Workload } from "./workload.ts";

const CLUSTER_PROFILES = [
  "calm",
  "faults",
  "statefulsets",
  "partition",
  "silence",
  "runtimes",
  "scarce",
  "conflicts",
  "restores",
  "pools",
  "hands",
  "scaled",
  "subnets",
  "tenants",
  "machines",
  "registry",
  "ghosts",
  "webhooks",
  "delays",
  "replacements",
  "damage",
  "containers",
  "nics",
  "spaces",
  "bridges",
  "releases",
  "named",
] as const;
export type ClusterProfile = (typeof CLUSTER_PROFILES)[number];

/** `segments` has a world of its own: segment-run.ts. */
export const PROFILES = [...CLUSTER_PROFILES, "segments"] as const;
export type ProfileName = (typeof PROFILES)[number];

/** Something that happens to the cluster; what it is told, a seed of its own decides. */
export interface Action {
  readonly name: string;
  readonly weight: number;
  readonly act: (cluster: Cluster, random: Seeded, time: SimulatedTime) => void;
}

interface Profile {
  readonly network: NetworkFaults;
  readonly kubelet: KubeletFaults;
  /** Addresses beyond those that all pods need: a share. */
  readonly spare: number;
  readonly actions: readonly Action[];
  /** Absent: 5 s. */
  readonly cooldown?: string;
  /** Absent: no NIC probes its addresses. */
  readonly isDetecting?: boolean;
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
  /** Spooled DELs are files. */
  readonly hasSpool?: boolean;
  /** Node objects say which machine they are of. */
  readonly hasNodeInfo?: boolean;
  /** Share of main plugins that take long after the answer of an ADD. */
  readonly slowPlugins?: number;
  /** See {@link ClusterShape}, as the next two. */
  readonly paths?: readonly Paths[];
  readonly hasBridges?: boolean;
  readonly hasSpaces?: boolean;
  /** Only few pods are of StatefulSets, and no ADD is refused while an address is out of use. */
  readonly isStrict?: boolean;
}

function up(cluster: Cluster): Node[] {
  return cluster.nodes.filter(({ machine }) => !machine.isOff);
}

const DELETE: Action = {
  name: "delete a pod",
  weight: 10,
  act: (cluster, random) => {
    const { expected } = cluster;
    if (expected.length > 0) cluster.deletePod(random.pick(expected).name);
  },
};

const DELETE_SOME: Action = {
  name: "restart a workload",
  weight: 2,
  act: (cluster, random) => {
    const { name } = random.pick(cluster.workloads);
    for (const pod of cluster.expected) if (pod.name.startsWith(`${name}-`)) cluster.deletePod(pod.name);
  },
};

const FINISH: Action = {
  name: "a pod finishes",
  weight: 3,
  act: (cluster, random) => {
    const plain = cluster.workloads.filter(({ kind }) => kind === "plain").map(({ name }) => name);
    const found = cluster.expected.filter((pod) => plain.some((name) => pod.name.startsWith(`${name}-`)));
    if (found.length > 0) cluster.finishPod(random.pick(found).name);
  },
};

/** Never beyond what the pools have addresses for. */
const sizes = new WeakMap<Workload, number>();
const SCALE: Action = {
  name: "scale a workload",
  weight: 2,
  act: (cluster, random) => {
    const workload = random.pick(cluster.workloads);
    const most = sizes.get(workload) ?? workload.replicas;
    sizes.set(workload, most);
    cluster.scale(workload, random.below(most + 1));
  },
};

const REPLACE_SET: Action = {
  name: "a set is deleted and created again",
  weight: 1,
  act: (cluster, random) => {
    const sets = cluster.workloads.filter(({ kind, isAbsent }) => kind === "StatefulSet" && !isAbsent);
    if (sets.length > 0) cluster.replaceSet(random.pick(sets), random.pick([500, 3_000, 12_000]));
  },
};

const FORCE: Action = {
  name: "delete a pod by force",
  weight: 4,
  act: (cluster, random) => {
    const { pods } = cluster;
    if (pods.length > 0) cluster.forceDeletePod(random.pick(pods).name);
  },
};

const KILL_AGENT: Action = {
  name: "an agent is killed",
  weight: 3,
  act: (cluster, random, time) => {
    const node = random.pick(cluster.nodes);
    node.machine.kill();
    const forMs = random.pick([100, 1_000, 4_000, 30_000]);
    time.schedule(forMs, "an agent starts again", time.current, () => node.machine.start());
  },
};

const PAUSE_AGENT: Action = {
  name: "an agent stands still",
  weight: 1,
  act: (cluster, random) => random.pick(cluster.nodes).machine.pause(random.pick([500, 5_000, 20_000])),
};

const LOSE_JOURNAL: Action = {
  name: "a journal is lost",
  weight: 1,
  act: (cluster, random) => {
    const { machine } = random.pick(up(cluster));
    machine.kill();
    machine.loseDisk();
    machine.start();
  },
};

const COPY_JOURNAL: Action = {
  name: "a journal is copied",
  weight: 3,
  act: (cluster, random) => random.pick(cluster.nodes).machine.copyDisk(),
};

const RESTORE_JOURNAL: Action = {
  name: "an older journal is restored",
  weight: 2,
  act: (cluster, random) => {
    const { machine } = random.pick(up(cluster));
    machine.kill();
    machine.restoreDisk();
    machine.start();
  },
};

const RESTORE_MACHINE: Action = {
  name: "a machine boots with an older journal",
  weight: 3,
  act: (cluster, random, time) => {
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
  },
};

const UPGRADE: Action = {
  name: "an agent is upgraded",
  weight: 4,
  act: (cluster, random, time) => {
    const { machine } = random.pick(cluster.nodes);
    const forMs = random.pick([50, 1_000, 5_000]);
    time.inside(time.current, () => void machine.upgrade(forMs).catch((error: unknown) => time.uncaught.push(error)));
  },
};

const CHANGE_VERSION: Action = {
  name: "an agent is replaced by one of either version",
  weight: 16,
  act: (cluster, random, time) => {
    const forMs = random.pick([50, 1_000, 5_000]);
    const node = random.pick(cluster.nodes);
    time.inside(
      time.current,
      () => void cluster.upgrade(node, forMs).catch((error: unknown) => time.uncaught.push(error)),
    );
  },
};

const ROLL_OUT: Action = {
  name: "a version is rolled out",
  weight: 4,
  act: (cluster, random, time) => {
    const forMs = random.pick([50, 1_000]);
    time.inside(time.current, () => void cluster.rollOut(forMs).catch((error: unknown) => time.uncaught.push(error)));
  },
};

const HANG: Action = {
  name: "a kubelet hangs",
  weight: 1,
  act: (cluster, random, time) => {
    const { kubelet } = random.pick(cluster.nodes);
    if (kubelet !== undefined) time.pause(kubelet.process, random.pick([2_000, 8_000, 25_000]));
  },
};

const LOSE_SANDBOX: Action = {
  name: "a sandbox dies",
  weight: 3,
  act: (cluster, random) => random.pick(cluster.nodes).kubelet?.loseSandbox(random),
};

const COLLECT: Action = {
  name: "a runtime collects",
  weight: 1,
  act: (cluster, random, time) => {
    const { kubelet } = random.pick(cluster.nodes);
    const isPartial = random.chance(0.5);
    if (kubelet !== undefined) time.inside(kubelet.process, () => void kubelet.collect(random, isPartial));
  },
};

const KILL_CONTROLLER: Action = {
  name: "the controller is killed",
  weight: 1,
  act: (cluster) => cluster.killController(),
};

const PAUSE_CONTROLLER: Action = {
  name: "the controller stands still",
  weight: 1,
  act: (cluster, random) => cluster.pauseController(random.pick([5_000, 20_000])),
};

const DELETE_OBJECT: Action = {
  name: "an allocation is deleted by hand",
  weight: 1,
  act: (cluster, random) => cluster.deleteAllocationLater(random.u32()),
};

const RESTORE_OBJECT: Action = {
  name: "a deleted allocation is restored by hand",
  weight: 4,
  act: (cluster, random) => cluster.restoreAllocation(random),
};

const RESTORE_BACKUP: Action = {
  name: "an allocation is restored from an old backup",
  weight: 4,
  act: (cluster, random) => cluster.restoreBackup(random),
};

const COMPACT: Action = {
  name: "the history is compacted and all watches break",
  weight: 1,
  act: (cluster) => {
    cluster.server.compact();
    cluster.network.breakWatches();
  },
};

const FILL_DISK: Action = {
  name: "a disk is full",
  weight: 1,
  act: (cluster, random, time) => {
    const { machine } = random.pick(cluster.nodes);
    machine.space.isFull = true;
    time.schedule(3_000, "the disk has room", time.current, () => {
      machine.space.isFull = false;
    });
  },
};

const BREAK_DISK: Action = {
  name: "a disk fails",
  weight: 2,
  act: (cluster, random, time) => {
    const { machine } = random.pick(cluster.nodes);
    machine.space.isBroken = true;
    time.schedule(random.pick([200, 3_000, 12_000]), "the disk works again", time.current, () => {
      machine.space.isBroken = false;
    });
  },
};

const CUT: Action = {
  name: "a machine is cut off",
  weight: 3,
  act: (cluster, random, time) => {
    const { host } = random.pick(up(cluster)).machine;
    const forMs = random.pick([1_000, 8_000, 30_000, 90_000]);
    cluster.cut(host);
    time.schedule(forMs, "a machine is connected again", time.current, () => cluster.heal(host));
  },
};

/**
 * Longer than the grace of a node, so that it is taken for lost while its pods live; by then one of them is deleted
 * by force.
 */
const SILENCE: Action = {
  name: "a machine is silent, and one of its pods is deleted by force",
  weight: 4,
  act: (cluster, random, time) => {
    const { name, host } = random.pick(up(cluster)).machine;
    const afterMs = random.pick([1_000, 15_000, 30_000]);
    cluster.cut(host);
    time.schedule(afterMs, "a pod of a silent machine is deleted by force", time.current, () => {
      const own = cluster.pods.filter(({ node }) => node === name);
      if (own.length > 0) cluster.forceDeletePod(random.pick(own).name);
    });
    time.schedule(90_000, "a machine is connected again", time.current, () => cluster.heal(host));
  },
};

const POWER: Action = {
  name: "a machine loses power",
  weight: 2,
  act: (cluster, random, time) => {
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
  },
};

const REBOOT: Action = {
  name: "a kubelet restarts",
  weight: 1,
  act: (cluster, random) => {
    const node = random.pick(up(cluster));
    // Its runtime keeps the sandboxes no longer than this.
    node.machine.namespaces.clear();
    cluster.endKubelet(node);
    cluster.startNode(node);
  },
};

const STRAY_DEL: Action = {
  name: "a DEL names another network",
  weight: 3,
  act: (cluster, random, time) => {
    const { kubelet } = random.pick(cluster.nodes);
    if (kubelet !== undefined) time.inside(kubelet.process, () => kubelet.strayDel(random));
  },
};

const CHANGE_STATIC: Action = {
  name: "a static pod changes",
  weight: 2,
  act: (cluster, random) => cluster.changeStaticPod(random.pick(cluster.nodes).machine.name),
};

const DELETE_MIRROR: Action = {
  name: "a mirror pod is deleted",
  weight: 2,
  act: (cluster, random) => cluster.deleteMirror(random.pick(cluster.nodes).machine.name),
};

const SET_CLOCK: Action = {
  name: "a wall clock jumps",
  weight: 2,
  act: (cluster, random) =>
    random.pick(cluster.nodes).machine.setWallClock(random.pick([0, 90_000, -90_000, 7_200_000, -7_200_000])),
};

const SET_CONTROLLER_CLOCK: Action = {
  name: "the wall clock of a controller jumps",
  weight: 1,
  act: (cluster, random) =>
    cluster.setControllerClock(random, random.pick([0, 90_000, -90_000, 7_200_000, -7_200_000])),
};

const FOREIGN: Action = {
  name: "another machine has an address",
  weight: 8,
  act: (cluster, random) => {
    const pick = (from: readonly string[]): string => random.pick(from);
    cluster.ledger.addForeign(pick, random.pick([5_000, 20_000, 60_000]));
  },
};

const PROXY: Action = {
  name: "a machine answers for every address",
  weight: 1,
  act: (cluster, random) => cluster.ledger.answerAll(random.pick([5_000, 20_000])),
};

const FAMILIES = ["blue", "six"] as const;

const SHRINK: Action = {
  name: "a pool is shrunk",
  weight: 4,
  act: (cluster, random) => {
    const { poolSize } = cluster;
    const first = 1 + random.below(Math.ceil(poolSize / 2));
    const last = Math.min(poolSize, first + Math.ceil(poolSize * 0.3) + random.below(poolSize));
    cluster.editPool(random.pick(FAMILIES), { first, last });
  },
};

const EXCLUDE: Action = {
  name: "addresses are excluded from a pool",
  weight: 3,
  act: (cluster, random) => {
    const excluded = Array.from({ length: 1 + random.below(6) }, () => 1 + random.below(cluster.poolSize));
    cluster.editPool(random.pick(FAMILIES), { excluded: [...new Set(excluded)] });
  },
};

const GROW: Action = {
  name: "a pool has all of its addresses",
  weight: 5,
  act: (cluster, random) => cluster.editPool(random.pick(FAMILIES)),
};

const DISABLE: Action = {
  name: "a pool is disabled",
  weight: 1,
  act: (cluster, random, time) => {
    const family = random.pick(FAMILIES);
    cluster.editPool(family, { isDisabled: true });
    time.schedule(2_000, "a pool is enabled", time.current, () => cluster.editPool(family));
  },
};

const RENAME: Action = {
  name: "a pool gets another name",
  weight: 3,
  act: (cluster, random) => cluster.renamePool(random.pick(FAMILIES)),
};

const OVERLAP: Action = {
  name: "another pool has some of the same addresses",
  weight: 3,
  act: (cluster, random) => {
    const first = 1 + random.below(cluster.poolSize);
    const last = Math.min(cluster.poolSize, first + random.below(cluster.poolSize));
    cluster.overlapPool(random.pick(FAMILIES), { first, last }, random.pick([2_000, 10_000]));
  },
};

const RESERVE: Action = {
  name: "addresses are reserved",
  weight: 2,
  act: (cluster, random, time) => {
    const numbers = Array.from({ length: 4 }, () => 1 + random.below(cluster.poolSize));
    cluster.reserve([...new Set(numbers)], false);
    time.schedule(6_000, "nothing is reserved", time.current, () => cluster.reserve([], true));
  },
};

const SCALE_RIVAL: Action = {
  name: "a user of a Subnet is scaled",
  weight: 12,
  act: (cluster, random) => {
    const workload = random.pick(cluster.workloads.filter(({ subnets }) => subnets !== undefined));
    const most = sizes.get(workload) ?? workload.replicas;
    sizes.set(workload, most);
    cluster.scale(workload, random.below(most + 1));
  },
};

const REPLACE_RIVAL: Action = {
  name: "a user of a Subnet is deleted and created again",
  weight: 4,
  act: (cluster, random) => {
    const users = cluster.workloads.filter(({ subnets, isAbsent }) => subnets !== undefined && !isAbsent);
    if (users.length > 0) cluster.replaceSet(random.pick(users), random.pick([500, 3_000, 20_000]));
  },
};

const RENUMBER: Action = {
  name: "a user of a Subnet wants another number",
  weight: 4,
  act: (cluster, random) => {
    // The template of a Thing is that of its pods.
    const users = cluster.workloads.filter(({ subnets, kind }) => subnets !== undefined && kind !== "Thing");
    cluster.setPoolNumber(random.pick(users), random.pick(["+0", "+1", "+2", "3", "6"]));
  },
};

const ATTACK: Action = {
  name: "the tenant attacks",
  weight: 30,
  act: (cluster, random) => {
    cluster.tenant?.attack(random);
    cluster.thief?.steal();
  },
};

const FLOOD: Action = {
  name: "the tenant creates many pods",
  weight: 3,
  act: (cluster, random, time) => {
    cluster.tenant?.flood(random);
    // Agents know by then that its namespace has as many addresses as it may.
    time.schedule(8_000, "the tenant creates more pods", time.current, () => cluster.tenant?.flood(random, 6));
  },
};

const DEMAND: Action = {
  name: "the tenant wants a pool",
  weight: 4,
  act: (cluster, random) => cluster.tenant?.demand(random),
};

const RETREAT: Action = {
  name: "the tenant deletes pods",
  weight: 2,
  act: (cluster, random) => cluster.tenant?.retreat(random),
};

const MIGRATE: Action = {
  name: "a virtual machine migrates",
  weight: 30,
  act: (cluster, random) => cluster.virtualMachines?.migrate(random),
};

const RESTART_MACHINE: Action = {
  name: "a virtual machine restarts",
  weight: 4,
  act: (cluster, random) => cluster.virtualMachines?.restart(random, random.pick([0, 3_000, 15_000])),
};

const DELETE_MACHINE: Action = {
  name: "a virtual machine is deleted and created again",
  weight: 1,
  act: (cluster, random) => cluster.virtualMachines?.delete(random, random.pick([0, 3_000, 15_000])),
};

const SHRINK_SUBNET: Action = {
  name: "a Subnet offers less",
  weight: 2,
  act: (cluster, random) => cluster.editSubnet(random.pick([...RIVAL_SUBNETS.keys()]), 1 + random.below(4)),
};

const GROW_SUBNET: Action = {
  name: "a Subnet offers all of its addresses",
  weight: 4,
  act: (cluster, random) => cluster.editSubnet(random.pick([...RIVAL_SUBNETS.keys()])),
};

const DELETE_GENERATED: Action = {
  name: "a generated pool is deleted",
  weight: 1,
  act: (cluster, random) => cluster.deleteGeneratedPool(random),
};

const RECREATE_KIND: Action = {
  name: "the kind of allocations is deleted and created again",
  weight: 1,
  act: (cluster, random, time) => recreateKind(cluster, random.pick([200, 3_000, 12_000]), time),
};

const RESTORE_ETCD: Action = {
  name: "the API server goes back in time",
  weight: 1,
  act: (cluster, random, time) => restoreLater(cluster, random.pick([3_000, 10_000, 30_000]), time),
};

const RECREATE_SET: Action = {
  name: "a set is created again around its pods",
  weight: 2,
  act: (cluster, random) => {
    const sets = cluster.workloads.filter(({ kind, isAbsent }) => kind === "StatefulSet" && !isAbsent);
    if (sets.length > 0) cluster.recreateSet(random.pick(sets));
  },
};

const HAUNT: Action = {
  name: "the tenant creates pods of sets that never were",
  weight: 6,
  act: (cluster, random) => cluster.tenant?.haunt(random, 1 + random.below(3)),
};

const RETAIN_FOR_OTHERS: Action = {
  name: "a thief retains an address for a member of somebody else's",
  weight: 4,
  act: (cluster) => cluster.thief?.retainForOthers(),
};

const WEBHOOK: Action = {
  name: "a webhook keeps each write",
  weight: 4,
  act: (cluster, random, time) => keepWrites(cluster, random.pick([500, 3_000]), time),
};

const SLOW_WEBHOOK: Action = {
  name: "a webhook keeps each write for longer than an attempt",
  weight: 20,
  act: (cluster, random, time) => keepWrites(cluster, random.pick([6_000, 10_200]), time),
};

const REST: Action = { name: "nothing happens for a moment", weight: 150, act: () => {} };

const MOVE_NIC: Action = {
  name: "a pod renames a NIC or moves its addresses",
  weight: 10,
  act: (cluster, random) => cluster.nics.move(random),
};

/** The kubelet hangs, so that the pod's sandbox outlives its object. */
function orphan(cluster: Cluster, { machine: host, pod }: Nic, time: SimulatedTime): void {
  const kubelet = cluster.nodes.find(({ machine }) => machine.host === host)?.kubelet;
  if (kubelet === undefined) return;
  time.pause(kubelet.process, 25_000);
  cluster.forceDeletePod(pod);
}

const ORPHAN_MOVED: Action = {
  name: "an orphan has moved its addresses",
  weight: 4,
  act: (cluster, random, time) => {
    const nic = cluster.nics.move(random);
    if (nic !== undefined) orphan(cluster, nic, time);
  },
};

const ORPHAN_SLOW: Action = {
  name: "an orphan's main plugin is slow",
  weight: 6,
  act: (cluster, random, time) => {
    const { pending } = cluster.nics;
    if (pending.length > 0) orphan(cluster, random.pick(pending), time);
  },
};

const TAKE_NUMBER: Action = {
  name: "a process gets the number of an earlier one",
  weight: 6,
  act: (cluster, random) => cluster.nics.takeNumber(random),
};

const ADD_TOOL: Action = {
  name: "another tool's namespace has a pod's addresses",
  weight: 6,
  act: (cluster, random) => cluster.nics.addTool(random, random.pick([3_000, 20_000, 90_000])),
};

const CALM: readonly Action[] = [DELETE, DELETE_SOME, FINISH, SCALE, REPLACE_SET];
const TROUBLE: readonly Action[] = [
  FORCE,
  KILL_AGENT,
  PAUSE_AGENT,
  LOSE_JOURNAL,
  HANG,
  LOSE_SANDBOX,
  COLLECT,
  KILL_CONTROLLER,
  PAUSE_CONTROLLER,
  COMPACT,
  FILL_DISK,
];

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

const TABLE: Readonly<Record<ClusterProfile, Profile>> = {
  calm: {
    network: NO_FAULTS,
    kubelet: { hangUp: 0, lateDel: 0.1, twice: 0.1 },
    spare: 0.3,
    actions: [...CALM, DELETE_OBJECT],
  },
  faults: {
    network: SHAKY,
    kubelet: { hangUp: 0.05, lateDel: 0.2, twice: 0.1 },
    spare: 0.3,
    actions: [...CALM, ...TROUBLE],
  },
  statefulsets: {
    network: SHAKY,
    kubelet: { hangUp: 0.1, lateDel: 0.1, twice: 0.1 },
    spare: 0,
    actions: [{ ...DELETE, weight: 20 }, DELETE_SOME, FORCE, KILL_AGENT, LOSE_SANDBOX, LOSE_JOURNAL],
  },
  partition: {
    network: { ...SHAKY, laggingWatch: 0.03 },
    kubelet: { hangUp: 0.02, lateDel: 0.2, twice: 0.1 },
    spare: 0.3,
    actions: [DELETE, SCALE, FORCE, CUT, POWER, REBOOT, HANG, KILL_AGENT, KILL_CONTROLLER, PAUSE_CONTROLLER],
  },
  silence: {
    network: NO_FAULTS,
    kubelet: { hangUp: 0.02, lateDel: 0.2, twice: 0.1 },
    spare: 0.3,
    actions: [DELETE, SCALE, SILENCE, KILL_AGENT, KILL_CONTROLLER],
  },
  runtimes: {
    network: NO_FAULTS,
    kubelet: { hangUp: 0.02, lateDel: 0.3, twice: 0.3 },
    spare: 0.3,
    isMixed: true,
    actions: [
      DELETE,
      FINISH,
      { ...LOSE_SANDBOX, weight: 8 },
      { ...COLLECT, weight: 6 },
      STRAY_DEL,
      CHANGE_STATIC,
      DELETE_MIRROR,
      SET_CLOCK,
      LOSE_JOURNAL,
      KILL_AGENT,
    ],
  },
  scarce: {
    network: NO_FAULTS,
    kubelet: { hangUp: 0, lateDel: 0.2, twice: 0.1 },
    spare: 0.1,
    cooldown: "90s",
    isStrict: true,
    actions: [{ ...DELETE, weight: 20 }, FINISH, SET_CLOCK],
  },
  conflicts: {
    network: NO_FAULTS,
    kubelet: { hangUp: 0.02, lateDel: 0.1, twice: 0.1 },
    spare: 0.8,
    isDetecting: true,
    actions: [{ ...DELETE, weight: 20 }, FORCE, HANG, CUT, POWER, KILL_AGENT, FOREIGN, PROXY],
  },
  restores: {
    network: SHAKY,
    kubelet: { hangUp: 0.05, lateDel: 0.2, twice: 0.1 },
    spare: 0.05,
    actions: [
      DELETE,
      FINISH,
      SCALE,
      FORCE,
      { ...LOSE_SANDBOX, weight: 8 },
      COPY_JOURNAL,
      RESTORE_JOURNAL,
      RESTORE_MACHINE,
      UPGRADE,
      KILL_AGENT,
      POWER,
    ],
  },
  pools: {
    network: NO_FAULTS,
    kubelet: { hangUp: 0.02, lateDel: 0.1, twice: 0.1 },
    spare: 0.4,
    actions: [
      { ...DELETE, weight: 14 },
      DELETE_SOME,
      SCALE,
      FORCE,
      LOSE_SANDBOX,
      SHRINK,
      EXCLUDE,
      GROW,
      DISABLE,
      RENAME,
      RESERVE,
      KILL_AGENT,
      KILL_CONTROLLER,
      COMPACT,
    ],
  },
  hands: {
    network: NO_FAULTS,
    kubelet: { hangUp: 0.02, lateDel: 0.1, twice: 0.1 },
    spare: 0.3,
    actions: [
      { ...DELETE, weight: 6 },
      FINISH,
      SCALE,
      { ...DELETE_OBJECT, weight: 8 },
      RESTORE_OBJECT,
      RESTORE_BACKUP,
      OVERLAP,
      BREAK_DISK,
      FILL_DISK,
      SET_CLOCK,
      SET_CONTROLLER_CLOCK,
      PAUSE_AGENT,
      HANG,
      KILL_CONTROLLER,
      { ...PAUSE_CONTROLLER, weight: 2 },
    ],
  },
  scaled: {
    network: SHAKY,
    kubelet: { hangUp: 0.05, lateDel: 0.1, twice: 0.1 },
    spare: 0,
    actions: [
      { ...DELETE, weight: 8 },
      DELETE_SOME,
      { ...SCALE, weight: 8 },
      REPLACE_SET,
      { ...FORCE, weight: 6 },
      CUT,
      POWER,
      HANG,
      PAUSE_AGENT,
      KILL_AGENT,
      KILL_CONTROLLER,
    ],
  },
  subnets: {
    network: { ...NO_FAULTS, slow: 0.005, lostAnswer: 0.01, tooMany: 0.01, brokenWatch: 0.002, laggingWatch: 0.01 },
    kubelet: { hangUp: 0.02, lateDel: 0.1, twice: 0.1 },
    spare: 0.3,
    hasSubnets: true,
    actions: [
      { ...DELETE, weight: 8 },
      DELETE_SOME,
      FORCE,
      SCALE_RIVAL,
      REPLACE_RIVAL,
      RENUMBER,
      SHRINK_SUBNET,
      GROW_SUBNET,
      DELETE_GENERATED,
      KILL_AGENT,
      KILL_CONTROLLER,
      PAUSE_CONTROLLER,
      COMPACT,
    ],
  },
  tenants: {
    network: NO_FAULTS,
    kubelet: { hangUp: 0.02, lateDel: 0.1, twice: 0.1 },
    spare: 0.3,
    hasTenant: true,
    actions: [
      ATTACK,
      FLOOD,
      DEMAND,
      RETREAT,
      { ...DELETE, weight: 8 },
      DELETE_SOME,
      FORCE,
      { ...SCALE_RIVAL, weight: 4 },
      LOSE_SANDBOX,
      KILL_AGENT,
      KILL_CONTROLLER,
      LOSE_JOURNAL,
    ],
  },
  registry: {
    network: NO_FAULTS,
    kubelet: { hangUp: 0.02, lateDel: 0.1, twice: 0.1 },
    spare: 0.1,
    actions: [
      { ...DELETE, weight: 14 },
      DELETE_SOME,
      SCALE,
      FORCE,
      LOSE_SANDBOX,
      RECREATE_KIND,
      RESTORE_ETCD,
      RECREATE_SET,
    ],
  },
  webhooks: {
    network: NO_FAULTS,
    kubelet: { hangUp: 0, lateDel: 0.1, twice: 0.1 },
    spare: 0.3,
    actions: [REST, DELETE, FINISH, KILL_AGENT, WEBHOOK, SLOW_WEBHOOK],
  },
  ghosts: {
    network: NO_FAULTS,
    kubelet: { hangUp: 0.02, lateDel: 0.1, twice: 0.1 },
    spare: 0.3,
    hasTenant: true,
    actions: [{ ...DELETE, weight: 14 }, DELETE_SOME, FORCE, KILL_AGENT, KILL_CONTROLLER, HAUNT, RETAIN_FOR_OTHERS],
  },
  machines: {
    network: MILD,
    kubelet: { hangUp: 0.02, lateDel: 0.2, twice: 0.1 },
    spare: 0.3,
    hasMachines: true,
    actions: [
      MIGRATE,
      RESTART_MACHINE,
      DELETE_MACHINE,
      { ...DELETE, weight: 5 },
      { ...FORCE, weight: 2 },
      { ...LOSE_SANDBOX, weight: 2 },
      CUT,
      { ...POWER, weight: 1 },
      KILL_AGENT,
      { ...LOSE_JOURNAL, weight: 3 },
      PAUSE_AGENT,
      HANG,
      KILL_CONTROLLER,
      PAUSE_CONTROLLER,
      COMPACT,
      FILL_DISK,
    ],
  },
  delays: {
    network: { ...SHAKY, veryLate: 0.05, staleList: 0.5, brokenWatch: 0.01 },
    kubelet: { hangUp: 0.15, lateDel: 0.1, twice: 0.1 },
    spare: 0.3,
    actions: [
      { ...DELETE, weight: 14 },
      DELETE_SOME,
      SCALE,
      FORCE,
      CUT,
      { ...KILL_AGENT, weight: 6 },
      LOSE_SANDBOX,
      KILL_CONTROLLER,
      PAUSE_CONTROLLER,
      COMPACT,
    ],
  },
  replacements: {
    network: NO_FAULTS,
    kubelet: { hangUp: 0.02, lateDel: 0.1, twice: 0.1 },
    spare: 0.3,
    hasNodeInfo: true,
    actions: [
      DELETE,
      SCALE,
      FORCE,
      REPLACE_OFF,
      REPLACE_RUNNING,
      RECREATE_NODE,
      CUT,
      LOSE_SANDBOX,
      KILL_AGENT,
      KILL_CONTROLLER,
    ],
  },
  damage: {
    network: { ...NO_FAULTS, slow: 0.005, lostAnswer: 0.01 },
    kubelet: { hangUp: 0.05, lateDel: 0.2, twice: 0.1 },
    spare: 0.3,
    isMixed: true,
    actions: [
      { ...DELETE, weight: 14 },
      { ...CHANGE_STATIC, weight: 4 },
      SCALE,
      FORCE,
      { ...LOSE_SANDBOX, weight: 6 },
      DAMAGE,
      DAMAGE_INDEX,
      DAMAGE_AND_KILL,
      KILL_AGENT,
      UPGRADE,
      FILL_DISK,
      HANG,
    ],
  },
  containers: {
    network: NO_FAULTS,
    kubelet: { hangUp: 0.05, lateDel: 0, twice: 0, sameId: 0.8 },
    spare: 0.3,
    hasSpool: true,
    actions: [
      DELETE,
      FORCE,
      { ...LOSE_SANDBOX, weight: 10 },
      RESTART_CONTAINERS,
      KILL_AGENT,
      UPGRADE,
      BREAK_DISK,
      COLLECT,
    ],
  },
  nics: {
    network: SHAKY,
    kubelet: { hangUp: 0.05, lateDel: 0.2, twice: 0.1 },
    spare: 0.3,
    slowPlugins: 0.2,
    paths: ["names", "numbers"],
    actions: [
      { ...DELETE, weight: 8 },
      DELETE_SOME,
      FINISH,
      SCALE,
      { ...FORCE, weight: 8 },
      { ...HANG, weight: 4 },
      MOVE_NIC,
      TAKE_NUMBER,
      ORPHAN_MOVED,
      ORPHAN_SLOW,
      LOSE_SANDBOX,
      CUT,
      POWER,
      KILL_AGENT,
      LOSE_JOURNAL,
      KILL_CONTROLLER,
      COLLECT,
    ],
  },
  spaces: {
    network: NO_FAULTS,
    kubelet: { hangUp: 0.02, lateDel: 0.2, twice: 0.1 },
    spare: 0.4,
    isDetecting: true,
    hasSpaces: true,
    actions: [
      { ...DELETE, weight: 12 },
      DELETE_SOME,
      FINISH,
      SCALE,
      REPLACE_SET,
      { ...FORCE, weight: 6 },
      HANG,
      ADD_TOOL,
      LOSE_SANDBOX,
      UPGRADE,
      KILL_CONTROLLER,
      PAUSE_CONTROLLER,
      COMPACT,
      CUT,
      POWER,
      KILL_AGENT,
      LOSE_JOURNAL,
    ],
  },
  bridges: {
    network: NO_FAULTS,
    kubelet: { hangUp: 0.02, lateDel: 0.2, twice: 0.1 },
    spare: 0.3,
    slowPlugins: 0.1,
    hasMachines: true,
    paths: ["names", "numbers"],
    hasBridges: true,
    actions: [
      MIGRATE,
      RESTART_MACHINE,
      DELETE_MACHINE,
      { ...DELETE, weight: 5 },
      { ...FORCE, weight: 8 },
      { ...HANG, weight: 3 },
      TAKE_NUMBER,
      LOSE_SANDBOX,
      CUT,
      POWER,
      KILL_AGENT,
      KILL_CONTROLLER,
    ],
  },
  named: {
    network: SHAKY,
    kubelet: { hangUp: 0.1, lateDel: 0.1, twice: 0.1 },
    spare: 0,
    hasListed: true,
    actions: [
      { ...DELETE, weight: 20 },
      DELETE_SOME,
      FORCE,
      REPLACE_SET,
      KILL_AGENT,
      KILL_CONTROLLER,
      LOSE_SANDBOX,
      LOSE_JOURNAL,
    ],
  },
  releases: {
    network: MILD,
    kubelet: { hangUp: 0.02, lateDel: 0.2, twice: 0.1 },
    spare: 0.3,
    isMixed: true,
    hasSubnets: true,
    hasMachines: true,
    actions: [
      CHANGE_VERSION,
      ROLL_OUT,
      DELETE,
      DELETE_SOME,
      FINISH,
      FORCE,
      KILL_AGENT,
      LOSE_JOURNAL,
      LOSE_SANDBOX,
      COLLECT,
      HANG,
      PAUSE_AGENT,
      CUT,
      POWER,
      KILL_CONTROLLER,
      PAUSE_CONTROLLER,
      COMPACT,
      FILL_DISK,
      { ...SCALE_RIVAL, weight: 6 },
      REPLACE_RIVAL,
      RENUMBER,
      SHRINK_SUBNET,
      GROW_SUBNET,
      DELETE_GENERATED,
      { ...MIGRATE, weight: 15 },
      RESTART_MACHINE,
      DELETE_MACHINE,
    ],
  },
};

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

/** Pods that announce a second NIC whose ADD never comes, and pods with a NIC of another plugin. */
const MIXED: readonly Workload[] = [
  {
    name: "lazy",
    kind: "plain",
    replicas: 2,
    nics: [["eth0", "lan"]],
    announced: [["net1", "lan2"]],
    annotations: {
      "ipam.vendor.io/ippools": JSON.stringify(
        ["eth0", "net1"].map((ifName) => ({ interface: ifName, ipv4: ["blue"], ipv6: ["six"] })),
      ),
    },
    life: 1,
    isAbsent: false,
  },
  {
    name: "mix",
    kind: "plain",
    replicas: 2,
    nics: [["eth0", "lan"]],
    announced: [[FOREIGN_NIC, "san"]],
    life: 1,
    isAbsent: false,
  },
];

/** Names of Subnets, with the addresses that each offers. */
const RIVAL_SUBNETS: ReadonlyMap<string, number> = new Map([
  ["tight4", 13],
  ["tight6", 15],
  ["more4", 6],
  ["more6", 5],
]);

const TIGHT = { ipv4: ["tight4"], ipv6: ["tight6"] };

/** Together they want more than there is. */
const RIVALS: readonly Workload[] = [
  {
    name: "own",
    kind: "StatefulSet",
    replicas: 3,
    nics: [
      ["eth0", "lan"],
      ["net1", "lan2"],
    ],
    subnets: { ...TIGHT, number: "+1", reclaim: true },
    life: 1,
    isAbsent: false,
  },
  {
    name: "roll",
    kind: "Deployment",
    replicas: 4,
    nics: [["eth0", "lan"]],
    subnets: { ...TIGHT, number: "+1", reclaim: false },
    life: 1,
    isAbsent: false,
  },
  {
    name: "both",
    kind: "Deployment",
    replicas: 5,
    nics: [["eth0", "lan"]],
    subnets: { ipv4: ["tight4", "more4"], ipv6: ["more6", "tight6"], number: "+1", reclaim: true },
    life: 1,
    isAbsent: false,
  },
  {
    name: "thing",
    kind: "Thing",
    replicas: 3,
    nics: [["eth0", "lan"]],
    subnets: { ...TIGHT, number: "+0", reclaim: true },
    life: 1,
    isAbsent: false,
  },
];

/** The tenant may use `tight`, and no other. */
const VICTIM_SUBNETS: ReadonlyMap<string, number> = new Map([
  ["tight4", 50],
  ["tight6", 50],
  ["guarded4", 6],
  ["guarded6", 6],
]);

const [OWN, ROLL] = RIVALS as readonly [Workload, Workload, ...Workload[]];

/** Whom a tenant attacks, besides the others. */
const VICTIMS: readonly Workload[] = [
  {
    name: "bank",
    kind: "StatefulSet",
    replicas: 2,
    nics: [["eth0", "lan"]],
    annotations: { "ipam.vendor.io/ippool": JSON.stringify({ ipv4: ["vault4"], ipv6: ["vault6"] }) },
    life: 1,
    isAbsent: false,
  },
  OWN,
  { ...ROLL, subnets: { ipv4: ["guarded4"], ipv6: ["guarded6"], number: "+1", reclaim: true } },
];

/** A pod that is no launcher, and whose second NIC has an IPAMClaim. */
const CLAIMANT: Workload = {
  name: "box",
  kind: "plain",
  replicas: 1,
  nics: [
    ["eth0", "lan"],
    ["net1", "lan2"],
  ],
  hasClaim: true,
  life: 1,
  isAbsent: false,
};

const LIMITS = { maxAddressesPerPod: 6, maxGeneratedAddressesPerNamespace: 30, maxGeneratedPoolSize: 12 };

/** Of one address space each. */
const RED: Workload["nics"] = [
  ["eth0", "lan"],
  ["net1", "red"],
];

function nicsOf(workloads: readonly Workload[]): number {
  return workloads.reduce((sum, { replicas, nics }) => sum + replicas * nics.length, 0);
}

export function planRun({ seed, profile, nodes, pods: count, faults }: PlanOptions): Plan {
  const random = new Seeded(seed);
  const {
    network,
    kubelet,
    spare,
    actions,
    cooldown = "5s",
    isDetecting = false,
    isMixed = false,
    isStrict = false,
    hasSubnets = false,
    hasTenant = false,
    hasMachines = false,
    hasSpool = false,
    hasNodeInfo = false,
    hasSpaces = false,
    hasBridges = false,
    hasListed = false,
    slowPlugins = 0,
    paths,
  } = TABLE[profile];
  const pods = hasSubnets || hasTenant || hasMachines ? Math.ceil(count / 4) : count;
  const virtualMachines = hasMachines ? Math.ceil(count / 3) : 0;
  const one: Workload["nics"] = [["eth0", "lan"]];
  const two: Workload["nics"] = [...one, ["net1", "lan2"]];
  const dbs = isStrict ? 1 : Math.ceil(pods * 0.4);
  const webs = isStrict ? 1 : Math.ceil(pods * 0.3);
  const set = { life: 1, isAbsent: false, ...(hasListed ? { isListed: true } : {}) };
  const workloads: Workload[] = [
    { name: "db", kind: "StatefulSet", replicas: dbs, nics: hasSpaces ? RED : two, ...set },
    { name: "web", kind: "StatefulSet", replicas: webs, nics: one, ...set },
    {
      name: "app",
      kind: "plain",
      replicas: Math.max(1, pods - dbs - webs),
      nics: random.chance(0.5) ? one : hasSpaces ? RED : two,
      life: 1,
      isAbsent: false,
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
  if (hasSubnets) workloads.push(...RIVALS);
  if (hasTenant) workloads.push(...VICTIMS);
  // What all victims need of both families.
  const share = 2 * (needed + nicsOf(VICTIMS));
  const poolSize = needed + Math.ceil(needed * spare) + (hasTenant ? share : 0);
  const total = actions.reduce((sum, { weight }) => sum + weight, 0);
  return {
    shape: {
      machines: nodes,
      workloads,
      poolSize,
      selection: random.chance(0.7) ? "hash" : "ascending",
      cooldown,
      isDetecting,
      hasStaticPods: isMixed || hasTenant,
      isStrict,
      hasSpool,
      hasNodeInfo,
      ...(network.veryLate > 0 ? { lateMs: VERY_LATE_MS } : {}),
      ...(hasMachines ? { virtualMachines } : {}),
      ...(paths === undefined ? {} : { paths }),
      ...{ hasBridges, hasSpaces },
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
      const action = pickAction(actions, own.below(total));
      return { action, random: own, pauseMs: 50 + own.below(900) };
    },
  };
}

function pickAction(actions: readonly Action[], at: number): Action {
  let end = 0;
  for (const action of actions) {
    end += action.weight;
    if (at < end) return action;
  }
  return DELETE;
}

function scaled<T extends object>(shares: T, factor: number): T {
  return Object.fromEntries(
    Object.entries(shares).map(([key, share]) => [key, Math.min(1, Number(share) * factor)]),
  ) as T;
}
