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
import { formatCommand } from "../../plan/command.ts";
import type { Operation } from "../../plan/operation.ts";
import type { NamespaceState, RuleState } from "../../plan/state.ts";
import { formatNeighbour, formatOperation, formatRoute, formatRule } from "../../plan/text.ts";
import type { Finding } from "../../records/finding.ts";
import type { Allocation } from "../../registry/registry.ts";
import { error, warning } from "../problem.ts";
import { subjectOf } from "./find-damage.ts";

/** Most differences that a finding without commands names. */
export const MAX_DIFFERENCES = 5;

const REPAIR = 'Run "berthctl check --repair"';
const DELETE = "Delete it:";

/** The problems of a node's links, routes and rules. */
export const DRIFT_PROBLEMS = {
  ofNode: error("drift", 'the node lacks what its attachments need; restoring it requires "{operation}"', REPAIR),
  ofPod: error("drift", "interface {ifName} in {netns} is not as ADD left it{lacks}", REPAIR),
  notRestored: error("not-restored", "interface {nic} is not restored: {why}", "Restart the pod"),
  detour: error(
    "drift",
    "{detour}",
    'Find it with "ip rule" and "ip route show table local", and delete it or give it a preference above 1',
  ),
  pair: error("leftover", "link {link} was made for {owner}, which is not on this node", DELETE),
  route: error("leftover", 'route "{route}" leads to an address that no pod of this node has', DELETE),
  foreignRoute: error(
    "leftover",
    'route "{route}" of other software is in a table that Berth\'s rule sends all traffic of the node to',
    DELETE,
  ),
  rule: error("leftover", 'rule "{rule}" {why}', DELETE),
  neighbour: error("leftover", 'neighbour "{neighbour}" has an address that no pod of this node has', DELETE),
  closed: warning(
    "firewall",
    "chain {chain} drops what no rule accepts, and no rule is about the links of pods: they may reach no services on other nodes",
    `Accept the pairs: ${documentation("host.html#forward-policies")}`,
  ),
};

/** The differences between an attachment and the state that its ADD left. */
export interface Comparison {
  /** The operations that would restore it. */
  readonly operations: readonly Operation[];
  /** A sentence about packets of the node that do not reach the pod, whatever is restored. */
  readonly detour?: string | undefined;
}

/** An attachment of the coordinator. */
export interface AttachmentDrift extends Comparison {
  readonly containerId: string;
  readonly ifName: string;
  readonly netns: string;
  /** Undefined if another IPAM plugin assigned the addresses. */
  readonly row: Allocation | undefined;
}

/** Returns one finding for each attachment, and one for each object of the node that concerns several of them. */
export function findDrift(drifts: readonly AttachmentDrift[]): Finding[] {
  const operations = drifts.flatMap((drift) => drift.operations.filter(isShared));
  const shared = new Map(operations.map((operation) => [describe(operation), operation]));
  const ofNode = [...shared].map(([text, operation]) =>
    DRIFT_PROBLEMS.ofNode({ operation: text }, repairBy([operation], "")),
  );
  return [...ofNode, ...drifts.flatMap(findOwnDrift)];
}

/** Returns the operation in the words of `ip`. A table of nf_tables is only named: it needs its chains and sets. */
function describe(operation: Operation): string {
  const isTable = operation.kind === "add-table" || operation.kind === "delete-table";
  return isTable ? `${operation.place}: nf_tables, table inet ${operation.table.name}` : formatOperation(operation);
}

/** Returns the remedy of a difference; without commands if one of the operations has none. */
function repairBy(operations: readonly Operation[], netns: string): Pick<Finding, "remedy" | "commands"> {
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

function findOwnDrift({ row, ifName, netns, containerId, operations, detour }: AttachmentDrift): Finding[] {
  const own = operations.filter((operation) => !isShared(operation));
  if (own.length === 0 && detour === undefined) return [];
  const about = { ...(row && subjectOf(row)), interface: ifName, container: containerId };
  if (detour !== undefined) return [DRIFT_PROBLEMS.detour({ detour }, about)];
  const remedy = repairBy(own, netns);
  const lacks = remedy.commands === undefined ? `; restoring it requires ${describeSome(own)}` : "";
  return [DRIFT_PROBLEMS.ofPod({ ifName, netns, lacks }, { ...about, ...remedy })];
}

function describeSome(operations: readonly Operation[]): string {
  const all = new Set(operations.map((operation) => `"${describe(operation)}"`));
  return listSome([...all], MAX_DIFFERENCES);
}

/** Returns one finding for each chain. */
export function findClosed(chains: readonly string[]): Finding[] {
  return chains.map((chain) => DRIFT_PROBLEMS.closed({ chain }));
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

/** Returns objects with Berth's mark that belong to no attachment, and those that divert the traffic of pods. */
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

/** Returns the command that deletes something of the node; none if the operation has none. */
function deletionBy(operation: Operation): Pick<Finding, "commands"> {
  const command = formatCommand(operation, "");
  return command === undefined ? {} : { commands: [command] };
}

function ownTables(host: NamespaceState): ReadonlySet<number> {
  return ruleTablesOf(host).difference(KERNEL_TABLES);
}

/** A pair whose other end is in no pod's netns. The kernel deletes pairs with either netns, the agent retired ones. */
function findPairs({ links }: NamespaceState, { containerIds, macs }: KnownAttachments): Finding[] {
  return links.flatMap(({ name, kind, alias, group }) => {
    const owner = kind === "veth" && !isRetired(group) ? parseAlias(alias) : undefined;
    if (owner === undefined || containerIds.has(owner.containerId)) return [];
    const pair = nameVeth(owner.containerId);
    if (macs.has(pair.pod.mac)) return [];
    const whose = owner.pod === "" ? `container ${owner.containerId}` : `pod ${owner.pod}`;
    const operation = { kind: "delete-veth", veth: { ...pair, host: { ...pair.host, name } } } as const;
    return [DRIFT_PROBLEMS.pair({ link: name, owner: whose }, deletionBy(operation))];
  });
}

function findRoutes(host: NamespaceState, { ips }: KnownAttachments): Finding[] {
  const tables = ownTables(host);
  return host.routes.flatMap((route) => {
    const { table, protocol, destination } = route;
    const isOurs = protocol === BERTH_PROTOCOL && !KERNEL_TABLES.has(table);
    if (isOurs ? ips.has(keyOfIp(destination.ip)) : !tables.has(table)) return [];
    const problem = isOurs ? DRIFT_PROBLEMS.route : DRIFT_PROBLEMS.foreignRoute;
    return [problem({ route: formatRoute(route) }, deletionBy({ kind: "delete-route", place: "host", route }))];
  });
}

function findRules(host: NamespaceState, { recorded }: KnownAttachments): Finding[] {
  const tables = ownTables(host);
  return host.rules.flatMap((rule) => {
    const why = describeStrayRule(rule, tables, recorded);
    if (why === undefined) return [];
    const deletion = deletionBy({ kind: "delete-rule", place: "host", rule });
    return [DRIFT_PROBLEMS.rule({ rule: formatRule(rule), why }, deletion)];
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
    (prefix) => prefix !== undefined && prefix.length === bitsOf(prefix.ip.family) && recorded.has(keyOfIp(prefix.ip)),
  );
  return isBefore && diverted !== undefined
    ? `of other software diverts the traffic of ${formatIp(diverted.ip)}, which a pod of this node has`
    : undefined;
}

/** Permanent neighbours on pairs; those of attachments are compared with their plan. */
function findNeighbours({ links, neighbours }: NamespaceState, { ips }: KnownAttachments): Finding[] {
  const pairs = new Set(links.filter(({ alias }) => parseAlias(alias) !== undefined).map(({ name }) => name));
  return neighbours
    .filter(({ link, ip }) => pairs.has(link) && !ips.has(keyOfIp(ip)))
    .map((neighbour) => {
      const deletion = deletionBy({ kind: "delete-neighbour", place: "host", neighbour });
      return DRIFT_PROBLEMS.neighbour({ neighbour: formatNeighbour(neighbour) }, deletion);
    });
}
