/**
 * Operations and their objects as text, in the words of `ip`, `nft` and `sysctl`, for logs, errors and golden tests.
 *
 *      pod: ip route add default via 10.6.0.1 dev eth0 table 101 proto 98
 */
import { bitsOf, formatIp } from "../net/ip.ts";
import { formatPrefix, type Prefix } from "../net/prefix.ts";
import { formatBondSettings } from "./bond.ts";
import type { Device, Operation } from "./operation.ts";
import {
  type AddressState,
  IPV6_METRIC,
  type LinkSettings,
  type NeighbourState,
  type NextHopState,
  type RouteState,
  type RuleState,
} from "./state.ts";

type Word = string | false | undefined;

const words = (...list: Word[]): string => list.filter((word) => word !== false && word !== undefined).join(" ");

/** RTN_*, RTPROT_*, RT_SCOPE_*; those that are implied are "". */
const TYPES = new Map([
  [1, ""],
  [2, "local"],
  [3, "broadcast"],
  [5, "multicast"],
  [6, "blackhole"],
  [7, "unreachable"],
  [8, "prohibit"],
]);
const PROTOCOLS = new Map([
  [2, "kernel"],
  [3, "boot"],
  [4, "static"],
  [9, "ra"],
]);
const SCOPES = new Map([
  [0, ""],
  [253, "link"],
  [254, "host"],
]);
const MAIN = 254;
const TO_TABLE = 1;
const INVERT = 2;
const ONLINK = 4;

/** Formats `via GATEWAY dev LINK`, without absent parts. */
export function formatHop({ gateway, link }: Pick<RouteState, "gateway" | "link">): string {
  return words(gateway && `via ${formatIp(gateway)}`, link !== undefined && `dev ${link}`);
}

function formatNextHop(hop: NextHopState): string {
  return words("nexthop", formatHop(hop), `weight ${hop.weight}`, (hop.flags & ONLINK) !== 0 && "onlink");
}

export function formatRoute(route: RouteState): string {
  const { destination, table, metric, preferredSource, nextHops } = route;
  const { family } = destination.ip;
  const type = TYPES.get(route.type) ?? `type ${route.type}`;
  const scope = SCOPES.get(route.scope) ?? `${route.scope}`;
  return words(
    type !== "" && type,
    destination.length === 0 ? "default" : formatPrefix(destination),
    formatHop(route) || undefined,
    route.source && `from ${formatPrefix(route.source)}`,
    route.tos !== 0 && `tos ${route.tos}`,
    table !== MAIN && `table ${table}`,
    `proto ${PROTOCOLS.get(route.protocol) ?? route.protocol}`,
    scope !== "" && `scope ${scope}`,
    preferredSource && `src ${formatIp(preferredSource)}`,
    metric !== (family === 6 ? IPV6_METRIC : 0) && `metric ${metric}`,
    (route.flags & ONLINK) !== 0 && "onlink",
    ...(nextHops ?? []).map(formatNextHop),
  );
}

/** Formats a prefix of full length as an address. */
function formatSelector(prefix: Prefix | undefined): string {
  if (prefix === undefined) return "all";
  return prefix.length === bitsOf(prefix.ip.family) ? formatIp(prefix.ip) : formatPrefix(prefix);
}

export function formatRule(rule: RuleState): string {
  const { from, to, mark, inputName, outputName, table, action } = rule;
  const hex = (value: number) => `0x${(value >>> 0).toString(16)}`;
  return words(
    (rule.flags & INVERT) !== 0 && "not",
    `pref ${rule.preference}`,
    `from ${formatSelector(from)}`,
    to && `to ${formatSelector(to)}`,
    mark && `fwmark ${hex(mark.value)}/${hex(mark.mask)}`,
    inputName !== undefined && `iif ${inputName}`,
    outputName !== undefined && `oif ${outputName}`,
    rule.tos !== 0 && `tos ${rule.tos}`,
    rule.goto !== undefined && `goto ${rule.goto}`,
    rule.goto === undefined && (action === TO_TABLE ? `lookup ${table}` : `action ${action}`),
    rule.rest.length > 0 && `and ${rule.rest.length} more`,
    rule.protocol !== 0 && `proto ${PROTOCOLS.get(rule.protocol) ?? rule.protocol}`,
  );
}

export function formatNeighbour({ ip, mac, link }: NeighbourState): string {
  return `${formatIp(ip)} lladdr ${mac} dev ${link} nud permanent`;
}

/** The scope of an IPv6 address follows from the address. */
export function formatAddress({ prefix, link, scope }: Pick<AddressState, "prefix" | "link" | "scope">): string {
  const scoped = prefix.ip.family === 4 && scope !== 0;
  return words(`${formatPrefix(prefix)} dev ${link}`, scoped && `scope ${SCOPES.get(scope) ?? scope}`);
}

function formatSettings({ up, mac, alias, group, master, mtu }: LinkSettings): string {
  return words(
    master !== undefined && (master === "" ? "nomaster" : `master ${master}`),
    mac !== undefined && `address ${mac}`,
    alias !== undefined && `alias ${JSON.stringify(alias)}`,
    group !== undefined && `group ${group}`,
    mtu !== undefined && `mtu ${mtu}`,
    up !== undefined && (up ? "up" : "down"),
  );
}

function formatDevice(device: Device): string {
  const { name } = device;
  if (device.kind === "vlan") return `link ${device.parent} name ${name} type vlan id ${device.id}`;
  return words(
    name,
    device.mtu !== undefined && `mtu ${device.mtu}`,
    "type bond",
    formatBondSettings(device.settings) || undefined,
  );
}

const of = (family: number): string => (family === 6 ? "ip -6" : "ip");

/** Formats the operation as one line, without a newline. */
export function formatOperation(operation: Operation): string {
  const verb = operation.kind.startsWith("add-") ? "add" : "del";
  switch (operation.kind) {
    case "add-veth": {
      const { host, pod } = operation.veth;
      const peer = `peer name ${pod.name} address ${pod.mac} netns pod`;
      return `host: ip link add ${host.name} address ${host.mac} type veth ${peer}`;
    }
    case "delete-veth":
      return `host: ip link del ${operation.veth.host.name}`;
    case "add-device":
      return `${operation.place}: ip link add ${formatDevice(operation.device)}`;
    case "delete-device":
      return `${operation.place}: ip link del ${operation.device.name}`;
    case "set-bond":
      return `${operation.place}: ip link set ${operation.link} type bond ${formatBondSettings(operation.to)}`;
    case "try-member":
      return `${operation.place}: ip link set ${operation.link} master ${operation.bond} # in use?`;
    case "set-link":
      return `${operation.place}: ip link set ${operation.link} ${formatSettings(operation.to)}`;
    case "add-alt-name":
    case "delete-alt-name":
      return `${operation.place}: ip link property ${verb} dev ${operation.link} altname ${operation.altName}`;
    case "set-sysctl":
      return `${operation.place}: sysctl net/${operation.key}=${operation.to}`;
    case "add-address":
    case "delete-address":
      return `${operation.place}: ip addr ${verb} ${formatAddress(operation.address)}`;
    case "add-neighbour":
    case "delete-neighbour":
      return `${operation.place}: ip neigh ${verb} ${formatNeighbour(operation.neighbour)}`;
    case "add-route":
    case "delete-route": {
      const { place, route } = operation;
      return `${place}: ${of(route.destination.ip.family)} route ${verb} ${formatRoute(route)}`;
    }
    case "add-rule":
    case "delete-rule":
      return `${operation.place}: ${of(operation.rule.family)} rule ${verb} ${formatRule(operation.rule)}`;
    case "add-table":
    case "delete-table":
      return `${operation.place}: nft ${verb === "add" ? "add" : "delete"} table inet ${operation.table.name}`;
  }
}
