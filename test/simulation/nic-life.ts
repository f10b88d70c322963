/**
 * Events of NICs besides ADD and DEL: main plugins that are slow, pods that rename their NICs or move addresses,
 * numbers of processes and names of namespaces that come again, namespaces of other tools.
 */
import type { Seeded } from "../world/seeded.ts";
import type { Call, Machine, MainPlugin } from "./machine.ts";
import type { Nic } from "./namespaces.ts";
import type { SimulatedTime } from "./simulated-time.ts";
import type { Timeline } from "./timeline.ts";

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

  linkOf({ pod, ifName }: Call): string | undefined {
    return this.#isBridged(pod) ? undefined : ifName;
  }

  delayOf(): number {
    if (this.slowShare === 0 || !this.#random.chance(this.slowShare)) return 0;
    return this.#random.below(this.#random.pick([1_000, 4_000, 30_000]));
  }

  goesOn(): boolean {
    return this.#random.chance(0.5);
  }

  isOrphan({ uid }: Nic): boolean {
    return !this.#options.isRunning(uid);
  }

  /**
   * A pod renames a NIC, or moves its addresses to a bridge or to a guest of its own; some move back. An
   * orphan has no guest that no label names: nothing on the node shows its addresses. Returns that NIC.
   */
  move(random: Seeded): Nic | undefined {
    const { time, timeline } = this.#options;
    const nics = this.#nics.filter((nic) => this.#mayMove(nic));
    if (nics.length === 0) return undefined;
    const nic = random.pick(nics);
    const links = [`${nic.ifName}-old`, "br0", undefined];
    nic.link = links[random.below(this.#options.isRunning(nic.uid) ? 3 : 2)];
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

  /** The pod becomes an orphan. */
  orphan(uid: string): void {
    for (const machine of this.#options.machines())
      for (const nic of nicsOf(machine, uid))
        if (nic.link === undefined && !this.#isBridged(nic.pod)) nic.link = nic.ifName;
  }

  /** Whether a main plugin is at work on one of its NICs: no container has started. */
  isStarting(uid: string): boolean {
    return this.pending.some((nic) => nic.uid === uid);
  }

  /** The containers of the pod have ended, and guests with them. */
  finish(uid: string): void {
    for (const machine of this.#options.machines())
      for (const nic of nicsOf(machine, uid)) if (nic.link === undefined) machine.namespaces.silence(nic);
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

  #isBridged(pod: string): boolean {
    return this.#options.hasBridges && this.#options.isGuest(pod);
  }

  #mayMove(nic: Nic): boolean {
    return nic.addresses.size > 0 && !nic.isReleased && !this.#isBridged(nic.pod);
  }
}

function nicsOf({ namespaces }: Machine, uid: string): readonly Nic[] {
  return namespaces.nics.filter((nic) => nic.uid === uid);
}
