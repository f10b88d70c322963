/** The mark by which Berth recognises its prefixes on the server of record: a part of their descriptions. */
import type { Mark } from "../blocks/lease-server.ts";

/** Longest name that a mark has: characters. NetBox's descriptions have 200 at most. */
const MAX_NAME = 50;

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
