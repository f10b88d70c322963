/** The statement of one source about networks: foreign text as canonical prefixes, or the fault in it. */
import { MAX_CIDRS } from "../../config/coordinator-conf.ts";
import { MAX_PREFIX_LENGTH } from "../../config/fields/network.ts";
import { describeValue } from "../../lib/describe.ts";
import { bitsOf, compareIp, type Family, isIpv4Mapped } from "../../net/ip.ts";
import { formatPrefix, maskPrefix, type Prefix, parsePrefix, prefixContains } from "../../net/prefix.ts";

/** Shortest prefix of a collected IPv4 network. No cluster owns a wider one; all of it is routed through the node. */
const MIN_CLUSTER_IPV4_LENGTH = 8;

/** Shortest prefix of a collected IPv6 network. */
const MIN_CLUSTER_IPV6_LENGTH = 16;

export interface Statement {
  /** `ServiceCIDR kubernetes`, `Pod kube-controller-manager-n1, --cluster-cidr`. */
  readonly place: string;
  /** Without host bits and duplicates, IPv4 first. */
  readonly networks: readonly Prefix[];
  /** Sentences that name the place and the text. With any of them the networks are unreliable, too. */
  readonly faults: readonly string[];
}

/**
 * Parses texts that may each list several networks, separated by commas or blanks. Returns an empty list if there are
 * none. Clears host bits, as Kubernetes does.
 */
export function readStatements(place: string, texts: readonly string[]): Statement[] {
  const words = texts.flatMap((text) => text.split(/[\s,]+/)).filter((word) => word !== "");
  if (words.length === 0) return [];
  const known = words.slice(0, MAX_CIDRS).map((word) => ({ word, network: parseNetwork(word) }));
  const wrong = known.filter(({ network }) => typeof network === "string");
  const many = words.length > MAX_CIDRS ? [`${place}: ${words.length} networks; at most ${MAX_CIDRS} are allowed`] : [];
  return [
    {
      place,
      networks: uniquePrefixes(known.flatMap(({ network }) => (typeof network === "string" ? [] : [network]))),
      faults: [...wrong.map(({ word, network }) => `${place}: ${describeValue(word)} ${network}`), ...many],
    },
  ];
}

/** Returns the statement of a source that cannot be read. */
export function faultyStatement(place: string, fault: string): Statement {
  return { place, networks: [], faults: [`${place}: ${fault}`] };
}

/** deploy/policies.yaml permits the controller the same. */
const SHORTEST: Readonly<Record<Family, number>> = { 4: MIN_CLUSTER_IPV4_LENGTH, 6: MIN_CLUSTER_IPV6_LENGTH };

/** Returns the prefix, or its fault as the end of a sentence: it must be a network that a pod may have a route to. */
function parseNetwork(word: string): Prefix | string {
  const prefix = word.length > MAX_PREFIX_LENGTH ? undefined : parsePrefix(word);
  if (prefix === undefined || isIpv4Mapped(prefix.ip)) return "is not a network in CIDR form";
  const shortest = SHORTEST[prefix.ip.family];
  if (prefix.length < shortest) return `is wider than /${shortest}, the widest network that a cluster may use`;
  return maskPrefix(prefix);
}

function comparePrefixes(a: Prefix, b: Prefix): number {
  return a.ip.family - b.ip.family || compareIp(a.ip, b.ip) || a.length - b.length;
}

/** Removes duplicates and sorts. */
export function uniquePrefixes(prefixes: readonly Prefix[]): Prefix[] {
  return [...new Map(prefixes.map((prefix) => [formatPrefix(prefix), prefix])).values()].sort(comparePrefixes);
}

/** Returns the same addresses in as few prefixes as possible: a thousand nodes' ranges become one route. */
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

/** Returns whether the prefixes, the lower one `a` first, are the halves of one that is not too wide. */
function areHalves(a: Prefix, b: Prefix): boolean {
  if (a.length !== b.length || a.ip.family !== b.ip.family || a.length <= SHORTEST[a.ip.family]) return false;
  return (a.ip.value ^ b.ip.value) === 1n << BigInt(bitsOf(a.ip.family) - a.length);
}

/**
 * Returns the flag's last value, which counts (pflag); undefined without it. Underscores in a flag's name equal dashes.
 * A word with blanks that is not a flag is a shell's command line, and is split.
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
