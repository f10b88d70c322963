/** One pod's life in a random walk: what is done to it, and what must hold afterwards by what has been asked. */
import { expect } from "vitest";
import type { Seeded } from "../world/seeded.ts";
import { makeNic, type Names, type Nic, removeNic, type World } from "./coordinator-world.ts";

export type Kind = "underlay" | "ptp" | "bridge";

export interface Conf {
  readonly podDefaultRouteNic: string;
  readonly serviceCIDR: readonly string[];
  readonly hijackCIDR: readonly string[];
  readonly hostRuleTable: number;
  readonly serviceSnat: string;
  readonly mode: string;
  readonly podMACPrefix: string;
  readonly tunePodRoutes: boolean;
  readonly hostRPFilter: number;
}

type Family = 4 | 6;

export interface Attached {
  readonly nic: Nic;
  readonly conf: Conf;
}

/** Facts that coordinator-oracle.ts needs. */
export interface PodFacts {
  readonly kind: Kind;
  readonly containerId: string;
  readonly nics: readonly Nic[];
  /** Undefined where it is not said: nothing was tuned, or something is broken. */
  readonly defaultNic: Readonly<Record<Family, string | undefined>> | undefined;
  /** Networks that are led over the node. */
  readonly overNode: readonly string[];
  /** NICs that the node reaches. */
  readonly reached: readonly Nic[];
  readonly tuned: boolean;
}

interface WalkOptions {
  readonly names: Names;
  readonly world: World;
  readonly chance: Seeded;
  readonly kind: Kind;
}

const NAMES = ["eth0", "net1", "net2", "net3"];
const SERVICES = ["10.96.0.0/16", "fd00:96::/112"];
const HIJACKED = ["169.254.20.10/32", "fd00:53::a/128"];

export class Walk {
  readonly story: string[] = [];
  readonly #options: WalkOptions;
  readonly #links = new Map<string, Nic>();
  readonly #attached = new Map<string, Attached>();
  /** Without a link, not detached yet. */
  readonly #broken = new Set<string>();
  /** The pair was recreated: what the node knew of these NICs went with the old one. */
  readonly #forgotten = new Set<string>();
  readonly #overNode = new Set<string>();
  readonly #default: Record<Family, string | undefined> = { 4: undefined, 6: undefined };
  readonly #tunePodRoutes: boolean;
  readonly #hostRPFilter: number;

  constructor(options: WalkOptions) {
    this.#options = options;
    const { chance, names, kind } = options;
    this.#tunePodRoutes = chance.chance(0.8);
    this.#hostRPFilter = chance.pick([-1, 0, 2]);
    if (kind !== "underlay") {
      const first: Nic = {
        name: "eth0",
        net: 244,
        families: chance.pick([[4], [6], [4, 6]] as const),
        gateway: true,
        kind,
        secondGateway: chance.chance(0.3),
      };
      makeNic(names, first);
      this.#links.set(first.name, first);
      this.story.push(`first ${JSON.stringify(first)}`);
      for (const family of first.families) this.#default[family] = first.name;
    }
  }

  #conf(): Conf {
    const { chance, kind } = this.#options;
    return {
      podDefaultRouteNic: chance.pick(["", "", ...NAMES]),
      serviceCIDR: chance.chance(0.7) ? SERVICES : [],
      hijackCIDR: chance.chance(0.4) ? HIJACKED : [],
      hostRuleTable: chance.pick([500, 1000]),
      serviceSnat: chance.pick(["auto", "on", "off"]),
      mode: chance.pick(["auto", kind === "underlay" ? "underlay" : "overlay"]),
      podMACPrefix: chance.pick(["", "", "0a:1b"]),
      tunePodRoutes: this.#tunePodRoutes,
      hostRPFilter: this.#hostRPFilter,
    };
  }

  #newNic(name: string): Nic {
    const { chance } = this.#options;
    return {
      name,
      net: 6 + NAMES.indexOf(name),
      families: chance.pick([[4], [6], [4, 6], [4, 6]] as const),
      gateway: chance.chance(0.8),
      secondGateway: chance.chance(0.3),
      kind: "macvlan",
    };
  }

  /** One thing happens. */
  async step(): Promise<void> {
    const { chance, kind } = this.#options;
    const free = NAMES.filter((name) => !this.#links.has(name) && !this.#attached.has(name));
    const present = [...this.#attached.values()];
    const what = chance.below(10);
    const hasFirst = kind !== "underlay" || this.#attached.has("eth0");
    if (!hasFirst && free.includes("eth0")) return this.#attachNew("eth0");
    if (what < 5 && free.length > 0 && hasFirst) return this.#attachNew(chance.pick(free));
    if (present.length === 0) return;
    const one = chance.pick(present);
    if (what < 7) return this.#attachAgain(one);
    if (what < 8 && !this.#broken.has(one.nic.name)) return this.#takeAway(one);
    return this.#detach(one);
  }

  async #attachNew(name: string): Promise<void> {
    const nic = this.#newNic(name);
    makeNic(this.#options.names, nic);
    this.#links.set(name, nic);
    await this.#attach({ nic, conf: this.#conf() });
  }

  async #attachAgain({ nic, conf }: Attached): Promise<void> {
    if (this.#broken.has(nic.name)) return;
    const next = { ...(this.#options.chance.chance(0.5) ? conf : this.#conf()) };
    // what is in a table of the node is found again by the same configuration only
    await this.#attach({ nic, conf: { ...next, hostRuleTable: conf.hostRuleTable, podMACPrefix: conf.podMACPrefix } });
  }

  async #attach({ nic, conf }: Attached): Promise<void> {
    const { world, kind } = this.#options;
    this.story.push(`ADD ${JSON.stringify(nic)} ${JSON.stringify(conf)}`);
    await world.add(nic, conf);
    if (nic.name === "eth0" && kind === "underlay" && !this.#attached.has("eth0")) {
      for (const other of this.#attached.keys()) this.#forgotten.add(other);
    }
    const isNew = !this.#attached.has(nic.name);
    this.#forgotten.delete(nic.name);
    this.#attached.set(nic.name, { nic, conf });
    for (const network of [...conf.serviceCIDR, ...conf.hijackCIDR]) {
      if (nic.families.some((family) => network.includes(":") === (family === 6))) this.#overNode.add(network);
    }
    for (const family of [4, 6] as const) {
      // the first NIC keeps the default route that its plugin has just made
      if (isNew && nic.name === "eth0" && this.#hasDefault("eth0", family)) this.#default[family] = "eth0";
      this.#moveDefault(family, isNew ? nic : undefined, conf.podDefaultRouteNic);
    }
  }

  #hasDefault(name: string | undefined, family: Family): boolean {
    const nic = name === undefined ? undefined : this.#links.get(name);
    return nic?.gateway === true && nic.families.includes(family);
  }

  /** The main plugin of a new NIC has just put its default route into the main table. */
  #moveDefault(family: Family, created: Nic | undefined, wanted: string): void {
    if (this.#hasDefault(wanted, family)) this.#default[family] = wanted;
    else if (!this.#hasDefault(this.#default[family], family))
      this.#default[family] = this.#hasDefault(created?.name, family) ? created?.name : this.#firstAble(family);
  }

  /** The first NIC before the others, which are in the order in which they came. */
  #firstAble(family: Family): string | undefined {
    const able = [...this.#links.keys()].filter((name) => this.#hasDefault(name, family));
    return able.includes("eth0") ? "eth0" : able[0];
  }

  /** Another process deletes the link. */
  async #takeAway({ nic }: Attached): Promise<void> {
    this.story.push(`link del ${nic.name}`);
    removeNic(this.#options.names, nic);
    this.#links.delete(nic.name);
    this.#broken.add(nic.name);
  }

  async #detach({ nic, conf }: Attached): Promise<void> {
    const { world, names, kind } = this.#options;
    const { name } = nic;
    this.story.push(`DEL ${name}`);
    await world.del(nic, conf);
    if (!this.#broken.has(name)) removeNic(names, nic);
    for (const set of [this.#links, this.#attached, this.#broken, this.#forgotten]) set.delete(name);
    const isLast = [...this.#attached.keys()].every((other) => this.#broken.has(other));
    if ((name === "eth0" && kind === "underlay") || isLast) this.#overNode.clear();
    for (const family of [4, 6] as const) {
      if (!this.#hasDefault(this.#default[family], family)) this.#default[family] = this.#firstAble(family);
    }
  }

  /**
   * Whether the default routes are where the configuration wants them, not where another one that came later put them.
   */
  #isInForce({ nic, conf }: Attached): boolean {
    if (this.#forgotten.has(nic.name)) return false;
    const { podDefaultRouteNic: wanted } = conf;
    const families = [4, 6] as const;
    return families.every((family) => !this.#hasDefault(wanted, family) || this.#default[family] === wanted);
  }

  /** Without a pair the later NICs of an underlay pod are left to themselves, and beside a broken NIC all are. */
  #isWhole(): boolean {
    const { kind } = this.#options;
    return this.#broken.size === 0 && (kind !== "underlay" || this.#attached.has("eth0"));
  }

  /** Every NIC whose configuration is in force is as it was set up. */
  async checkAll(): Promise<void> {
    if (!this.#isWhole()) return;
    for (const each of this.#attached.values()) {
      if (this.#isInForce(each)) await this.#options.world.check(each.nic, each.conf);
    }
  }

  pod(): PodFacts {
    const { kind, names } = this.#options;
    const whole = this.#isWhole();
    const reached = [...this.#attached.values()].filter(({ nic }) => whole && !this.#forgotten.has(nic.name));
    return {
      kind,
      containerId: `c-${names.pod}`,
      nics: whole ? [...this.#links.values()] : [],
      defaultNic: whole && this.#tunePodRoutes ? { ...this.#default } : undefined,
      overNode: whole && this.#attached.size > 0 ? [...this.#overNode] : [],
      reached: reached.map(({ nic }) => nic),
      tuned: whole && this.#tunePodRoutes,
    };
  }

  /** All goes, in a random order. */
  async end(): Promise<void> {
    const { chance, names } = this.#options;
    while (this.#attached.size > 0) await this.#detach(chance.pick([...this.#attached.values()]));
    for (const nic of this.#links.values()) removeNic(names, nic);
    expect(this.#broken.size).toBe(0);
  }
}
