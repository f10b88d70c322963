/** Operations as commands of iproute2 and sysctl for a shell on the node. text.ts has the texts of logs and tests. */
import { formatIp } from "../net/ip.ts";
import { formatPrefix } from "../net/prefix.ts";
import type { Operation } from "./operation.ts";
import type { AddressState, LinkSettings, RouteState, RuleState } from "./state.ts";
import { formatNeighbour, formatRoute, formatRule } from "./text.ts";

const UNICAST = 1;
/** IFA_F_NODAD, IFA_F_NOPREFIXROUTE */
const ADDRESS_FLAGS: readonly (readonly [number, string])[] = [
  [0x02, "nodad"],
  [0x200, "noprefixroute"],
];

/**
 * Returns the command, to be run as root on the node. `podPath` is the path of the pod's namespace. Undefined for
 * objects without a command of their own: a table of nf_tables, a device, and a route beside others with its
 * destination and metric.
 */
export function formatCommand(operation: Operation, podPath: string): string | undefined {
  const words = wordsOf(operation, podPath);
  if (words === undefined) return undefined;
  const isInPod = "place" in operation && operation.place === "pod";
  return [...(isInPod ? ["nsenter", `--net=${podPath}`] : []), ...words].map(quote).join(" ");
}

function wordsOf(operation: Operation, podPath: string): string[] | undefined {
  switch (operation.kind) {
    case "add-veth": {
      const { host, pod } = operation.veth;
      const peer = ["peer", "name", pod.name, "address", pod.mac, "netns", podPath];
      return ["ip", "link", "add", host.name, "address", host.mac, "type", "veth", ...peer];
    }
    case "delete-veth":
      return ["ip", "link", "del", "dev", operation.veth.host.name];
    case "set-link":
      return ["ip", "link", "set", "dev", operation.link, ...settingWords(operation.to)];
    case "set-sysctl":
      // With slashes a dot belongs to the name of a link.
      return ["sysctl", "-w", `net/${operation.key}=${operation.to}`];
    case "add-address":
    case "delete-address":
      return ["ip", "addr", verbOf(operation), ...addressWords(operation.address)];
    case "add-neighbour":
      // The kernel may have learned another one meanwhile.
      return ["ip", "neigh", "replace", ...formatNeighbour(operation.neighbour).split(" ")];
    case "delete-neighbour":
      return ["ip", "neigh", "del", formatIp(operation.neighbour.ip), "dev", operation.neighbour.link];
    case "add-route":
    case "delete-route": {
      const { route, beside } = operation;
      if (beside !== undefined) return undefined;
      return [...ipOf(route.destination.ip.family), "route", verbOf(operation), ...routeWords(route)];
    }
    case "add-rule":
    case "delete-rule":
      return [...ipOf(operation.rule.family), "rule", verbOf(operation), ...ruleWords(operation.rule)];
    default:
      return undefined;
  }
}

const verbOf = ({ kind }: Operation): string => (kind.startsWith("add-") ? "add" : "del");

const ipOf = (family: number): string[] => (family === 6 ? ["ip", "-6"] : ["ip"]);

function settingWords({ up, mac, alias, group, master, mtu }: LinkSettings): string[] {
  return [
    ...(master === undefined ? [] : master === "" ? ["nomaster"] : ["master", master]),
    ...(mac === undefined ? [] : ["address", mac]),
    ...(alias === undefined ? [] : ["alias", alias]),
    ...(group === undefined ? [] : ["group", `${group}`]),
    ...(mtu === undefined ? [] : ["mtu", `${mtu}`]),
    ...(up === undefined ? [] : [up ? "up" : "down"]),
  ];
}

function addressWords({ prefix, link, scope, flags, peer }: AddressState): string[] {
  const own =
    peer === undefined ? [formatPrefix(prefix)] : [formatIp(prefix.ip), "peer", `${formatIp(peer)}/${prefix.length}`];
  const named = ADDRESS_FLAGS.filter(([flag]) => (flags & flag) !== 0).map(([, name]) => name);
  return [...own, "dev", link, ...(scope === 0 ? [] : ["scope", `${scope}`]), ...named];
}

/** Without a scope, `ip` chooses one for a route of IPv4 that has no gateway. It reads a TOS as hexadecimal. */
function routeWords(route: RouteState): string[] {
  const { destination, type, scope, gateway, nextHops, tos } = route;
  const isImplied = destination.ip.family === 6 || gateway !== undefined || nextHops !== undefined || type !== UNICAST;
  return [
    ...(tos === 0 ? [] : ["tos", `0x${tos.toString(16)}`]),
    ...(scope === 0 && !isImplied ? ["scope", "global"] : []),
    // The next hops are last.
    ...formatRoute({ ...route, tos: 0 }).split(" "),
  ];
}

/**
 * Parts of a rule that Berth does not read, and actions other than a lookup, cannot be named; the kernel finds the rule
 * without them.
 */
function ruleWords(rule: RuleState): string[] {
  const { tos, protocol } = rule;
  return [
    ...formatRule({ ...rule, rest: [], protocol: 0, tos: 0 })
      .replace(/ action \d+$/, "")
      .split(" "),
    ...(tos === 0 ? [] : ["tos", `0x${tos.toString(16)}`]),
    ...(protocol === 0 ? [] : ["protocol", `${protocol}`]),
  ];
}

/** Names of links come from pods, too: no character of one may reach the shell. */
function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
