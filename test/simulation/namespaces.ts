/**
 * Network namespaces of one machine, by path: its sandboxes', other tools', and those behind numbers of processes. The
 * product's ports to NICs are answered from them as the kernel would (host/agent/fences/orphan-nics.ts,
 * host/agent/detection/links.ts).
 */
import type { DetectionLinks } from "../../host/agent/detection/open-detection.ts";
import type { NicAccess } from "../../host/agent/fences/orphan-nics.ts";
import type { SoughtNic } from "../../host/agent/netns/find-netns.ts";
import { formatIp, type Ip, parseIp } from "../../host/net/ip.ts";
import type { Mac } from "../../host/net/mac.ts";
import { UNKNOWN_CONTAINER } from "../../host/registry/journal.ts";
import type { Seeded } from "../world/seeded.ts";
import type { SimulatedTime } from "./simulated-time.ts";
import type { Timeline } from "./timeline.ts";

/** Time of a probe that names none: milliseconds. */
const PROBE_MS = 1_000;
/** MAC of the node's links. */
const NODE_MAC = "02:00:00:00:00:01" as Mac;
/** Name of the node's link to the segment of an address space, before the space's own name. */
const UPLINK = "uplink";
/** Share of sandboxes whose path an earlier one had, if there is such a path. */
const REUSED_SHARE = 0.7;
/** It is one of so many that were used last. */
const LAST_PATHS = 2;

/** A pod's NIC that has addresses. */
export interface Nic {
  readonly machine: string;
  readonly pod: string;
  /** "" of a NIC that is no pod's. */
  readonly uid: string;
  readonly containerId: string;
  readonly ifName: string;
  readonly network: string;
  /** Those that answer, by {@link addressIn}. */
  readonly addresses: Set<string>;
  readonly mac: Mac;
  /** When its ADD began, on the simulation's clock: milliseconds. */
  readonly sinceMs: number;
  /** Name of the link that has the addresses; undefined: none has them, they are inside of a guest behind a bridge. */
  link: string | undefined;
  /** Its DEL was sent: the link goes in a moment, and its addresses may be recorded as released. */
  isReleased: boolean;
}

/** All machines share one segment for each address space: the owner of an address there answers for it. */
export interface Segment {
  /** A NIC has got its addresses. */
  onUp(nic: Nic): void;
  /** A NIC has lost addresses. */
  onDown(nic: Nic, addresses: readonly string[]): void;
  /** The product takes addresses off the NIC, or sets its link down: as an orphan's, or as the container's. */
  onTaken(nic: Nic, from: "an orphan" | { readonly containerId: string }): void;
  /** The DEL of the NIC was sent. */
  onReleasing(nic: Nic): void;
  /** The DEL was answered. */
  onReleased(nic: Nic): void;
  /** Returns the MAC address that answers for the address, by {@link addressIn}; undefined if none does. */
  macOf(address: string): Mac | undefined;
  loseJournal(node: string): void;
  copyJournal(node: string): void;
  /** Restores the journal from its copy. */
  restoreJournal(node: string): void;
  /** The node is on again. */
  boot(node: string): void;
}

/** Paths that a machine's runtime gives: of the container, by names that come again, by numbers of processes. */
export type Paths = "containers" | "names" | "numbers";

/** `isNode`: the node's own. `isMute`: it answers for no address that comes up. */
interface Namespace {
  readonly cookie: bigint;
  readonly nics: Map<string, Nic>;
  readonly isNode?: boolean;
  isMute: boolean;
}

interface NamespacesOptions {
  readonly machine: string;
  readonly time: SimulatedTime;
  readonly timeline: Timeline;
  readonly segment: Segment;
  readonly paths: Paths;
}

export class Namespaces {
  /** By container: the sandboxes whose network namespace exists, with their NICs. */
  readonly sandboxes = new Map<string, Map<string, Nic>>();
  /** NICs whose main plugin has not configured them yet: when their ADD was answered, and when they will be up. */
  readonly pending = new Map<Nic, { readonly answeredMs: number; readonly upMs: number }>();
  readonly #options: NamespacesOptions;
  readonly #random: Seeded;
  readonly #byPath = new Map<string, Namespace>();
  /** By container, also of those that are gone: their DELs name it. */
  readonly #pathOf = new Map<string, string>();
  /** Paths that may come again, the longest free first. */
  readonly #freed = new Set<string>();
  #lastPath = 0;
  #lastCookie = 0n;

  constructor(options: NamespacesOptions) {
    this.#options = options;
    this.#random = options.time.process(`namespaces of ${options.machine}`).random;
  }

  get paths(): Paths {
    return this.#options.paths;
  }

  add(containerId: string): void {
    const nics = new Map<string, Nic>();
    const path = this.#newPath(containerId);
    this.sandboxes.set(containerId, nics);
    this.#pathOf.set(containerId, path);
    this.#byPath.set(path, this.#create(nics));
  }

  #create(nics: Map<string, Nic>): Namespace {
    return { cookie: ++this.#lastCookie, nics, isMute: false };
  }

  remove(containerId: string): void {
    const nics = this.sandboxes.get(containerId);
    if (nics === undefined) return;
    this.sandboxes.delete(containerId);
    for (const [path, namespace] of this.#byPath) if (namespace.nics === nics) this.#free(path);
    for (const nic of nics.values()) this.#end(nic);
  }

  /** All of them end, also those that are no sandbox's. */
  clear(): void {
    for (const id of [...this.sandboxes.keys()]) this.remove(id);
    for (const path of this.#byPath.keys()) this.#free(path);
  }

  #free(path: string): void {
    this.#byPath.delete(path);
    if (this.#options.paths !== "containers") this.#freed.add(path);
  }

  /** The main plugin removes the link of that name; a pod may have renamed the NIC since. */
  removeNic(containerId: string, ifName: string): void {
    const nics = this.sandboxes.get(containerId);
    const nic = nics?.get(ifName);
    if (nic === undefined || (nic.link !== undefined && nic.link !== ifName)) return;
    nics?.delete(ifName);
    this.#end(nic);
  }

  /** The main plugin has configured the NIC, unless that is gone. */
  bringUp(nic: Nic, addresses: readonly string[]): boolean {
    this.pending.delete(nic);
    if (this.sandboxes.get(nic.containerId)?.get(nic.ifName) !== nic) return false;
    for (const address of addresses) nic.addresses.add(address);
    if (!this.#isMute(nic)) this.#options.segment.onUp(nic);
    return true;
  }

  #isMute({ containerId }: Nic): boolean {
    const nics = this.sandboxes.get(containerId);
    return [...this.#byPath.values()].some((namespace) => namespace.nics === nics && namespace.isMute);
  }

  /** The guest that has the NIC's addresses ends. */
  silence(nic: Nic): void {
    const lost = [...nic.addresses];
    nic.addresses.clear();
    this.#options.segment.onDown(nic, lost);
  }

  #end(nic: Nic): void {
    this.pending.delete(nic);
    this.#options.segment.onDown(nic, [...nic.addresses]);
  }

  get nics(): readonly Nic[] {
    return [...this.sandboxes.values()].flatMap((nics) => [...nics.values()]);
  }

  /** Returns the path that the container's ADDs and DELs name. */
  pathOf(containerId: string): string {
    return this.#pathOf.get(containerId) ?? `/run/netns/${containerId}`;
  }

  /** A process gets a number that one of a container that is gone had: the node's own, or another container's. */
  takeNumber(random: Seeded): void {
    const free = [...this.#freed].filter(isNumber);
    if (free.length === 0) return;
    const path = random.pick(free);
    this.#freed.delete(path);
    const others = [...this.#byPath.values()].filter(({ isNode = false }) => !isNode);
    const other = others.length > 0 && random.chance(0.5) ? random.pick(others) : undefined;
    this.#byPath.set(path, other ?? { ...this.#create(new Map()), isNode: true });
    this.#options.timeline.note(
      `${this.#options.machine}: ${path} is ${other === undefined ? "the node's" : "a pod's"}`,
    );
  }

  /** The node's own processes end. */
  freeNumbers(): void {
    for (const [path, { isNode = false }] of this.#byPath) if (isNode) this.#free(path);
  }

  /** Another tool makes a namespace with the addresses, in an address space of its own; returns its path. */
  addTool(addresses: readonly string[]): string {
    const { machine, time, timeline } = this.#options;
    const path = `/run/netns/tool-${++this.#lastPath}`;
    const nic: Nic = {
      ...{ machine, pod: "another tool", uid: "", containerId: path, ifName: "eth0", network: "", link: "eth0" },
      ...{ addresses: new Set(addresses.map((each) => addressIn("tool", plain(each)))), mac: NODE_MAC },
      ...{ sinceMs: time.nowMs, isReleased: false },
    };
    this.#byPath.set(path, this.#create(new Map([["eth0", nic]])));
    timeline.note(`${machine}: another tool's ${path} has ${[...nic.addresses].join(" ")}`);
    return path;
  }

  removeTool(path: string): void {
    this.#byPath.delete(path);
  }

  #newPath(containerId: string): string {
    const { paths } = this.#options;
    if (paths === "containers") return `/run/netns/${containerId}`;
    const reusable = [...this.#freed].slice(-LAST_PATHS);
    if (reusable.length === 0 || !this.#random.chance(REUSED_SHARE)) {
      const number = ++this.#lastPath;
      return paths === "names" ? `/run/netns/cni-${number}` : `/proc/${1_000 + number}/ns/net`;
    }
    const path = this.#random.pick(reusable);
    this.#freed.delete(path);
    return path;
  }

  #candidates(ip: Ip, known: readonly string[]): readonly string[] {
    const isCandidate = ([path, namespace]: readonly [string, Namespace]): boolean =>
      !isNumber(path) && !known.includes(path) && nicsOf(namespace).some((nic) => isOnLink(nic, ip));
    return [...this.#byPath].filter(isCandidate).map(([path]) => path);
  }

  readonly access: NicAccess = {
    readCookie: (netns) => this.#byPath.get(netns)?.cookie,
    readNetnsStatus: async ({ netns, netnsCookie, ip }) => {
      if (netns === undefined || netns === "") return "unknown";
      const found = this.#find(netns, netnsCookie);
      if (found === undefined) return netnsCookie === undefined && isNumber(netns) ? "unknown" : "gone";
      return nicsOf(found).some((nic) => isOnLink(nic, ip)) ? "inUse" : "there";
    },
    findNetns: (sought, known) => {
      const all = [...this.#byPath];
      const own = all.find(([, { nics }]) => [...nics.values()].some((nic) => this.#isRecorded(nic, sought)));
      if (own !== undefined) return { kind: "proven", netns: own[0], netnsCookie: own[1].cookie };
      const candidates = this.#candidates(sought.ip, known);
      const isAttaching = [...this.pending.keys()].some(({ uid }) => uid === sought.owner);
      return candidates.length > 0 || isAttaching ? { kind: "unknown", candidates } : { kind: "absent" };
    },
    fenceNics: ({ netns, netnsCookie, ips, hasMachine, isOrphan = true }) => {
      const found = this.#find(netns, netnsCookie);
      if (found === undefined || found.isNode === true) return undefined;
      const isProven = netnsCookie !== undefined || !isNumber(netns);
      if (isProven && isOrphan) found.isMute = true;
      const isWanted = (nic: Nic): boolean => (hasMachine && isProven) || ips.some((ip) => isOnLink(nic, ip));
      return nicsOf(found)
        .filter(isWanted)
        .map((nic) => {
          if (isOrphan || !nic.isReleased) this.#options.segment.onTaken(nic, "an orphan");
          this.#take(nic, ips);
          return nic.link ?? nic.ifName;
        });
    },
  };

  /** As the last release calls it: it takes the first namespace that has the address. */
  readonly accessOfLastRelease = {
    ...this.access,
    findNetns: (ip: Ip, known: readonly string[]) => this.#candidates(ip, known)[0],
  } as unknown as NicAccess;

  /** Another namespace at the path is none of the row's, which may have another path. */
  #find(netns: string, cookie: bigint | undefined): Namespace | undefined {
    if (cookie === undefined) return this.#byPath.get(netns);
    return [...this.#byPath.values()].find((namespace) => namespace.cookie === cookie);
  }

  /** The runtime keeps the results of ADDs that have ended. */
  #isRecorded(nic: Nic, { owner, containerId, ifName }: SoughtNic): boolean {
    const isOf = containerId === UNKNOWN_CONTAINER ? nic.uid === owner : nic.containerId === containerId;
    return isOf && nic.uid !== "" && nic.ifName === ifName && !this.pending.has(nic);
  }

  /** Returns whether it had any of them. */
  #take(nic: Nic, ips: readonly Ip[]): boolean {
    const { machine, timeline, segment } = this.#options;
    const lost = [...nic.addresses].filter((each) => ips.some((ip) => plain(each) === formatIp(ip)));
    if (lost.length === 0) return false;
    for (const address of lost) nic.addresses.delete(address);
    timeline.note(`${machine}: ${lost.join(" ")} is taken off ${nic.ifName} of ${nic.pod} (${nic.uid})`);
    segment.onDown(nic, lost);
    return true;
  }

  get links(): DetectionLinks {
    const { time, segment } = this.#options;
    const linkOf = (netnsPath: string, name: string) => ({ netnsPath, index: 1, name, mac: NODE_MAC });
    return {
      random: () => 0.5,
      detect: async ({ link, addresses, windowMs, ownMacs }) => {
        const space =
          link.netnsPath === "" ? link.name.slice(UPLINK.length) : spaceOf(this.#at(link.netnsPath, link.name));
        await time.sleep(windowMs ?? PROBE_MS, "probe");
        for (const ip of addresses) {
          const mac = segment.macOf(addressIn(space, formatIp(ip)));
          if (mac !== undefined && !ownMacs?.has(mac)) return { ip, mac };
        }
        return undefined;
      },
      withQuietLink: ({ netnsPath, ifName }, work) => work(linkOf(netnsPath, ifName)),
      findNodeLink: (name) => (name === "" ? undefined : linkOf("", name)),
      links: {
        observe: (netns, ifName) => {
          const nic = this.#at(netns, ifName);
          const ips = [...(nic?.addresses ?? [])].map((each) => parseIp(plain(each))).filter((ip) => ip !== undefined);
          const addresses = ips.map((ip) => ({ ip, length: ip.family === 4 ? 16 : 64 }));
          return nic && { index: 1, mac: nic.mac, flags: 0, up: true, addresses };
        },
        withdraw: ({ containerId, netns = "", ifName, ip, mac }, current) => {
          const nic = this.#at(netns, ifName);
          const isCurrent =
            ifName === current.ifName && this.#byPath.get(netns)?.nics === this.#byPath.get(current.netns)?.nics;
          if (nic === undefined || isCurrent || (mac !== undefined && mac !== nic.mac)) return undefined;
          if (hasAddress(nic, ip)) segment.onTaken(nic, { containerId });
          return this.#take(nic, [ip]) ? nic.mac : undefined;
        },
        findParentName: (netns, ifName) => {
          const nic = this.#at(netns, ifName);
          return nic === undefined ? "" : `${UPLINK}${spaceOf(nic)}`;
        },
        findAskingLink: (nic) => nic,
      },
    };
  }

  #at(netns: string, link: string): Nic | undefined {
    const found = this.#byPath.get(netns);
    return found && nicsOf(found).find((nic) => nic.link === link);
  }
}

/** Networks whose pools are of an address space of their own, which has their name. */
const SPACES: ReadonlySet<string> = new Set(["red"]);

/** Returns the address space of a network's pools; "" for most. */
export function spaceOfNetwork(network: string): string {
  return SPACES.has(network) ? network : "";
}

function spaceOf(nic: Nic | undefined): string {
  return spaceOfNetwork(nic?.network ?? "");
}

/** Returns a text that stands for the address in the space: `10.6.0.1`, `10.6.0.1@red`. */
export function addressIn(space: string, address: string): string {
  return space === "" ? address : `${address}@${space}`;
}

function plain(address: string): string {
  return address.replace(/@.*/, "");
}

/** A path that ends with a process. */
function isNumber(netns: string): boolean {
  return netns.startsWith("/proc/");
}

function nicsOf({ nics }: Namespace): readonly Nic[] {
  return [...nics.values()];
}

function hasAddress({ addresses }: Nic, ip: Ip): boolean {
  return [...addresses].some((each) => plain(each) === formatIp(ip));
}

function isOnLink(nic: Nic, ip: Ip): boolean {
  return nic.link !== undefined && hasAddress(nic, ip);
}
