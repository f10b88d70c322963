/**
 * Restores the node's objects for its pods when other software removes them: rule, routes, neighbours, the table of
 * nf_tables, settings of the pairs; and tells pods of the node's addresses that come and go. Changes that the kernel
 * reports start it, and the start of the agent; without changes it does nothing. Against a program that removes the
 * same again and again it backs off, and names the setting to change.
 * Effects: reads and changes of the node's namespace, the log, an event, metrics.
 */

import { setImmediate } from "node:timers/promises";
import { CniError } from "../../cni/error.ts";
import type { AttachRequest } from "../../cni/request.ts";
import { ConfigError } from "../../config/config-error.ts";
import type { PlacedEntry } from "../../config/network-definition.ts";
import { parseAlias } from "../../coordinator/plan/alias.ts";
import { BERTH_PROTOCOL, HOST_RULE_PREFERENCE, NFT_TABLE, SNAT_GROUPS } from "../../coordinator/plan/constants.ts";
import { type RepairKind, repairKindOf } from "../../coordinator/plan/node-repairs.ts";
import { isRetired } from "../../coordinator/plan/own-objects.ts";
import { SNAT_TABLE } from "../../coordinator/plan/plan-reply-path.ts";
import { findHostAddresses, isVirtualLink } from "../../coordinator/plan/plan-service-path.ts";
import { ENOENT, ENOTTY, EPROTONOSUPPORT } from "../../kernel/errno.ts";
import { unlessRefused } from "../../kernel/netlink/error.ts";
import { type Link, linkOf } from "../../kernel/netlink/link/link.ts";
import { findLinks, listLinks } from "../../kernel/netlink/link/requests.ts";
import { NetnsError } from "../../kernel/netns.ts";
import type { NodeChange } from "../../kernel/node-changes.ts";
import type { NodeNamespace } from "../../kernel/open-namespace.ts";
import { findObstacle } from "../../kernel/sysctl.ts";
import { messageOf } from "../../lib/describe.ts";
import { documentation } from "../../lib/documentation.ts";
import type { Log } from "../../lib/log.ts";
import { PeriodicWorker } from "../../lib/periodic.ts";
import type { CoordinatorMetrics } from "../../metrics/agent-metrics.ts";
import { FAMILIES, formatIp } from "../../net/ip.ts";
import { isSameTable } from "../../plan/diff.ts";
import type { Operation } from "../../plan/operation.ts";
import { formatOperation } from "../../plan/text.ts";
import type { NodeSide } from "./known-attachments.ts";
import { nameProgram, settingOf } from "./network-programs.ts";

/** Time from the start of the agent to the first comparison of the node: milliseconds. Pods that start come first. */
const FIRST_REPAIR_MS = 1_000;
/** Time for which further changes are gathered before a repair: milliseconds. A program that flushes makes many. */
const REPAIR_GATHER_MS = 200;
/** Shortest time between two repairs: milliseconds. */
const REPAIR_PAUSE_MS = 1_000;
/** Number of repairs of one episode that come that soon; before each further one the pause doubles. */
const SOON_REPAIRS = 8;
/** Longest pause between two repairs: milliseconds. */
const MAX_REPAIR_PAUSE_MS = 60_000;
/** Time without a removal after which the next one is a new episode, with its own log line: milliseconds. */
const EPISODE_QUIET_MS = 60_000;
/** Most operations that the log line of an episode shows. */
const MAX_SHOWN_OPERATIONS = 16;

/** The scope of a comparison. */
interface Scope {
  /** Everything: a state that all pods share is affected, or nothing is known. */
  isAll: boolean;
  /** The ruleset of nf_tables has changed. */
  isRuleset: boolean;
  /** Devices of the ifacer may have been changed. */
  areDevices: boolean;
  /** An address of the node came or went. */
  areAddresses: boolean;
  /** Indexes of veths that were changed. */
  readonly links: Set<number>;
  /** Indexes of links whose routes or neighbours were changed. */
  readonly ways: Set<number>;
}

/** Removals with less than {@link EPISODE_QUIET_MS} between them. */
interface Episode {
  readonly programs: Set<string>;
  repairs: number;
  lastMs: number;
}

interface Failure {
  /** A sentence. */
  readonly text: string;
  /** By the kernel: an object is missing. Otherwise the attachment conflicts with the node, and may still work. */
  readonly isRefused: boolean;
}

/** Whether the changed link leads to a pod. Those of pods that went are no loss. */
function mayLeadToPod(link: Link, ways: Scope["ways"]): boolean {
  return isLivePair(link) || (ways.has(link.index) && parseAlias(link.alias) === undefined);
}

interface NodeRepairDeps {
  readonly host: Pick<NodeNamespace, "route" | "netfilter" | "mirror">;
  /** Returns this node's state of its attachments; undefined while the settings of pods are not known. */
  readonly known: () => Promise<NodeSide | undefined>;
  /** Restores an attachment on the node; returns the operations. */
  readonly restore: (request: AttachRequest) => Promise<readonly Operation[]>;
  /** Restores the devices of an entry of the ifacer; returns the operations. */
  readonly restoreDevices: (entry: PlacedEntry["entry"]) => Promise<readonly Operation[]>;
  /** Tells people that an episode has begun. */
  readonly report: (sentence: string) => void;
  readonly metrics: CoordinatorMetrics;
  /** A clock that does not jump: milliseconds. */
  readonly nowMs: () => number;
  readonly log: Log;
}

export class NodeRepair {
  readonly #deps: NodeRepairDeps;
  readonly #worker: PeriodicWorker;
  #scope: Scope = { ...nothing(), isAll: true };
  #programs = new Set<string>();
  #episode: Episode | undefined;
  /** The failures of the last attempt to restore the state. */
  #failures: readonly Failure[] = [];
  /** Runs in a row that left something to do. */
  #attempts = 0;
  /** The node's addresses that pods know; undefined if one has gone since, and perhaps come again, beside an ADD. */
  #addresses: string | undefined;

  constructor(deps: NodeRepairDeps) {
    this.#deps = deps;
    this.#worker = new PeriodicWorker({
      failure: "Restoring the node's side of pods failed",
      work: () => this.#run(),
      firstMs: FIRST_REPAIR_MS,
      restMs: () => this.#pauseMs,
      retryMs,
      log: deps.log,
    });
  }

  /** Takes note of a change by any program: Berth's own removals are not missed. */
  note(change: NodeChange): void {
    switch (change.kind) {
      case "rule":
        // A rule of others may come before Berth's, and the objects that it took from pods are theirs when it goes.
        if (change.isNew === (change.protocol === BERTH_PROTOCOL) && this.#failures.length === 0) return;
        if (change.isNew && change.preference > HOST_RULE_PREFERENCE) return;
        this.#scope.isAll = true;
        break;
      case "setting":
        this.#scope.links.add(change.link);
        break;
      case "ruleset":
        this.#scope.isRuleset = true;
        break;
      case "unknown":
        this.#scope.isAll = true;
        break;
      case "address":
        this.#scope.areAddresses = true;
        if (!change.isNew && !isVirtualLink(change.linkName ?? "")) this.#addresses = undefined;
        break;
      case "link":
        if (change.type === "veth") this.#scope.links.add(change.link);
        else this.#scope.areDevices = true;
        break;
      default:
        if (change.link === undefined) this.#scope.isAll = true;
        else this.#scope.ways.add(change.link);
    }
    const program = nameProgram(change);
    if (program !== undefined) this.#programs.add(program);
    this.#worker.wake();
  }

  /** Settings that cannot be made; state that could not be restored, or not yet: sentences. */
  get problems(): readonly string[] {
    const delayed = this.#describeDelay();
    return [
      ...findObstacle(),
      ...(delayed === undefined ? [] : [delayed]),
      ...this.#worker.problems,
      ...this.#failures.map(({ text }) => text),
    ];
  }

  /** Pods may have no way to or from their node right now. */
  get isCutOff(): boolean {
    const isRefused = this.#failures.some((failure) => failure.isRefused);
    return isRefused || this.#describeDelay() !== undefined || this.#worker.problems.length > 0;
  }

  async close(): Promise<void> {
    await this.#worker.close();
  }

  /** Time for which changes wait: longer with each repair of an episode, until nothing is removed for a while. */
  get #pauseMs(): number {
    const episode = this.#current(EPISODE_QUIET_MS);
    return episode === undefined ? REPAIR_GATHER_MS : retryMs(episode.repairs - SOON_REPAIRS);
  }

  /** The episode, unless it is over: changes before its quiet may wait for the longest pause. */
  #current(quietMs = EPISODE_QUIET_MS + MAX_REPAIR_PAUSE_MS): Episode | undefined {
    const episode = this.#episode;
    return episode && this.#deps.nowMs() - episode.lastMs < quietMs ? episode : undefined;
  }

  #describeDelay(): string | undefined {
    const episode = this.#current();
    if (episode === undefined || episode.repairs <= SOON_REPAIRS) return undefined;
    const { isAll, areDevices, areAddresses, isRuleset } = this.#scope;
    const isAffected =
      isAll ||
      areDevices ||
      (areAddresses && this.#readAddresses() !== this.#addresses) ||
      this.#findChanged(this.#scope).some((link) => mayLeadToPod(link, this.#scope.ways)) ||
      (isRuleset && !this.#isTableRight());
    if (!isAffected) return undefined;
    return (
      `Pods are cut off from this node, its services or other nodes: ${describePrograms(episode.programs)} removed Berth's part of the node's ` +
      `network ${episode.repairs + 1} times. It is restored, and pods are told of the node's addresses, only once in ${retryMs(episode.repairs - SOON_REPAIRS) / 1000} s now. ${remedyFor(episode.programs)}`
    );
  }

  /** Returns when to try again: milliseconds; undefined if nothing is left to do. */
  async #run(): Promise<number | undefined> {
    const [scope, programs] = [this.#scope, this.#programs];
    this.#scope = nothing();
    this.#programs = new Set();
    let isDone = false;
    try {
      const affected = await this.#select(scope);
      if (affected !== undefined) this.#failures = await this.#repair(affected, programs);
      isDone = affected !== undefined && this.#failures.length === 0;
      this.#attempts = isDone ? 0 : this.#attempts + 1;
      return isDone ? undefined : retryMs(affected === undefined ? 0 : this.#attempts);
    } finally {
      if (!isDone) this.#scope.isAll = true;
      if (!isDone) this.#programs = this.#programs.union(programs);
    }
  }

  /** Returns the failures. One does not delay the others. */
  async #repair({ devices, requests }: NodeSide, programs: ReadonlySet<string>): Promise<Failure[]> {
    const { restore, restoreDevices } = this.#deps;
    const tasks = [
      ...devices.map((entry) => ({ what: describeDevices(entry), run: () => restoreDevices(entry) })),
      ...requests.map((request) => ({ what: describeAttachment(request), run: () => restore(request) })),
    ];
    const done: Operation[] = [];
    const failures: Failure[] = [];
    let restored = 0;
    for (const { what, run } of tasks) {
      try {
        const operations = await run();
        done.push(...operations);
        if (operations.length > 0) restored++;
      } catch (error) {
        // The namespace is gone, and the attachment with it.
        if (error instanceof NetnsError && [ENOENT, ENOTTY].includes(error.errno)) continue;
        const isRefused = ![CniError, ConfigError, NetnsError].some((kind) => error instanceof kind);
        failures.push({ text: `${what} cannot be restored: ${messageOf(error)}`, isRefused });
      }
      await setImmediate();
    }
    // Changes that came meanwhile may be restored, too.
    if (done.length > 0) this.#count(done, restored, programs.union(this.#programs));
    return failures;
  }

  /** Returns the objects that the changes may have affected; undefined while they are unknown. */
  async #select(scope: Scope): Promise<NodeSide | undefined> {
    const { isAll, isRuleset, areAddresses, areDevices, links, ways } = scope;
    const { known } = this.#deps;
    const addresses = isAll || areAddresses ? this.#readAddresses() : this.#addresses;
    const areNew = addresses !== this.#addresses;
    this.#addresses = addresses;
    const changed = this.#findChanged({ links, ways });
    const found = changed.filter((link) => mayLeadToPod(link, ways));
    // By their aliases, which name their containers also where other software has renamed the link.
    const containers = new Set(found.filter(isLivePair).map(({ alias }) => parseAlias(alias)?.containerId));
    // The way to an overlay's pod leads over a link that Berth did not make.
    const isElsewhere = found.some((link) => !isLivePair(link));
    if (isAll || areNew || isElsewhere || (isRuleset && !this.#isTableRight())) return known();
    // A bond may have veths as its members.
    const isDevice =
      areDevices || changed.some(({ index, alias }) => links.has(index) && parseAlias(alias) === undefined);
    if (containers.size === 0 && !isDevice) return { requests: [], devices: [] };
    const all = await known();
    return (
      all && {
        requests: all.requests.filter(({ containerId }) => containers.has(containerId)),
        devices: isDevice ? all.devices : [],
      }
    );
  }

  /** Returns the changed links that still exist. */
  #findChanged({ links, ways }: Pick<Scope, "links" | "ways">): Link[] {
    const changed = new Set([...links, ...ways]);
    return changed.size === 0 ? [] : findLinks(this.#deps.host.route, [...changed]).map(linkOf);
  }

  /** Service proxies give the node thousands of addresses that pods reach by their networks. */
  #readAddresses(): string {
    const { addresses } = this.#deps.host.mirror.read();
    const own = FAMILIES.flatMap((family) => findHostAddresses({ addresses }, family, []));
    return own.map(formatIp).join();
  }

  /** The table of nf_tables is as it should be, or no pair needs it. */
  #isTableRight(): boolean {
    const { mirror, netfilter, route } = this.#deps.host;
    // Undefined if the kernel lacks nf_tables, too.
    const table = unlessRefused([EPROTONOSUPPORT], () => mirror.nftTable(netfilter, NFT_TABLE));
    if (table !== undefined) return isSameTable(table, SNAT_TABLE);
    return !listLinks(route).map(linkOf).some(isMasqueraded);
  }

  #count(operations: readonly Operation[], attachments: number, programs: ReadonlySet<string>): void {
    const { metrics, nowMs, log, report } = this.#deps;
    for (const operation of operations) metrics.nodeRepairs.inc({ what: repairKindOf(operation) ?? "link" });
    if (operations.every(({ kind }) => kind === "set-sysctl")) {
      // udev lets systemd-sysctl write the settings of each new link after its ADD, on most hosts.
      log.debug({ operations: operations.map(formatOperation) }, "Restored settings of pairs");
      return;
    }
    const episode = this.#current();
    if (episode !== undefined) {
      for (const program of programs) episode.programs.add(program);
      episode.repairs++;
      episode.lastMs = nowMs();
      return;
    }
    this.#episode = { programs: new Set(programs), repairs: 1, lastMs: nowMs() };
    const what = `${listKinds(operations)} of ${attachments === 1 ? "one pod" : `${attachments} pods`}`;
    const sentence = `Restored what ${describePrograms(programs)} had removed of the node's network: ${what}. ${remedyFor(programs)}`;
    const shown = operations.slice(0, MAX_SHOWN_OPERATIONS).map(formatOperation);
    log.warn({ operations: shown, count: operations.length, programs: [...programs] }, sentence);
    report(sentence);
  }
}

function retryMs(failures: number): number {
  return Math.min(REPAIR_PAUSE_MS * 2 ** Math.max(0, failures), MAX_REPAIR_PAUSE_MS);
}

function nothing(): Scope {
  return { isAll: false, isRuleset: false, areDevices: false, areAddresses: false, links: new Set(), ways: new Set() };
}

function isLivePair({ alias, group }: { readonly alias: string; readonly group: number }): boolean {
  return parseAlias(alias) !== undefined && !isRetired(group);
}

function isMasqueraded(link: Link): boolean {
  return isLivePair(link) && link.group !== SNAT_GROUPS.none;
}

const WORDS: Readonly<Record<RepairKind, string>> = {
  rule: "the rule",
  route: "routes",
  neighbour: "neighbours",
  nftables: `the nf_tables table "${NFT_TABLE}"`,
  sysctl: "sysctls",
  link: "settings of links",
};

function listKinds(operations: readonly Operation[]): string {
  const kinds = new Set(operations.map(repairKindOf).filter((kind) => kind !== undefined));
  return [...kinds].map((kind) => WORDS[kind]).join(", ");
}

function describePrograms(programs: ReadonlySet<string>): string {
  return programs.size === 0 ? "another program" : [...programs].map((name) => JSON.stringify(name)).join(" and ");
}

function remedyFor(programs: ReadonlySet<string>): string {
  const known = [...programs].flatMap((program) => settingOf(program) ?? []);
  return known.length > 0 ? known.join(". ") : `Settings of programs that do so: ${documentation("host.html")}`;
}

function describeAttachment({ containerId, ifName }: AttachRequest): string {
  return `The node's side of interface ${ifName} of container ${containerId}`;
}

function describeDevices({ interfaces }: PlacedEntry["entry"]): string {
  return `The device of the ifacer on ${JSON.stringify(interfaces)}`;
}
