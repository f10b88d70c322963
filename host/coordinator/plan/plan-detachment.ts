/** Plans the state of a pod and its node with a NIC detached: nothing for this NIC, and no change for the others. */
import { RT_TABLE_MAIN } from "../../kernel/netlink/route/constants.ts";
import { equalIp, type Ip } from "../../net/ip.ts";
import { EMPTY_OWNED, EMPTY_PART, EMPTY_WANTED } from "../../plan/plan.ts";
import type { RouteState } from "../../plan/state.ts";
import { parseAlias } from "./alias.ts";
import { NFT_TABLE } from "./constants.ts";
import { hostRoutesOf, hostTablesOf, includesIp, isOwn, serviceRoutesIn, uniqueIps } from "./own-objects.ts";
import type { PlanInput, PlanResult } from "./plan-input.ts";
import { findNics } from "./plan-nics.ts";
import { hasNicTables, planPodRoutes } from "./plan-pod-routes.ts";
import { nicsIn, podTable } from "./plan-reply-path.ts";
import { findUnderlayPath, renewRoute } from "./plan-service-path.ts";
import { findSources } from "./plan-sources.ts";
import { replyFamiliesOf, replyRoutesIn } from "./plan-tables.ts";

/** Plans the detachment of a NIC. If the pod no longer exists, it is observed as empty. */
export function planDetachment(
  situation: Omit<PlanInput, "mode" | "defaultNic" | "alias" | "owner" | "gateways" | "routable" | "attached"> & {
    /** "" if the call does not say. */
    readonly network: string;
  },
): PlanResult {
  const { conf, ifName, observed, pair } = situation;
  const { pod, host } = observed;
  const { podDefaultCniNic: first } = conf;
  const isFirst = ifName === first;
  const gone = pod.addresses.filter(({ link, scope }) => link === ifName && scope === 0);
  const ips = uniqueIps([...situation.addresses, ...gone.map(({ prefix }) => prefix.ip)]);
  const links = pod.links.filter(({ name }) => name !== ifName);
  const nics = findNics({ ...pod, links }, first, ifName);
  const end = host.links.find(({ name, mac }) => name === pair.host.name && mac === pair.host.mac);
  const hasPair = end !== undefined;
  const isAlone = !hasPair && pod.links.every(({ name, loopback }) => loopback || name === first || name === ifName);
  // The pair of another container that got the same address meanwhile keeps its neighbours and routes.
  const pairs = host.links.filter(({ alias }) => parseAlias(alias) !== undefined).map(({ name }) => name);
  const others = new Set<string | undefined>(pairs);
  others.delete(pair.host.name);
  const isOurs = ({ link }: { readonly link?: string | undefined }): boolean => !others.has(link);
  // The pod's own addresses are not trusted: the node must reach them over the pod's pair or by its MAC.
  const ownMacs = pod.links.filter(({ name }) => name === first).map(({ mac }) => mac);
  const isReached = (ip: Ip): boolean =>
    includesIp(situation.addresses, ip) ||
    host.neighbours.some(
      (each) => equalIp(each.ip, ip) && (each.link === pair.host.name || ownMacs.includes(each.mac)),
    );
  const ours = serviceRoutesIn(pod);
  const left = {
    pod: { ...pod, addresses: pod.addresses.filter(({ link }) => link !== ifName) },
    host: { ...host, routes: host.routes.filter(({ destination }) => !includesIp(ips, destination.ip)) },
  };
  const sources = findSources({ observed: left, pair, attached: [], conf }, []);
  const path = findUnderlayPath(
    { pair, observed },
    nics.slice(0, 1).flatMap(({ addresses }) => addresses),
  );
  // A NIC's additions to the path stay; without a NIC of the family there is no source for it.
  const withoutGone = (route: RouteState): RouteState =>
    route.preferredSource !== undefined && includesIp(ips, route.preferredSource)
      ? { ...route, preferredSource: undefined }
      : route;
  const hasFirst = links.some(({ name }) => name === first);
  const { network } = situation;
  const isMaker = network === "" || network === parseAlias(end?.alias ?? "")?.network;
  // The pair stays for other NICs. Without any, the first NIC takes it along; without a first one, the last NIC, or the
  // NIC that made the pair.
  const isLast = isFirst || (pod.links.length > 0 && (!hasFirst || isMaker));
  const goes = isLast && (!hasPair || sources.length === 0);
  const renewed = [...ours, ...replyRoutesIn(pod)].map((route) => withoutGone(renewRoute(route, path, sources)));
  const wanted = goes || isAlone ? [] : renewed;
  // NIC tables that were never created are not created now
  const routes = hasNicTables(pod)
    ? planPodRoutes({
        pod,
        nics,
        ifName,
        defaultNic: "",
        replyFamilies: replyFamiliesOf(pod),
        servicePath: wanted.filter(({ table }) => table === RT_TABLE_MAIN),
        sources,
      })
    : EMPTY_PART;
  const present = pod.tables.filter(({ name }) => name === NFT_TABLE);
  const named = nicsIn(present)?.filter((name) => name !== ifName);
  const tables = goes || present.length === 0 ? [] : [podTable(pair.pod.name, named)];
  const all = pod.rules.filter(isOwn);
  return {
    plan: {
      ...(goes && hasPair ? { veth: { pair, wanted: false } } : {}),
      wanted: {
        pod: { ...EMPTY_WANTED, ...routes.wanted, routes: [...wanted, ...routes.wanted.routes], tables },
        host: EMPTY_WANTED,
      },
      owned: {
        pod: {
          ...EMPTY_OWNED,
          routes: [...routes.owned.routes, ...ours, ...replyRoutesIn(pod)],
          rules: goes ? all : routes.owned.rules,
          tables: present,
        },
        host: {
          ...EMPTY_OWNED,
          neighbours: host.neighbours.filter((each) => includesIp(ips, each.ip) && isOurs(each) && isReached(each.ip)),
          routes: hostRoutesOf(host, hostTablesOf(host, conf.hostRuleTable), ips.filter(isReached)).filter(isOurs),
        },
      },
    },
    warnings: [],
  };
}
