/**
 * Finds state of the coordinator that the kernel lacks, or has too much of: the attachments' routes, rules and
 * settings, and on the node state that belongs to no attachment. The comparison itself is the coordinator's, as for
 * CHECK.
 */

import { parseAlias } from "../../coordinator/plan/alias.ts";
import { BERTH_PROTOCOL, HOST_RULE_PREFERENCE } from "../../coordinator/plan/constants.ts";
import { nameVeth } from "../../coordinator/plan/names.ts";
import { isRetired, ruleTablesOf } from "../../coordinator/plan/own-objects.ts";
import { RT_TABLE_LOCAL, RT_TABLE_MAIN } from "../../kernel/netlink/route/constants.ts";
import { listSome } from "../../lib/describe.ts";
import { documentation } from "../../lib/documentation.ts";
import { bitsOf, formatIp, type Ip } from "../../net/ip.ts";
import type { Mac } from "../../net/mac.ts";
import type { Prefix } from "../../net/prefix.ts";
import { formatCommand } from "../../plan/command.ts";
import type { Operation } from "../../plan/operation.ts";
import type { NamespaceState, RuleState } from "../../plan/state.ts";
import { formatNeighbour, formatOperation, formatRoute, formatRule } from "../../plan/text.ts";
import type { About, Finding } from "../../records/finding.ts";
import type { Allocation } from "../../registry/registry.ts";
import { error, warning } from "../finding.ts";
import { subjectOf } from "./find-damage.ts";

/** Most differences that a finding without commands names. */
export const MAX_DIFFERENCES = 5;

const REPAIR = 'Run "berthctl check --repair"';

const DETOUR_REMEDY =
  'Find it with "ip rule" and "ip route show table local", and delete it or give it a preference above 1';

/** An attachment of the coordinator. */
export interface ComparedAttachment {
  readonly containerId: string;
  readonly ifName: string;
  readonly netns: string;
  /** Undefined if another IPAM plugin assigned the addresses. */
  readonly row: Allocation | undefined;
}

/** The differences between an attachment and the state that its ADD left. */
export interface Comparison {
  /** The operations that would restore it. */
  readonly operations: readonly Operation[];
  /** A sentence about packets of the node that do not reach the pod, whatever is restored. */
  readonly detour?: string | undefined;
}

export interface AttachmentDrift extends Comparison {
  readonly attachment: ComparedAttachment;
}

/** Returns one finding for each attachment, and one for each object of the node that concerns several of them. */
export function findDrift(drifts: readonly AttachmentDrift[]): Finding[] {
  const operations = drifts.flatMap((drift) => drift.operations.filter(isShared));
  const shared = new Map(operations.map((operation) => [describe(operation), operation]));
  const ofNode = [...shared].map(([text, operation]) =>
    drift(`the node lacks what its attachments need; restoring it requires "${text}"`, repairBy([operation], "")),
  );
  return [...ofNode, ...drifts.flatMap(findOwnDrift)];
}

/**
 * Returns the operation in the words of `ip`. A table of nf_tables is named only: adding it needs its chains and
 * sets, too.
 */
function describe(operation: Operation): string {
  const isTable = operation.kind === "add-table" || operation.kind === "delete-table";
  return isTable ? `${operation.place}: nf_tables, table inet ${operation.table.name}` : formatOperation(operation);
}

/** Returns what to do about a difference; without commands if one of the operations has none. */
function repairBy(operations: readonly Operation[], netns: string): Remedy {
  const commands = operations.map((operation) => formatCommand(operation, netns));
  const isComplete = commands.every((command) => command !== undefined);
  return isComplete ? { remedy: `${REPAIR}, or on the node:`, commands } : { remedy: REPAIR };
}

/** Whether the operation is about something that one node has for all pods. */
function isShared(operation: Operation): boolean {
  const { kind } = operation;
  if (!("place" in operation) || operation.place !== "host") return false;
  return kind === "add-rule" || kind === "delete-rule" || kind === "add-table" || kind === "delete-table";
}

function findOwnDrift({ attachment, operations, detour }: AttachmentDrift): Finding[] {
  const { row, ifName, netns, containerId } = attachment;
  const own = operations.filter((operation) => !isShared(operation));
  if (own.length === 0 && detour === undefined) return [];
  const remedy = detour === undefined ? repairBy(own, netns) : { remedy: DETOUR_REMEDY };
  const why = remedy.commands === undefined ? `; restoring it requires ${describeSome(own)}` : "";
  const text = detour ?? `interface ${ifName} in ${netns} is not as ADD left it${why}`;
  const about = row === undefined ? {} : subjectOf(row);
  return [drift(text, remedy, { ...about, interface: ifName, container: containerId })];
}

function describeSome(operations: readonly Operation[]): string {
  const all = new Set(operations.map((operation) => `"${describe(operation)}"`));
  return listSome([...all], MAX_DIFFERENCES);
}

type Remedy = Pick<Finding, "remedy" | "commands">;

function drift(text: string, { remedy, ...commands }: Remedy, about: About = {}): Finding {
  return error("drift", text, remedy, { ...about, ...commands });
}

/** About what belongs to no attachment. `deletion`: undefined without a command. */
function leftover(text: string, deletion: string | undefined): Finding {
  return error("leftover", text, "Delete it:", deletion === undefined ? {} : { commands: [deletion] });
}

/** Returns one finding for each chain. */
export function findClosed(chains: readonly string[]): Finding[] {
  return chains.map((chain) => {
    const text = `chain ${chain} drops what no rule accepts, and no rule is about the links of pods: they may reach no services on other nodes`;
    return warning("firewall", text, `Accept the pairs: ${documentation("host.html#forward-policies")}`);
  });
}

/** The known state of the attachments of this node. */
export interface KnownAttachments {
  readonly containerIds: ReadonlySet<string>;
  /** Addresses of a record, a NIC or an attachment: {@link keyOfIp}. */
  readonly ips: ReadonlySet<string>;
  /** Addresses that a record has: {@link keyOfIp}. */
  readonly recorded: ReadonlySet<string>;
  /** MACs of all links in the namespaces of pods. */
  readonly macs: ReadonlySet<Mac>;
}

export function keyOfIp({ family, value }: Ip): string {
  return `${family} ${value}`;
}

/**
 * Returns what the node has that carries Berth's mark and belongs to no attachment, and what diverts the traffic of
 * pods.
 */
export function findLeftovers(host: NamespaceState, known: KnownAttachments): Finding[] {
  return [
    ...findPairs(host, known),
    ...findRoutes(host, known),
    ...findRules(host, known),
    ...findNeighbours(host, known),
  ];
}

/** RT_TABLE_DEFAULT, RT_TABLE_MAIN, RT_TABLE_LOCAL: never Berth's alone, whatever its rules look up. */
const KERNEL_TABLES: ReadonlySet<number> = new Set([253, RT_TABLE_MAIN, RT_TABLE_LOCAL]);

function ownTables(host: NamespaceState): ReadonlySet<number> {
  return ruleTablesOf(host).difference(KERNEL_TABLES);
}

/**
 * A pair whose other end is in no pod's namespace. The kernel deletes pairs with either namespace, the agent retired
 * ones.
 */
function findPairs({ links }: NamespaceState, { containerIds, macs }: KnownAttachments): Finding[] {
  return links.flatMap(({ name, kind, alias, group }) => {
    const owner = kind === "veth" && !isRetired(group) ? parseAlias(alias) : undefined;
    if (owner === undefined || containerIds.has(owner.containerId)) return [];
    const pair = nameVeth(owner.containerId);
    if (macs.has(pair.pod.mac)) return [];
    const whose = owner.pod === "" ? `container ${owner.containerId}` : `pod ${owner.pod}`;
    const text = `link ${name} was made for ${whose}, which is not on this node`;
    return [
      leftover(text, formatCommand({ kind: "delete-veth", veth: { ...pair, host: { ...pair.host, name } } }, "")),
    ];
  });
}

function findRoutes(host: NamespaceState, { ips }: KnownAttachments): Finding[] {
  const tables = ownTables(host);
  return host.routes.flatMap((route) => {
    const { table, protocol, destination } = route;
    const isOurs = protocol === BERTH_PROTOCOL && !KERNEL_TABLES.has(table);
    if (isOurs ? ips.has(keyOfIp(destination.ip)) : !tables.has(table)) return [];
    const text = isOurs
      ? `route "${formatRoute(route)}" leads to an address that no pod of this node has`
      : `route "${formatRoute(route)}" of other software is in a table that Berth's rule sends all traffic of the node to`;
    return [leftover(text, formatCommand({ kind: "delete-route", place: "host", route }, ""))];
  });
}

function findRules(host: NamespaceState, { recorded }: KnownAttachments): Finding[] {
  const tables = ownTables(host);
  return host.rules.flatMap((rule) => {
    const why = describeStrayRule(rule, tables, recorded);
    if (why === undefined) return [];
    const deletion = formatCommand({ kind: "delete-rule", place: "host", rule }, "");
    return [leftover(`rule "${formatRule(rule)}" ${why}`, deletion)];
  });
}

/** Returns undefined for Berth's rules, and for rules of other software that do not concern its pods. */
function describeStrayRule(
  rule: RuleState,
  tables: ReadonlySet<number>,
  recorded: ReadonlySet<string>,
): string | undefined {
  const { preference, from, to, mark, inputName, outputName, table, protocol } = rule;
  const isForAll = [from, to, mark, inputName, outputName].every((selector) => selector === undefined);
  if (protocol === BERTH_PROTOCOL)
    return isForAll && preference <= HOST_RULE_PREFERENCE
      ? undefined
      : "has Berth's mark, and Berth makes none like it";
  if (tables.has(table)) return "of other software looks up a table of Berth's";
  const isBefore = preference < HOST_RULE_PREFERENCE;
  const diverted = [from, to].find(
    (prefix) => prefix !== undefined && isWhole(prefix) && recorded.has(keyOfIp(prefix.ip)),
  );
  return isBefore && diverted !== undefined
    ? `of other software diverts the traffic of ${formatIp(diverted.ip)}, which a pod of this node has`
    : undefined;
}

const isWhole = ({ ip, length }: Prefix): boolean => length === bitsOf(ip.family);

/** Permanent neighbours on pairs; those of attachments are compared with their plan. */
function findNeighbours({ links, neighbours }: NamespaceState, { ips }: KnownAttachments): Finding[] {
  const pairs = new Set(links.filter(({ alias }) => parseAlias(alias) !== undefined).map(({ name }) => name));
  return neighbours
    .filter(({ link, ip }) => pairs.has(link) && !ips.has(keyOfIp(ip)))
    .map((neighbour) => {
      const text = `neighbour "${formatNeighbour(neighbour)}" has an address that no pod of this node has`;
      return leftover(text, formatCommand({ kind: "delete-neighbour", place: "host", neighbour }, ""));
    });
}
