/**
 * The state of the node's namespace that plans of pods need, kept up to date by notifications, so that reading it costs
 * the same with one pod and with hundreds: addresses, rules, gateways, and requested routing tables. Links, neighbours
 * and sysctls are not mirrored but read when needed.
 *
 * A reading includes all earlier changes: the kernel queues the notification of a change before it acknowledges the
 * change, and all queued ones are processed first. State whose notifications were lost (a full queue), or cannot be
 * replayed, is listed again. A list that does not become stable is used as it is. One exception: a new IPv6 address is
 * reported only when duplicate address detection is over, so the kernel is asked for the addresses that matter ({@link
 * NodeMirror.readFor}).
 * Effects: two netlink sockets, and a watch on the event loop or a timer, until disposed of.
 */
import { equalIp, type Ip } from "../net/ip.ts";
import { type Prefix, prefixContains } from "../net/prefix.ts";
import type { NftTable } from "../plan/nft-table.ts";
import type { AddressState, RuleState } from "../plan/state.ts";
import { formatAddress, formatRule } from "../plan/text.ts";
import { Gateways } from "./gateways.ts";
import { loadNative, type Native } from "./native.ts";
import { addressOf, prefixOf, restOf } from "./netlink/address/address.ts";
import { IFA_F_TENTATIVE, RTM_DELADDR, RTM_NEWADDR } from "./netlink/address/constants.ts";
import { hasAnyAddress, listAddresses } from "./netlink/address/requests.ts";
import { decodeString, decodeUint32, type findValue, readValue } from "./netlink/attribute.ts";
import { AF_UNSPEC, NLM_F_REPLACE } from "./netlink/constants.ts";
import type { Conversation } from "./netlink/conversation.ts";
import { decodeAddress, decodeLink, decodeRouteMessage, decodeRuleMessage } from "./netlink/families.ts";
import { IFF_UP, IFLA_IFNAME, RTM_DELLINK, RTM_NEWLINK } from "./netlink/link/constants.ts";
import { kindName } from "./netlink/link/kind.ts";
import { LINK_ATTRIBUTES, linkOf } from "./netlink/link/link.ts";
import { listLinks } from "./netlink/link/requests.ts";
import type { ReceivedMessage } from "./netlink/message.ts";
import {
  type Monitor,
  openMonitor,
  RTNLGRP_IPV4_IFADDR,
  RTNLGRP_IPV4_ROUTE,
  RTNLGRP_IPV4_RULE,
  RTNLGRP_IPV6_IFADDR,
  RTNLGRP_IPV6_ROUTE,
  RTNLGRP_IPV6_RULE,
  RTNLGRP_LINK,
  RTNLGRP_NEXTHOP,
} from "./netlink/monitor.ts";
import { CachedTable } from "./netlink/nftables/requests.ts";
import { uint8At } from "./netlink/numbers.ts";
import {
  RT_TABLE_LOCAL,
  RTA_TABLE,
  RTM_DELROUTE,
  RTM_F_CLONED,
  RTM_NEWROUTE,
  RTPROT_KERNEL,
} from "./netlink/route/constants.ts";
import { RTM_DELNEXTHOP, RTM_NEWNEXTHOP } from "./netlink/route/gateways.ts";
import { listRoutes } from "./netlink/route/requests.ts";
import { formatRoute, type Route, routeOf } from "./netlink/route/route.ts";
import { RTM_DELRULE, RTM_NEWRULE } from "./netlink/rule/constants.ts";
import { listRules } from "./netlink/rule/requests.ts";
import { ruleOf } from "./netlink/rule/rule.ts";
import { openRouteSocket } from "./netlink/socket.ts";
import type { NetnsHandle } from "./netns.ts";
import type { NodeChange } from "./node-changes.ts";
import { detached, RouteMirror } from "./route-mirror.ts";
import { addressStateOf, ruleStateOf } from "./state-values.ts";

/** Queue of notifications: bytes. The node's default fits some 300 of a new link, which many pods at once exceed. */
const MIRROR_QUEUE_BYTES = 8 * 1024 * 1024;

/** Time for which notifications are gathered unless the state is read: milliseconds. An ADD and DEL cause twenty. */
export const MIRROR_GATHER_MS = 250;

/** Number of times that the state is listed because it changed meanwhile, before the list is used as it is. */
const MIRROR_ATTEMPTS = 4;

const GROUPS = [
  RTNLGRP_LINK,
  RTNLGRP_NEXTHOP,
  RTNLGRP_IPV4_IFADDR,
  RTNLGRP_IPV6_IFADDR,
  RTNLGRP_IPV4_ROUTE,
  RTNLGRP_IPV6_ROUTE,
  RTNLGRP_IPV4_RULE,
  RTNLGRP_IPV6_RULE,
];

const LINK_LOCAL: Prefix = { ip: { family: 6, value: 0xfe80n << 112n }, length: 10 };

const NAME_ONLY: ReadonlySet<number> = new Set([IFLA_IFNAME]);

/** The flags that the notification of a new link reports as changed. */
const ALL_FLAGS = 0xffff_ffff;

interface MirroredState {
  /** Without IPv6 link-local ones, which every link has. */
  readonly addresses: readonly AddressState[];
  readonly rules: readonly RuleState[];
  /** Of all tables, each once. Some may be gone just now. */
  readonly gateways: readonly Ip[];
}

export interface MirrorOptions {
  /** Called when notifications of changes were lost; the state is listed again. */
  readonly onLoss?: (error: Error) => void;
  /** Called with index and name of each link that was deleted, unless the notification was lost. */
  readonly onLinkGone?: (index: number, name: string) => void;
  /** Called when {@link NodeMirror.listGateways} should run soon. */
  readonly onGatewaysOutdated?: () => void;
  /** Called for changes of addresses, rules, routes and links, and when notifications were lost. */
  readonly onChange?: (change: NodeChange) => void;
  readonly bufferBytes?: number;
  readonly native?: Native;
}

export class NodeMirror implements Disposable {
  readonly #route: Conversation;
  readonly #monitor: Monitor;
  readonly #onLoss: (error: Error) => void;
  readonly #onLinkGone: NonNullable<MirrorOptions["onLinkGone"]>;
  readonly #onChange: (change: NodeChange) => void;

  #addresses: readonly AddressState[] | undefined;
  /** Names of these addresses' links, by index. */
  readonly #names = new Map<number, string>();
  #rules: readonly RuleState[] | undefined;
  readonly #gateways: Gateways;
  readonly #tables = new Map<number, RouteMirror>();
  readonly #nftTables = new Map<string, CachedTable>();
  #notifications = 0;

  /** Throws NetlinkError if the kernel refuses the socket, or NetnsError. */
  constructor({ fd, path, route }: NetnsHandle & { readonly route: Conversation }, options: MirrorOptions = {}) {
    const {
      onLoss = () => {},
      onLinkGone = () => {},
      onGatewaysOutdated = () => {},
      onChange = () => {},
      bufferBytes = MIRROR_QUEUE_BYTES,
      native = loadNative(),
    } = options;
    this.#route = route;
    this.#onLoss = onLoss;
    this.#onLinkGone = onLinkGone;
    this.#onChange = onChange;
    this.#gateways = new Gateways(() => openRouteSocket({ fd, path }, native), onGatewaysOutdated);
    this.#monitor = openMonitor(
      { fd, path },
      { groups: GROUPS, bufferBytes, gatherMs: MIRROR_GATHER_MS },
      {
        message: (message) => this.#apply(message),
        lost: (error) => {
          this.#notifications++;
          this.#onLoss(error);
          this.#onChange({ kind: "unknown" });
          this.#forgetAll();
        },
      },
      native,
    );
  }

  [Symbol.dispose](): void {
    this.#monitor[Symbol.dispose]();
  }

  /** Makes the next reading list everything. */
  #forgetAll(): void {
    this.#gateways.forget();
    this.#forget();
  }

  /** As {@link #forgetAll}, but for gateways. */
  #forget(): void {
    this.#addresses = undefined;
    this.#rules = undefined;
    for (const table of this.#tables.values()) table.isStale = true;
  }

  /** Returns the present state. Throws NetlinkError. */
  read(): MirroredState {
    return this.#readStable(() => {
      this.#addresses ??= this.#listAddresses();
      this.#rules ??= this.#listRules();
      return { addresses: this.#addresses, rules: this.#rules, gateways: this.#gateways.read() };
    });
  }

  /** Drops gateways that are gone, in parts, between which other work gets its turn. Throws NetlinkError. */
  async listGateways(): Promise<void> {
    this.#drain();
    await this.#gateways.list();
    this.#drain();
    this.#gateways.dropGone();
  }

  /** Returns the present state, also if the node has just got one of these IPv6 addresses. Throws NetlinkError. */
  readFor(ips: readonly Ip[]): MirroredState {
    const state = this.read();
    const isListed = (ip: Ip): boolean => state.addresses.some(({ prefix }) => equalIp(prefix.ip, ip));
    const unlisted = ips.filter((ip) => ip.family === 6 && !isListed(ip));
    if (!hasAnyAddress(this.#route, unlisted)) return state;
    this.#addresses = undefined;
    return this.read();
  }

  /** Returns the table's routes to these addresses, and all of protocols other than `own`. Throws NetlinkError. */
  selectRoutes(table: number, ips: readonly Ip[], own: number): Route[] {
    return this.#readStable(() => this.#freshTable(table).select(ips, own));
  }

  /** Returns all routes of the table. Throws NetlinkError. */
  routesOf(table: number): Route[] {
    return this.#readStable(() => this.#freshTable(table).all());
  }

  /** Returns the present table of nf_tables: it is read only after a change of the ruleset. Throws NetlinkError. */
  nftTable(netfilter: Conversation, name: string): NftTable | undefined {
    const known = this.#nftTables.getOrInsertComputed(name, () => new CachedTable(name));
    return known.read(netfilter);
  }

  /**
   * Compares the mirror with fresh lists, which it takes over. Returns the differences, `-` for lines of the mirror and
   * `+` for those of the lists; nothing if each attempt met changes. Without gateways. Throws NetlinkError.
   */
  verify(): string[] {
    for (let attempt = 0; attempt < MIRROR_ATTEMPTS; attempt++) {
      const before = this.#lines();
      const count = this.#notifications;
      this.#forget();
      const now = this.#lines();
      if (this.#notifications !== count) continue;
      const [old, fresh] = [new Set(before), new Set(now)];
      const lost = before.filter((line) => !fresh.has(line)).map((line) => `-${line}`);
      return [...lost, ...now.filter((line) => !old.has(line)).map((line) => `+${line}`)];
    }
    return [];
  }

  #lines(): string[] {
    const { addresses, rules } = this.read();
    const routes = [...this.#tables.keys()].flatMap((table) => this.routesOf(table));
    return [
      ...addresses.filter(isReported).map((each) => `address ${formatAddress(each)}`),
      ...rules.map((each) => `IPv${each.family} rule ${formatRule(each)}`),
      ...routes.map((each) => `route ${formatRoute(each)} proto ${each.protocol}`),
    ];
  }

  /** Reads until no change that makes a part stale was reported meanwhile. */
  #readStable<T>(read: () => T): T {
    this.#drain();
    let value = read();
    for (let attempt = 1; attempt < MIRROR_ATTEMPTS && this.#hasListed; attempt++) {
      this.#hasListed = false;
      this.#drain();
      value = read();
    }
    this.#hasListed = false;
    return value;
  }

  /** Whether a part was listed since the queue was emptied. */
  #hasListed = false;

  #drain(): void {
    if (!this.#monitor.drain()) this.#forgetAll();
  }

  #freshTable(table: number): RouteMirror {
    const known = this.#tables.getOrInsertComputed(table, () => new RouteMirror());
    if (known.isStale) {
      this.#hasListed = true;
      const routes = listRoutes(this.#route, { table }).map(routeOf);
      known.replace(routes.filter((route) => route !== undefined));
    }
    return known;
  }

  #listAddresses(): AddressState[] {
    this.#hasListed = true;
    const found = listAddresses(this.#route).flatMap((message) => {
      const prefix = prefixOf(message);
      return prefix === undefined || prefixContains(LINK_LOCAL, prefix.ip) ? [] : [message];
    });
    const names = new Map(listLinks(this.#route, NAME_ONLY).map((link) => [link.index, nameOf(link.attributes)]));
    this.#names.clear();
    return found.flatMap((message) => {
      const name = names.get(message.index);
      const address = addressOf(message);
      if (name === undefined || address === undefined) return [];
      this.#names.set(message.index, name);
      return addressStateOf(address, () => name, detached(restOf(message))) ?? [];
    });
  }

  #listRules(): RuleState[] {
    this.#hasListed = true;
    return listRules(this.#route)
      .map(ruleOf)
      .flatMap((rule) => (rule === undefined ? [] : [ruleStateOf({ ...rule, rest: detached(rule.rest) })]));
  }

  #apply(message: ReceivedMessage): void {
    this.#notifications++;
    switch (message.type) {
      case RTM_NEWLINK:
      case RTM_DELLINK:
        this.#applyLink(message);
        return;
      case RTM_NEWADDR:
      case RTM_DELADDR:
        this.#applyAddress(message);
        return;
      case RTM_NEWRULE:
      case RTM_DELRULE:
        this.#rules = undefined;
        this.#reportRule(message);
        return;
      case RTM_NEWROUTE:
      case RTM_DELROUTE:
        this.#applyRoute(message);
        return;
      case RTM_NEWNEXTHOP:
      case RTM_DELNEXTHOP:
        if (message.type === RTM_NEWNEXTHOP) this.#gateways.hear(message);
        this.#gateways.outdate();
        for (const table of this.#tables.values()) table.nextHopLost();
    }
  }

  #applyLink(message: ReceivedMessage): void {
    // bridges report their ports in the same group, and the deletion of a port is not that of the link
    if (uint8At(message.payload, 0) !== AF_UNSPEC) return;
    const { index, flags, change, attributes } = decodeLink({ ...message, type: RTM_NEWLINK }, NAME_ONLY);
    const isLost = message.type === RTM_DELLINK || (flags & IFF_UP) === 0;
    const name = this.#names.get(index);
    if (name !== undefined && (message.type === RTM_DELLINK || nameOf(attributes) !== name))
      this.#addresses = undefined;
    if (!isLost) return;
    if (change !== ALL_FLAGS && (change & IFF_UP) !== 0) this.#reportDown(message);
    if (message.type === RTM_DELLINK) this.#onLinkGone(index, nameOf(attributes));
    this.#gateways.outdate();
    for (const table of this.#tables.values()) table.linkLost(index);
  }

  #applyAddress(message: ReceivedMessage): void {
    const address = decodeAddress({ ...message, type: RTM_NEWADDR });
    const prefix = prefixOf(address);
    if (prefix === undefined || prefixContains(LINK_LOCAL, prefix.ip)) return;
    this.#addresses = undefined;
    const isNew = message.type === RTM_NEWADDR;
    this.#onChange({ kind: "address", isNew, linkName: this.#names.get(address.index) });
    if (isNew) return;
    this.#gateways.outdate();
    for (const table of this.#tables.values()) table.addressLost(address.index);
  }

  #applyRoute(message: ReceivedMessage): void {
    const found = decodeRouteMessage({ ...message, type: RTM_NEWROUTE });
    if ((found.flags & RTM_F_CLONED) !== 0) return;
    if (found.table === RT_TABLE_LOCAL) {
      if (found.protocol !== RTPROT_KERNEL) this.#onChange({ kind: "route", link: undefined, port: message.port });
      return;
    }
    const isAdded = message.type === RTM_NEWROUTE;
    const isOnlyAdded = isAdded && (message.flags & NLM_F_REPLACE) === 0;
    if (isAdded) this.#gateways.hear(message);
    if (!isOnlyAdded) this.#gateways.outdate();
    const table = this.#tables.get(readValue(found.attributes, RTA_TABLE, decodeUint32) ?? found.table);
    const route = table && routeOf(found);
    if (route === undefined) return;
    if (isAdded) table?.added(route, message.flags);
    else table?.removed(route);
    if (isOnlyAdded) return;
    this.#onChange({ kind: "route", link: route.link, port: message.port });
  }

  #reportDown(message: ReceivedMessage): void {
    const { index: link, kind } = linkOf(decodeLink({ ...message, type: RTM_NEWLINK }, LINK_ATTRIBUTES));
    const type = kind === undefined ? "" : kindName(kind);
    this.#onChange({ kind: "link", link, type, port: message.port });
  }

  #reportRule(message: ReceivedMessage): void {
    const rule = ruleOf(decodeRuleMessage({ ...message, type: RTM_NEWRULE }));
    if (rule === undefined) return;
    const { preference, protocol = 0 } = rule;
    this.#onChange({ kind: "rule", isNew: message.type === RTM_NEWRULE, preference, protocol, port: message.port });
  }
}

/** Returns whether the kernel reports the added address: it does when duplicate address detection is over. */
function isReported({ flags }: AddressState): boolean {
  return (flags & IFA_F_TENTATIVE) === 0;
}

function nameOf(attributes: Parameters<typeof findValue>[0]): string {
  return readValue(attributes, IFLA_IFNAME, decodeString) ?? "";
}
