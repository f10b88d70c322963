/**
 * What befalls NICs besides ADD and DEL: main plugins that are slow, pods that rename their NICs or move addresses,
 * numbers of processes and names of namespaces that come again, namespaces of other tools. What shows a known fault
 * of the product happens only in a run that may show it.
 */
import type { Seeded } from "../world/seeded.ts";
import type { Call, Machine, MainPlugin } from "./machine.ts";
import type { Nic } from "./namespaces.ts";
import type { FindingName } from "./open-findings.ts";
import type { SimulatedTime } from "./simulated-time.ts";
import type { Timeline } from "./timeline.ts";

/** Longest time of a main plugin that the product allows for, with something to spare: milliseconds. */
const SHORT_MS = 4_000;
/** Longest time for which the product may act on a path that it has read before: milliseconds. */
const STALE_MS = 30_000;

interface NicLifeOptions {
  readonly time: SimulatedTime;
  readonly timeline: Timeline;
  readonly machines: () => readonly Machine[];
  /** Whether the API server has the pod with this UID, and it has not finished. */
  readonly isRunning: (uid: string) => boolean;
  /** Whether the pod is a virtual machine's. */
  readonly isGuest: (pod: string) => boolean;
  /** Guests have the addresses themselves, behind a bridge in their pod. */
  readonly hasBridges: boolean;
  /** Known fault of the product that the run may show. */
  readonly shows: FindingName | undefined;
}

export class NicLife implements MainPlugin {
  /** Share of main plugins that are slow. */
  slowShare = 0;
  readonly #options: NicLifeOptions;
  readonly #random: Seeded;

  constructor(options: NicLifeOptions) {
    this.#options = options;
    this.#random = options.time.process("main plugins").random;
  }

  /** Shortest time until a path is another namespace's: milliseconds. */
  get reusedAfterMs(): number {
    return this.#mayShow("a path that is used again") ? 0 : STALE_MS;
  }

  linkOf({ pod, ifName }: Call): string | undefined {
    return this.#isBridged(pod) ? undefined : ifName;
  }

  delayOf(nic: Nic): number {
    if (this.slowShare === 0 || !this.#random.chance(this.slowShare)) return 0;
    const delayMs = this.#random.below(this.#random.pick([1_000, SHORT_MS, 30_000]));
    const isSafe = this.#options.isRunning(nic.uid) || this.#mayShow("an address that comes up late");
    return isSafe ? delayMs : Math.min(delayMs, SHORT_MS);
  }

  goesOn(): boolean {
    return this.#random.chance(0.5);
  }

  /**
   * A living pod renames a NIC, or moves its addresses to a bridge or to a guest of its own; some move back. Returns
   * that NIC.
   */
  move(random: Seeded): Nic | undefined {
    const { time, timeline } = this.#options;
    const nics = this.#nics.filter((nic) => this.#mayMove(nic));
    if (nics.length === 0) return undefined;
    const nic = random.pick(nics);
    nic.link = [`${nic.ifName}-old`, "br0", undefined][random.below(3)];
    timeline.note(`${nic.machine}: ${nic.ifName} of ${nic.pod} (${nic.uid}) is ${nic.link ?? "in a guest"} now`);
    const back = (): void => {
      nic.link = nic.ifName;
    };
    if (random.chance(0.7))
      time.schedule(random.pick([300, 3_000, 20_000]), "a NIC has its name again", time.current, back);
    return nic;
  }

  /** Returns the NICs on which a main plugin is at work. */
  get pending(): readonly Nic[] {
    return this.#options.machines().flatMap(({ namespaces }) => [...namespaces.pending.keys()]);
  }

  /** Returns whether the pod may become an orphan. Its NICs are as their ADD made them by then, and stay so. */
  mayOrphan(uid: string): boolean {
    const isSafe = (machine: Machine): boolean => nicsOf(machine, uid).every((nic) => this.#mayLeave(machine, nic));
    if (!this.#options.machines().every(isSafe)) return false;
    this.#moveBack(uid);
    return true;
  }

  /** Whether a main plugin is at work on one of its NICs: no container has started. */
  isStarting(uid: string): boolean {
    return this.pending.some((nic) => nic.uid === uid);
  }

  /** The containers of the pod have ended, and guests with them. */
  finish(uid: string): void {
    for (const machine of this.#options.machines())
      for (const nic of nicsOf(machine, uid)) if (nic.link === undefined) machine.namespaces.silence(nic);
    this.#moveBack(uid);
  }

  #moveBack(uid: string): void {
    if (this.#mayShow("a renamed NIC")) return;
    for (const machine of this.#options.machines())
      for (const nic of nicsOf(machine, uid)) if (!this.#isBridged(nic.pod)) nic.link = nic.ifName;
  }

  /** Returns whether the machine's agent may end: it alone knows which addresses of orphans are still to come up. */
  mayEndAgent({ namespaces }: Machine): boolean {
    const isOrphan = ({ uid }: Nic): boolean => !this.#options.isRunning(uid);
    return this.#mayShow("an address that comes up late") || ![...namespaces.pending.keys()].some(isOrphan);
  }

  /** Returns whether its pods can be found without its journal: by addresses on links of namespaces that have names. */
  mayLoseJournal(machine: Machine): boolean {
    const isFound = machine.namespaces.paths !== "numbers" || this.#mayShow("a machine behind a path by number");
    return isFound && this.mayEndAgent(machine);
  }

  /** A process of one of the machines gets a number that a container had. */
  takeNumber(random: Seeded): void {
    const { namespaces } = random.pick(this.#options.machines());
    if (random.chance(0.3)) namespaces.freeNumbers();
    else namespaces.takeNumber(random);
  }

  /** Another tool gives addresses of a pod to a namespace of its own, for so long. */
  addTool(random: Seeded, forMs: number): void {
    const { time, machines } = this.#options;
    const nics = this.#nics.filter(({ addresses }) => addresses.size > 0);
    if (nics.length === 0) return;
    const { namespaces } = random.pick(machines());
    const path = namespaces.addTool([...random.pick(nics).addresses]);
    time.schedule(forMs, "another tool's namespace ends", time.current, () => namespaces.removeTool(path));
  }

  get #nics(): readonly Nic[] {
    return this.#options.machines().flatMap(({ namespaces }) => namespaces.nics);
  }

  #mayShow(name: FindingName): boolean {
    return this.#options.shows === name;
  }

  #isBridged(pod: string): boolean {
    return this.#options.hasBridges && this.#options.isGuest(pod);
  }

  #mayMove(nic: Nic): boolean {
    if (nic.addresses.size === 0 || nic.isReleased || this.#isBridged(nic.pod)) return false;
    return this.#options.isRunning(nic.uid) || this.#mayShow("a renamed NIC");
  }

  #mayLeave(machine: Machine, nic: Nic): boolean {
    const { namespaces, agentStartedMs = Number.POSITIVE_INFINITY } = machine;
    const pending = namespaces.pending.get(nic);
    const isShort =
      pending === undefined || (pending.upMs - pending.answeredMs <= SHORT_MS && agentStartedMs < pending.answeredMs);
    if (!isShort && !this.#mayShow("an address that comes up late")) return false;
    const isFound = !this.#isBridged(nic.pod) || namespaces.paths !== "numbers";
    return isFound || this.#mayShow("a machine behind a path by number");
  }
}

function nicsOf({ namespaces }: Machine, uid: string): readonly Nic[] {
  return namespaces.nics.filter((nic) => nic.uid === uid);
}
