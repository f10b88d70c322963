/**
 * Assigns routing tables of a pod: which are Berth's, and which are free. A table is not free if routes of other
 * software are in it, or if its rules point there: plugins such as `sbr` take tables in the same range.
 */
import { refuseInterface } from "../../cni/error.ts";
import { RT_TABLE_MAIN, RTPROT_KERNEL } from "../../kernel/netlink/route/constants.ts";
import { bitsOf, type Family, type Ip } from "../../net/ip.ts";
import { prefixContains } from "../../net/prefix.ts";
import type { NamespaceState, RouteState } from "../../plan/state.ts";
import { FIRST_NIC_TABLE, FIRST_REPLY_TABLE, LAST_NIC_TABLE, POD_VETH, REPLY_RULE_PREFERENCE } from "./constants.ts";
import { includesIp, isOwn } from "./own-objects.ts";

export function isNicTable(table: number): boolean {
  return table >= FIRST_NIC_TABLE && table <= LAST_NIC_TABLE;
}

/** Returns the pod's table of replies; without a rule for it, the table that has only Berth's routes over the pair. */
function findReplyTable({ routes, rules }: NamespaceState): number | undefined {
  const rule = rules.find((each) => isOwn(each) && each.preference === REPLY_RULE_PREFERENCE);
  if (rule !== undefined) return rule.table;
  const inRange = routes.filter(({ table }) => table === FIRST_REPLY_TABLE || isNicTable(table));
  const isReply = (table: number): boolean =>
    inRange.every((route) => route.table !== table || (isOwn(route) && route.link === POD_VETH)) &&
    !rules.some((each) => each.table === table);
  return inRange.find(({ table }) => isReply(table))?.table;
}

function foreignTables({ routes, rules }: NamespaceState): number[] {
  return [...routes, ...rules].filter((each) => !isOwn(each)).map(({ table }) => table);
}

function findFree(first: number, taken: ReadonlySet<number | undefined>): number | undefined {
  for (let table = first; table <= LAST_NIC_TABLE; table++) if (!taken.has(table)) return table;
  return undefined;
}

/** Returns the pod's table of replies, else the first free one. Throws CniError 106 if there is none. */
export function replyTableOf(pod: NamespaceState, nicTables: readonly number[]): number {
  const taken = new Set([...foreignTables(pod), ...nicTables]);
  return (
    findReplyTable(pod) ?? findFree(FIRST_REPLY_TABLE, taken) ?? refuse("the replies to the node", FIRST_REPLY_TABLE)
  );
}

/** Returns the families for which the pod has a rule for replies. */
export function replyFamiliesOf({ rules }: NamespaceState): Family[] {
  return rules.filter((rule) => isOwn(rule) && rule.preference === REPLY_RULE_PREFERENCE).map(({ family }) => family);
}

/** Returns Berth's routes of the table of replies. */
export function replyRoutesIn(pod: NamespaceState): RouteState[] {
  const reply = findReplyTable(pod);
  return pod.routes.filter((route) => isOwn(route) && route.table === reply);
}

/** Returns whether the table is a NIC's, not that of replies. */
export function isTableOfNic(pod: NamespaceState): (table: number) => boolean {
  const reply = findReplyTable(pod);
  return (table) => isNicTable(table) && table !== reply;
}

/** Hands out the lowest free tables to NICs. NICs already have the `kept` ones. */
export class NicTables {
  readonly #taken: Set<number | undefined>;

  constructor(pod: NamespaceState, kept: readonly (number | undefined)[]) {
    this.#taken = new Set([...foreignTables(pod), ...kept, findReplyTable(pod)]);
  }

  /** The first NIC's comes before those of the others. Throws CniError 106 if there is none. */
  take(name: string, isFirst: boolean): number {
    const table =
      findFree(isFirst ? FIRST_NIC_TABLE : FIRST_NIC_TABLE + 1, this.#taken) ??
      refuse(`interface "${name}"`, FIRST_NIC_TABLE);
    this.#taken.add(table);
    return table;
  }
}

function refuse(what: string, first: number): never {
  refuseInterface(
    `No routing table of the pod is free for ${what}: all from ${first} to ${LAST_NIC_TABLE} are in use; ` +
      "attach fewer NICs, or give the other plugins of the pod tables outside of this range",
  );
}

/** None, RT_TABLE_DEFAULT, RT_TABLE_MAIN, RT_TABLE_LOCAL. */
const STANDARD_TABLES = [0, 253, RT_TABLE_MAIN, 255];

/**
 * Returns the tables of other software for packets from the NIC's addresses, if it has moved the NIC's routes there:
 * the main table lacks those of the addresses' prefixes.
 */
export function sourceTablesOf({ rules, routes }: NamespaceState, name: string, addresses: readonly Ip[]): number[] {
  const connected = routes.filter(
    ({ table, protocol, link }) => table === RT_TABLE_MAIN && protocol === RTPROT_KERNEL && link === name,
  );
  const moving = rules.filter((rule) => {
    const { from, table } = rule;
    if (isOwn(rule) || from === undefined || from.length !== bitsOf(from.ip.family)) return false;
    const isConnected = connected.some(({ destination }) => prefixContains(destination, from.ip));
    return includesIp(addresses, from.ip) && !isConnected && !STANDARD_TABLES.includes(table);
  });
  return [...new Set(moving.map(({ table }) => table))];
}
