/**
 * What one place says about networks: texts of others, in whose care they are, as canonical prefixes, or what is wrong with them.
 */
import { MAX_CIDRS } from "../../config/coordinator-conf.ts";
import { MAX_PREFIX_LENGTH } from "../../config/fields/network.ts";
import { describeValue } from "../../lib/describe.ts";
import { bitsOf, compareIp, type Family, isIpv4Mapped } from "../../net/ip.ts";
import { formatPrefix, maskPrefix, type Prefix, parsePrefix, prefixContains } from "../../net/prefix.ts";

/** Shortest prefix of an IPv4 network that is collected: no cluster has more to itself, and all of it would be led over the node. @limit */
export const MIN_CLUSTER_IPV4_LENGTH = 8;

/** Shortest prefix of an IPv6 network that is collected. @limit */
export const MIN_CLUSTER_IPV6_LENGTH = 16;

export interface Statement {
  /** `ServiceCIDR kubernetes`, `Pod kube-controller-manager-n1, --cluster-cidr`. */
  readonly place: string;
  /** Without host bits, each once, IPv4 first. */
  readonly networks: readonly Prefix[];
  /** Sentences that name the place and the text. With any of them the rest is not to be trusted either. */
  readonly faults: readonly string[];
}

/**
 * The networks in texts that may each list several, with commas or blanks between. None: the place says nothing. Host bits are cleared, as
 * Kubernetes does.
 */
export function readStatements(place: string, texts: readonly string[]): Statement[] {
  const words = texts.flatMap((text) => text.split(/[\s,]+/)).filter((word) => word !== "");
  if (words.length === 0) return [];
  const known = words.slice(0, MAX_CIDRS).map((word) => ({ word, network: parseNetwork(word) }));
  const wrong = known.filter(({ network }) => typeof network === "string");
  const many =
    words.length > MAX_CIDRS ? [`${place}: ${words.length} networks; there may be ${MAX_CIDRS} at most`] : [];
  return [
    {
      place,
      networks: uniquePrefixes(known.flatMap(({ network }) => (typeof network === "string" ? [] : [network]))),
      faults: [...wrong.map(({ word, network }) => `${place}: ${describeValue(word)} ${network}`), ...many],
    },
  ];
}

/** A place that cannot be read. */
export function faultyStatement(place: string, fault: string): Statement {
  return { place, networks: [], faults: [`${place}: ${fault}`] };
}

/** What deploy/policies.yaml lets the controller write, too. */
const SHORTEST: Readonly<Record<Family, number>> = { 4: MIN_CLUSTER_IPV4_LENGTH, 6: MIN_CLUSTER_IPV6_LENGTH };

/** What is wrong with it, as the rest of a sentence, when it is none that a pod may have a route to. */
function parseNetwork(word: string): Prefix | string {
  const prefix = word.length > MAX_PREFIX_LENGTH ? undefined : parsePrefix(word);
  if (prefix === undefined || isIpv4Mapped(prefix.ip)) return "is no network in CIDR form";
  const shortest = SHORTEST[prefix.ip.family];
  if (prefix.length < shortest) return `is wider than /${shortest}, which no cluster has to itself`;
  return maskPrefix(prefix);
}

function comparePrefixes(a: Prefix, b: Prefix): number {
  return a.ip.family - b.ip.family || compareIp(a.ip, b.ip) || a.length - b.length;
}

/** Each once, in one order whatever the order was. */
export function uniquePrefixes(prefixes: readonly Prefix[]): Prefix[] {
  return [...new Map(prefixes.map((prefix) => [formatPrefix(prefix), prefix])).values()].sort(comparePrefixes);
}

/** The same addresses in as few prefixes as there can be: the shares of a thousand nodes are one route. */
export function joinPrefixes(prefixes: readonly Prefix[]): Prefix[] {
  const joined: Prefix[] = [];
  for (const prefix of uniquePrefixes(prefixes)) {
    const last = joined.at(-1);
    if (last !== undefined && last.length <= prefix.length && prefixContains(last, prefix.ip)) continue;
    let next = prefix;
    for (let half = joined.at(-1); half !== undefined && areHalves(half, next); half = joined.at(-1)) {
      joined.pop();
      next = { ip: half.ip, length: half.length - 1 };
    }
    joined.push(next);
  }
  return joined;
}

/** Of one prefix, `a` the lower one, which is not too wide. */
function areHalves(a: Prefix, b: Prefix): boolean {
  if (a.length !== b.length || a.ip.family !== b.ip.family || a.length <= SHORTEST[a.ip.family]) return false;
  return (a.ip.value ^ b.ip.value) === 1n << BigInt(bitsOf(a.ip.family) - a.length);
}

/**
 * The last value of the flag, which is the one that counts; undefined without it. Underscores in a flag's name are dashes. A word with blanks
 * that is no flag itself is a shell's line, and looked into.
 */
export function findFlag(name: string, command: readonly string[]): string | undefined {
  const words = command.flatMap((word) => (word.startsWith("-") ? [word] : wordsOf(word)));
  let found: string | undefined;
  for (const [index, word] of words.entries()) {
    if (word === "--") break;
    if (!word.startsWith("--")) continue;
    const equals = word.indexOf("=");
    const flag = (equals < 0 ? word : word.slice(0, equals)).slice(2).replaceAll("_", "-");
    if (flag !== name) continue;
    found = equals < 0 ? (words[index + 1] ?? "") : word.slice(equals + 1);
  }
  return found;
}

function wordsOf(line: string): string[] {
  return line.split(/\s+/).map((word) => word.replaceAll(/["']/g, ""));
}
