/** Reads the node's state for all of its pods, for `berthctl check`. */
import { parseAlias } from "../../coordinator/plan/alias.ts";
import { PAIR_START } from "../../coordinator/plan/names.ts";
import { ruleTablesOf } from "../../coordinator/plan/own-objects.ts";
import type { ResolvedNeighbour } from "../../findings/node/find-damage.ts";
import { EPROTONOSUPPORT } from "../../kernel/errno.ts";
import { unlessRefused } from "../../kernel/netlink/error.ts";
import { NUD_NOARP, NUD_PERMANENT } from "../../kernel/netlink/neighbour/constants.ts";
import { confirmedAgoMs, neighbourOf } from "../../kernel/netlink/neighbour/neighbour.ts";
import { listNeighbours } from "../../kernel/netlink/neighbour/requests.ts";
import { listClosedChains } from "../../kernel/netlink/nftables/requests.ts";
import { observeNamespace } from "../../kernel/observe-namespace.ts";
import type { NamespaceSource } from "../../kernel/open-namespace.ts";
import type { NamespaceState } from "../../plan/state.ts";

export interface NodeState {
  /** Links, rules, the tables that Berth's rules do and should look up, and permanent neighbours. */
  readonly state: NamespaceState;
  readonly neighbours: readonly ResolvedNeighbour[];
  /** Chains of others that drop pods' packets to other nodes, as `ip filter FORWARD`. */
  readonly closedChains: readonly string[];
}

/** `table`: `hostRuleTable` of definitions that name none. Throws NetlinkError if the kernel refuses. */
export function observeNode(host: NamespaceSource, table: number): NodeState {
  const tables = ruleTablesOf(observeNamespace(host, { rules: true })).add(table);
  const state = observeNamespace(host, { routeTables: [...tables], rules: true, neighbours: [{}] });
  const neighbours = listNeighbours(host.route).flatMap((message) => {
    const { ip, mac, link, state: reached } = neighbourOf(message) ?? {};
    if (ip === undefined || mac === undefined || link === undefined || reached === undefined) return [];
    if ((reached & NUD_NOARP) !== 0) return [];
    const ago = (reached & NUD_PERMANENT) !== 0 ? 0 : confirmedAgoMs(message);
    return ago === undefined ? [] : [{ link, ip, mac, confirmedAgoMs: ago }];
  });
  const hasPairs = state.links.some(({ alias }) => parseAlias(alias) !== undefined);
  const list = () => (hasPairs ? listClosedChains(host.netfilter, PAIR_START) : []);
  return { state, neighbours, closedChains: unlessRefused([EPROTONOSUPPORT], list) ?? [] };
}
