/**
 * KubeVirt in little: virtual machines, the launcher pod of each run, and live migrations, which have a second
 * launcher of the same run for a while. Every other machine keeps its addresses as a VirtualMachine, the rest by
 * IPAMClaims, one for each NIC. Of these, every other one requests addresses for its first NIC, of pools that only
 * these machines may use.
 */
import type { Seeded } from "../world/seeded.ts";
import type { Cluster } from "./cluster.ts";
import { CLAIMS, INSTANCES, MACHINES, PODS } from "./collections.ts";
import type { PodObject } from "./kubelet.ts";
import type { Nic } from "./namespaces.ts";
import { claimName, STATUS_OF_BERTH } from "./workload.ts";

const NICS: PodObject["nics"] = [
  ["eth0", "lan"],
  ["net1", "lan2"],
];
const KUBEVIRT = "kubevirt.io/v1";
/** `vm-1-2-7`: the seventh launcher, of the second machine of this name. */
const LAUNCHER = /^(?<name>vm-\d+)-(?<life>\d+)-\d+$/;
/** A migration whose target has not come up by then is given up: milliseconds. */
const TARGET_MS = 20_000;
/** Most machines of a run: the wishes of their second NICs come after those of the first ones. */
const MACHINES_MOST = 49;
/** The pools of launchers of machines with wishes, in the order of preference; the second ones only these may use. */
const DEMAND_POOLS = { ipv4: ["blue", "wish4"], ipv6: ["six", "wish6"] };

/** Share of successes among the migrations that get so far. */
const SUCCESS_SHARE = 0.7;
/** For each look at the machines. */
const CLEANUP_SHARE = 0.1;

interface VirtualMachine {
  readonly name: string;
  readonly hasClaims: boolean;
  /** Addresses that the IPAMClaim of its first NIC requests; undefined: any. */
  readonly wishes: readonly (readonly string[])[] | undefined;
  /** Counts the machines of this name. */
  life: number;
  isAbsent: boolean;
  mustMigrate: boolean;
  /** Counts the runs. */
  run: number;
  /** No run begins sooner. */
  stoppedUntilMs: number;
  /** UID of the pod in which it runs; undefined between two runs. */
  source: string | undefined;
  /** Target of its migration. */
  target: { readonly uid: string; readonly startedMs: number; isUp: boolean; endMs: number } | undefined;
}

export class VirtualMachines {
  readonly #cluster: Cluster;
  readonly #machines: readonly VirtualMachine[];
  /** The run of each launcher that there ever was, by UID. */
  readonly #runs = new Map<string, string>();
  #lastLauncher = 0;
  migrations = 0;

  constructor(cluster: Cluster, count: number) {
    this.#cluster = cluster;
    this.#machines = Array.from({ length: count }, (_, index) => ({
      name: `vm-${index}`,
      hasClaims: index % 2 === 1,
      wishes: index % 4 === 3 ? NICS.map((_, nic) => demandsOf(index + 1, nic)) : undefined,
      life: 0,
      isAbsent: true,
      mustMigrate: false,
      run: 0,
      stoppedUntilMs: 0,
      source: undefined,
      target: undefined,
    }));
  }

  start(): void {
    for (const machine of this.#machines) this.#put(machine);
  }

  migrate(random: Seeded): void {
    this.#migrate(random.pick(this.#machines), random);
  }

  /** From now on each has to migrate once more. */
  rest(): void {
    for (const machine of this.#machines) machine.mustMigrate = true;
  }

  #migrate(machine: VirtualMachine, random: Seeded): void {
    const source = this.#podOf(machine, machine.source);
    if (source === undefined || machine.target !== undefined || !this.#cluster.runs(source.uid)) return;
    const nodes = this.#cluster.readyNodes.filter((node) => node !== source.node);
    if (nodes.length === 0) return;
    const uid = this.#launch(machine, random.pick(nodes), { "kubevirt.io/migrationJobUID": "migration" });
    machine.target = { uid, startedMs: this.#cluster.nowMs, isUp: false, endMs: 0 };
  }

  /** It is shut down, and started again after so long. */
  restart(random: Seeded, forMs: number): void {
    const machine = random.pick(this.#machines);
    machine.stoppedUntilMs = this.#cluster.nowMs + forMs;
    this.#end(machine, random.chance(0.5));
  }

  /** It is deleted, with its claims; one of its name is created after so long, once its pods are gone. */
  delete(random: Seeded, forMs: number): void {
    const present = this.#machines.filter(({ isAbsent }) => !isAbsent);
    if (present.length === 0) return;
    const machine = random.pick(present);
    const cluster = this.#cluster;
    const { server, ledger } = cluster;
    const { name } = machine;
    machine.isAbsent = true;
    machine.stoppedUntilMs = this.#cluster.nowMs + forMs;
    this.#end(machine, false);
    server.remove(name, MACHINES);
    server.remove(name, INSTANCES);
    ledger.forgetMember(name);
    if (!machine.hasClaims) return;
    for (const [ifName] of NICS) {
      server.remove(claimName(name, ifName), CLAIMS);
      ledger.forgetMember(claimName(name, ifName));
    }
  }

  /** Called every now and then. */
  tick(): void {
    const { nowMs } = this.#cluster;
    for (const machine of this.#machines) {
      this.#cleanUp(machine);
      if (this.#podOf(machine, machine.source) === undefined) this.#end(machine, false);
      else this.#goOn(machine);
      if (machine.source !== undefined || nowMs < machine.stoppedUntilMs) continue;
      const isEnding = this.#launchersOf(machine).some(({ isFinished }) => !isFinished);
      if (isEnding) continue;
      if (machine.isAbsent) this.#put(machine);
      this.#run(machine);
    }
  }

  /** The member whose address the launcher's NIC has; `isCurrent`: it is of the run that goes on. */
  memberOf({ name, uid }: Pick<PodObject, "name" | "uid">, ifName: string): { name: string; isCurrent: boolean } {
    const machine = this.#machineOf(name);
    if (machine === undefined) return { name, isCurrent: false };
    const isCurrent = machine.source === uid || machine.target?.uid === uid;
    return { name: machine.hasClaims ? claimName(machine.name, ifName) : machine.name, isCurrent };
  }

  /** The name by which an address is reserved for the launcher's NIC; undefined: the claim requests another one. */
  ownerOf(pod: Pick<PodObject, "name" | "uid">, ifName: string): string | undefined {
    return this.#machineOf(pod.name)?.wishes === undefined ? this.memberOf(pod, ifName).name : undefined;
  }

  isLauncher(name: string): boolean {
    return LAUNCHER.test(name);
  }

  /** All launchers of one machine have one. */
  identityOf(name: string): string {
    return LAUNCHER.test(name) ? name.slice(0, name.lastIndexOf("-")) : name;
  }

  /** Whether both NICs are of launchers of one run: they are two only while the machine migrates. */
  mayShare(a: Nic, b: Nic): boolean {
    const [one, other] = [this.#runs.get(a.uid), this.#runs.get(b.uid)];
    return one !== undefined && one === other && a.ifName === b.ifName;
  }

  /** Whether each machine runs in one pod, and none migrates. */
  get isComplete(): boolean {
    return this.#machines.every((machine) => {
      const pods = this.#launchersOf(machine);
      const isMoving = machine.isAbsent || machine.mustMigrate || machine.target !== undefined;
      return !isMoving && pods.length === 1 && pods[0]?.uid === machine.source;
    });
  }

  /** Machines that have to migrate, and have not: sentences. */
  get waiting(): readonly string[] {
    return this.#machines.flatMap(({ name, mustMigrate }) => (mustMigrate ? [`${name} has not migrated`] : []));
  }

  /** Returns the faults when all is quiet: sentences. */
  unfinished(addressesOf: (uid: string, ifName: string) => readonly string[]): string[] {
    const cluster = this.#cluster;
    return this.#machines
      .filter(({ hasClaims }) => hasClaims)
      .flatMap((machine) =>
        NICS.flatMap(([ifName], nic) => {
          const name = claimName(machine.name, ifName);
          const { ips = [], ownerPod = "" } = Object(cluster.server.collection(CLAIMS).get(name)?.status);
          const pod = this.#podOf(machine, machine.source);
          const given = (ips as readonly string[]).map((each) => each.replace(/\/.*/, "")).toSorted();
          const has = addressesOf(machine.source ?? "", ifName).toSorted();
          const wanted = machine.wishes?.[nic] ?? has;
          const isRight =
            [given, wanted.toSorted()].every((each) => each.join() === has.join()) && ownerPod === pod?.name;
          return isRight ? [] : [`claim ${name} says ${given} of ${ownerPod}, and ${pod?.name} has ${has}`];
        }),
      );
  }

  #machineOf(pod: string): VirtualMachine | undefined {
    const { name, life } = LAUNCHER.exec(pod)?.groups ?? {};
    return this.#machines.find((each) => each.name === name && String(each.life) === life && !each.isAbsent);
  }

  #launchersOf({ name }: VirtualMachine): readonly PodObject[] {
    return this.#cluster.pods.filter((pod) => pod.name.startsWith(`${name}-`));
  }

  /** Undefined unless it is there to stay. */
  #podOf(machine: VirtualMachine, uid: string | undefined): PodObject | undefined {
    const found = this.#launchersOf(machine).find((pod) => pod.uid === uid);
    return found?.isDeleting === false && !found.isFinished ? found : undefined;
  }

  /** Pods of earlier runs and of migrations that have ended. */
  #cleanUp(machine: VirtualMachine): void {
    const cluster = this.#cluster;
    for (const { name, uid, isDeleting, isFinished } of this.#launchersOf(machine)) {
      if (isDeleting || uid === machine.source || uid === machine.target?.uid) continue;
      if (!isFinished || cluster.random.chance(CLEANUP_SHARE)) cluster.deletePod(name);
    }
  }

  #goOn(machine: VirtualMachine): void {
    const { target } = machine;
    const cluster = this.#cluster;
    const { nowMs, random } = cluster;
    if (target === undefined && machine.mustMigrate) this.#migrate(machine, random);
    if (target === undefined) return;
    const [from, to] = [this.#podOf(machine, machine.source), this.#podOf(machine, target.uid)];
    if (to === undefined || from === undefined || (!target.isUp && nowMs - target.startedMs > TARGET_MS)) {
      machine.target = undefined;
      return;
    }
    if (!target.isUp && cluster.runs(target.uid)) {
      target.isUp = true;
      target.endMs = nowMs + random.pick([300, 2_000, 8_000]);
    }
    if (!target.isUp || nowMs < target.endMs) return;
    machine.target = undefined;
    if (!cluster.runs(target.uid) || !(machine.mustMigrate || random.chance(SUCCESS_SHARE))) return;
    machine.source = target.uid;
    machine.mustMigrate = false;
    this.migrations++;
    cluster.finishPod(from.name);
  }

  /** Its pods end: by themselves, or because they are deleted. */
  #end(machine: VirtualMachine, isByItself: boolean): void {
    const source = this.#podOf(machine, machine.source);
    machine.source = undefined;
    machine.target = undefined;
    if (source !== undefined && isByItself) this.#cluster.finishPod(source.name);
  }

  #run(machine: VirtualMachine): void {
    const cluster = this.#cluster;
    const { server, random, readyNodes: nodes } = cluster;
    if (nodes.length === 0) return;
    machine.run++;
    const owner = { apiVersion: KUBEVIRT, kind: "VirtualMachine", name: machine.name, uid: uidOf(machine) };
    const metadata = { uid: runOf(machine), namespace: "shop", ownerReferences: [{ ...owner, controller: true }] };
    server.put(INSTANCES, machine.name, { metadata, spec: {}, status: { phase: "Running" } });
    machine.source = this.#launch(machine, random.pick(nodes));
  }

  #put(machine: VirtualMachine): void {
    const cluster = this.#cluster;
    const { server } = cluster;
    machine.life++;
    machine.isAbsent = false;
    const uid = uidOf(machine);
    server.put(MACHINES, machine.name, { metadata: { uid, namespace: "shop" }, spec: {} });
    if (!machine.hasClaims) return;
    for (const [nic, [ifName, network]] of NICS.entries()) {
      const name = claimName(machine.name, ifName);
      const metadata = { uid: `${uid}-${ifName}`, namespace: "shop", managedFields: STATUS_OF_BERTH };
      const ipRequests = machine.wishes?.[nic];
      const spec = { network, interface: ifName, ...(ipRequests === undefined ? {} : { ipRequests }) };
      server.put(CLAIMS, name, { metadata, spec });
    }
  }

  #poolsOf({ wishes }: VirtualMachine): Readonly<Record<string, string>> {
    if (wishes === undefined) return {};
    const pools = NICS.map(([ifName]) => ({ interface: ifName, ...DEMAND_POOLS }));
    return { "ipam.vendor.io/ippools": JSON.stringify(pools) };
  }

  /** Returns the UID of the launcher. */
  #launch(machine: VirtualMachine, node: string, labels: Readonly<Record<string, string>> = {}): string {
    const cluster = this.#cluster;
    const uid = cluster.newUid();
    const name = `${machine.name}-${machine.life}-${++this.#lastLauncher}`;
    const run = runOf(machine);
    this.#runs.set(uid, run);
    const owner = { apiVersion: KUBEVIRT, kind: "VirtualMachineInstance", name: machine.name, uid: run };
    cluster.server.put(PODS, name, {
      metadata: {
        uid,
        namespace: "shop",
        finalizers: ["simulation/kubelet"],
        labels: { "kubevirt.io": "virt-launcher", ...labels },
        annotations: { ...networksOf(machine), ...this.#poolsOf(machine) },
        ownerReferences: [{ ...owner, controller: true }],
      },
      spec: { nodeName: node, nics: NICS, restartPolicy: "Never" },
      status: { phase: "Pending" },
    });
    return uid;
  }
}

function uidOf({ name, life }: VirtualMachine): string {
  return `${name}-uid-${life}`;
}

function runOf(machine: VirtualMachine): string {
  return `${uidOf(machine)}-run-${machine.run}`;
}

function networksOf({ name, hasClaims }: VirtualMachine): Readonly<Record<string, string>> {
  const selections = NICS.map(([ifName, network]) => ({
    name: network,
    namespace: "shop",
    interface: ifName,
    ...(hasClaims ? { "ipam-claim-reference": claimName(name, ifName) } : {}),
  }));
  const networks = { "k8s.v1.cni.cncf.io/networks": JSON.stringify(selections.slice(1)) };
  if (!hasClaims) return networks;
  return { ...networks, "v1.multus-cni.io/default-network": JSON.stringify(selections.slice(0, 1)) };
}

/** Returns addresses for a NIC of the machine with this number, one of each family. */
function demandsOf(number: number, nic: number): readonly string[] {
  const wish = number + nic * MACHINES_MOST;
  return [`10.6.255.${wish}`, `fd00::ff${wish.toString(16).padStart(2, "0")}`];
}
