/** The statement of one source, or of several in order of precedence, about one kind of network. */
import { MAX_CIDRS } from "../../config/coordinator-conf.ts";
import { listSome } from "../../lib/describe.ts";
import { formatPrefix, type Prefix } from "../../net/prefix.ts";
import { type Statement, uniquePrefixes } from "./statement.ts";

/** A collected IPv4 network with a shorter prefix than this counts as wide (MAX_WIDE_NETWORKS). */
const WIDE_IPV4_LENGTH = 16;

/** A collected IPv6 network with a shorter prefix than this counts as wide (MAX_WIDE_NETWORKS). */
const WIDE_IPV6_LENGTH = 48;

/** Most wide networks among collected pod networks, and among service networks: many would cover all addresses. */
export const MAX_WIDE_NETWORKS = 16;

/** Most sources that a Coordinator's `status.reason` names for one key. */
const MAX_NAMED_PLACES = 5;

export type NetworkFinding =
  | { readonly kind: "found"; readonly networks: readonly Prefix[]; readonly place: string }
  /** All of these were read, and none names a network. */
  | { readonly kind: "absent"; readonly places: readonly string[] }
  /** Malformed, or in conflict with another source: a sentence. */
  | { readonly kind: "wrong"; readonly reason: string }
  /** Unknown. `problem` is undefined while the source may still answer. */
  | { readonly kind: "unread"; readonly place: string; readonly problem: string | undefined };

export interface SourceState<T> {
  /** `ServiceCIDR objects` */
  readonly place: string;
  readonly items: readonly T[];
  readonly isRead: boolean;
  readonly problem: string | undefined;
}

/** Returns the finding of a source that must be read first. */
export function foundIn<T>(seen: SourceState<T>, find: (items: readonly T[]) => NetworkFinding): NetworkFinding {
  return seen.isRead ? find(seen.items) : { kind: "unread", place: seen.place, problem: seen.problem };
}

/** Returns the union of all statements. `where` names the source of an empty union. */
export function unite(where: string, statements: readonly Statement[]): NetworkFinding {
  const [fault] = statements.flatMap(({ faults }) => faults);
  if (fault !== undefined) return { kind: "wrong", reason: fault };
  const networks = uniquePrefixes(statements.flatMap((statement) => statement.networks));
  if (networks.length > MAX_CIDRS) {
    return { kind: "wrong", reason: `${where}: ${networks.length} networks; at most ${MAX_CIDRS} are allowed` };
  }
  const wide = networks.filter(({ ip, length }) => length < (ip.family === 4 ? WIDE_IPV4_LENGTH : WIDE_IPV6_LENGTH));
  if (wide.length > MAX_WIDE_NETWORKS) {
    const size = `/${WIDE_IPV4_LENGTH} (IPv6: /${WIDE_IPV6_LENGTH})`;
    return {
      kind: "wrong",
      reason: `${where}: ${wide.length} networks wider than ${size}; at most ${MAX_WIDE_NETWORKS} are allowed`,
    };
  }
  if (networks.length === 0) return { kind: "absent", places: [where] };
  return { kind: "found", networks, place: listPlaces(statements.map(({ place }) => place)) };
}

/** Returns the union of statements about the same thing; two that differ are a conflict. */
export function agree(where: string, statements: readonly Statement[]): NetworkFinding {
  const united = unite(where, statements);
  if (united.kind !== "found") return united;
  const [first, ...others] = statements;
  const other = others.find((each) => textOf(each) !== (first && textOf(first)));
  if (first === undefined || other === undefined) return united;
  const reason = `${first.place} says ${textOf(first)}, ${other.place} says ${textOf(other)}`;
  return { kind: "wrong", reason };
}

/** Returns the first source's finding. An unreadable source is not skipped: its networks would take precedence. */
export function firstOf(...findings: readonly NetworkFinding[]): NetworkFinding {
  const known = findings.find(({ kind }) => kind !== "absent");
  return known ?? { kind: "absent", places: findings.flatMap((each) => (each.kind === "absent" ? each.places : [])) };
}

function textOf({ networks }: Statement): string {
  return networks.map(formatPrefix).join(", ");
}

function listPlaces(places: readonly string[]): string {
  return listSome([...places].sort(), MAX_NAMED_PLACES);
}
