/** What the coordinator has set up in the node's own network namespace, for all pods: found by Berth's marks, without any state. */
import { parseAlias } from "../coordinator/plan/alias.ts";
import { BERTH_PROTOCOL, NFT_TABLE } from "../coordinator/plan/constants.ts";
import { applyOperation } from "../kernel/apply-operation.ts";
import { deleteLink } from "../kernel/netlink/link/requests.ts";
import { observeNamespace } from "../kernel/observe-namespace.ts";
import type { NamespaceSource } from "../kernel/open-namespace.ts";
import type { Operation } from "../plan/operation.ts";
import { formatOperation } from "../plan/text.ts";
import type { Step } from "./step.ts";

/**
 * Plans the removal of the pairs to pods, of the routes and rules of Berth's protocol, and of its nf_tables table. Settings of links (rp_filter) stay:
 * their former values are not known. Throws NetlinkError.
 */
export function planRoutingRemoval(host: NamespaceSource): Step[] {
  const isOwn = ({ protocol }: { readonly protocol: number }) => protocol === BERTH_PROTOCOL;
  const query = { routeTables: "every", isRouteWanted: isOwn, rules: true, tables: [NFT_TABLE] } as const;
  const { links, routes, rules, tables } = observeNamespace(host, query);
  const pairs = links.filter(({ kind, alias }) => kind === "veth" && parseAlias(alias) !== undefined);
  const operations: Operation[] = [
    ...rules.filter(isOwn).map((rule) => ({ kind: "delete-rule", place: "host", rule }) as const),
    ...routes.map((route) => ({ kind: "delete-route", place: "host", route }) as const),
    ...tables.map((table) => ({ kind: "delete-table", place: "host", table }) as const),
  ];
  return [
    ...operations.map((operation) => ({
      text: formatOperation(operation),
      run: () => applyOperation(operation, { pod: host, host }),
    })),
    ...pairs.map(({ index, name, alias }) => ({
      text: `host: ip link delete ${name} (${alias})`,
      run: () => void deleteLink(host.route, index),
    })),
  ];
}
