/** Prefixes that Berth makes within one of the server of record, and the mark by which it knows them again. */
import type { Prefix } from "../../../host/net/prefix.ts";

/** Longest name that a mark has: characters. NetBox's descriptions have 200 at most. */
const MAX_NAME = 50;

/** Whose a prefix of the server is: what Berth writes into its description. */
export interface Mark {
  /** UID of the namespace kube-system. */
  readonly cluster: string;
  /** The cluster's name, as people know it. */
  readonly name: string;
  readonly pool: string;
  /** UUID of the request by which it was made. */
  readonly request: string;
  /** It was made again after the server had lost it: another cluster may have got its addresses meanwhile. */
  readonly isAgain: boolean;
}

const MARK = /^Pods of ([^/\s]*)\/(\S*) |\[berth ([0-9A-Za-z-]{1,63}) ([0-9a-f-]{36})( again)?\]/g;

/** Returns `Pods of east/lan [berth 1e6f… 9c2b…]`. */
export function formatMark({ cluster, name, pool, request, isAgain }: Mark): string {
  const [shownName, shownPool] = [name, pool].map((each) => each.slice(0, MAX_NAME));
  return `Pods of ${shownName}/${shownPool} [berth ${cluster} ${request}${isAgain ? " again" : ""}]`;
}

/** Returns undefined for a description without a mark. People may write around it. */
export function parseMark(description: string): Mark | undefined {
  const found = [...description.matchAll(MARK)];
  const [, , , cluster, request, again] = found.find(([text]) => text.startsWith("[")) ?? [];
  const [, name = "", pool = ""] = found.find(([text]) => text.startsWith("P")) ?? [];
  if (cluster === undefined || request === undefined) return undefined;
  return { cluster, name, pool, request, isAgain: again !== undefined };
}

/** A prefix of the server, within the one that blocks are taken of. */
export interface ChildPrefix {
  /** The server's. */
  readonly id: string;
  readonly prefix: Prefix;
  /** The server's time: RFC 3339 in UTC. */
  readonly created: string;
  /** Undefined for one that no Berth has made. */
  readonly mark?: Mark | undefined;
}
