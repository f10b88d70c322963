/** One request over observed values: mode, plan and operations, put together as the plugin does. */
import { z } from "zod";
import { knownAddresses } from "../../../host/agent/coordinator/observe.ts";
import { parseIfName } from "../../../host/cni/names.ts";
import { decodeCoordinatorConf } from "../../../host/config/coordinator-conf.ts";
import { type CoordinatorConf, resolveCoordinatorConf } from "../../../host/config/coordinator-settings.ts";
import { formatAlias } from "../../../host/coordinator/plan/alias.ts";
import { decideMode } from "../../../host/coordinator/plan/mode.ts";
import { nameVeth } from "../../../host/coordinator/plan/names.ts";
import { hostTablesOf } from "../../../host/coordinator/plan/own-objects.ts";
import { planAttachment } from "../../../host/coordinator/plan/plan-attachment.ts";
import { planDetachment } from "../../../host/coordinator/plan/plan-detachment.ts";
import type { PlanInput } from "../../../host/coordinator/plan/plan-input.ts";
import { planMac } from "../../../host/coordinator/plan/plan-mac.ts";
import { withoutForeignRoutes } from "../../../host/coordinator/plan/plan-nics.ts";
import { ignoreLaterChanges, isDifference } from "../../../host/coordinator/plan-check.ts";
import { RT_TABLE_MAIN } from "../../../host/kernel/netlink/route/constants.ts";
import { equalIp, type Ip } from "../../../host/net/ip.ts";
import { diffPlan } from "../../../host/plan/diff.ts";
import type { Operation } from "../../../host/plan/operation.ts";
import type { Plan } from "../../../host/plan/plan.ts";
import { EMPTY_NAMESPACE, type NamespaceState, type Observed } from "../../../host/plan/state.ts";
import { ip, prefix } from "../../world/values.ts";

/** Schema of a line such as `ADD {"ifName": "eth0", "addresses": ["10.6.0.21"]}`. */
const schema = z.strictObject({
  ifName: z.string().default("eth0"),
  addresses: z.array(z.string()).default([]),
  /** Configuration of the coordinator's entry. */
  conf: z.record(z.string(), z.unknown()).default({}),
  container: z.string().default("c1"),
  network: z.string().default("lan"),
  /** Its UID is the same, so that two sandboxes are of one pod when they say the same. */
  pod: z.string().default("shop/web-0"),
  /** The annotation default-route-nic. */
  annotation: z.string().optional(),
  firstIsOurs: z.boolean().default(false),
  /** Prefixes that Berth allocated to the NIC, and `hostRouteCIDR`. Without either every address is routable. */
  allocated: z.array(z.string()).optional(),
  allowed: z.array(z.string()).optional(),
  /** The pod's other NICs with a coordinator, and their addresses, as the registry knows them. */
  others: z.record(z.string(), z.array(z.string())).default({}),
  /** A plugin behind the coordinator moves the NIC's routes out of the main table. */
  losesMainRoutes: z.boolean().default(false),
  /** For CHECK: keys of `conf` that were collected. */
  collected: z.array(z.enum(["overlayPodCIDR", "serviceCIDR"])).default([]),
  /** For DEL: another sandbox's namespace is none of this one's. */
  podIsGone: z.boolean().default(false),
});

export type Request = z.output<typeof schema> & { readonly verb: "ADD" | "CHECK" | "DEL" };

export function readRequest(verb: Request["verb"], facts: unknown): Request {
  return { verb, ...schema.parse(facts) };
}

export interface Answer {
  /** Undefined for DEL, and where nothing is done. */
  readonly mode: { readonly mode: string; readonly reason: string } | undefined;
  readonly plan: Plan | undefined;
  readonly operations: readonly Operation[];
  readonly warnings: readonly string[];
  readonly observed: Observed;
}

/** Returns the node's part that observe.ts reads. */
function hostPart(
  host: NamespaceState,
  conf: CoordinatorConf,
  pairName: string | undefined,
  ips: readonly Ip[],
): NamespaceState {
  return {
    ...host,
    routes: host.routes.filter(({ table }) => hostTablesOf(host, conf.hostRuleTable).includes(table)),
    neighbours: host.neighbours.filter(({ link, ip }) =>
      pairName === undefined ? ips.some((each) => equalIp(each, ip)) : link === pairName,
    ),
  };
}

/** Throws CniError and ConfigError. */
export function answerRequest({ verb, ...request }: Request, all: Observed): Answer {
  const { ifName, container, network, firstIsOurs } = request;
  const conf = resolveCoordinatorConf(decodeCoordinatorConf(request.conf, "CNI configuration"));
  const addresses = request.addresses.map(ip);
  const pair = nameVeth(container);
  if (verb === "DEL") {
    const pod = request.podIsGone ? EMPTY_NAMESPACE : all.pod;
    const observed = { pod, host: hostPart(all.host, conf, undefined, knownAddresses(addresses, pod)) };
    const { plan, warnings } = planDetachment({ conf, ifName, network, addresses, pair, observed });
    return { mode: undefined, plan, operations: diffPlan(observed, plan), warnings, observed };
  }
  const isCheck = verb === "CHECK";
  const pod = isCheck ? withoutForeignRoutes(all.pod, conf.podDefaultCniNic, ifName) : all.pod;
  const mode = decideMode({ conf, ifName, network, pod, isFirstNicBerth: firstIsOurs });
  if (mode === undefined) return { mode, plan: undefined, operations: [], warnings: [], observed: all };
  const host = hostPart(all.host, conf, mode.mode === "underlay" ? pair.host.name : undefined, addresses);
  const observed = { pod, host };
  const link = pod.links.find(({ name }) => name === ifName);
  const owner = `uid of ${request.pod}`.replaceAll(" ", "-");
  const { allocated, allowed, collected } = request;
  const isRestricted = allocated !== undefined || allowed !== undefined;
  const current: PlanInput = {
    conf,
    mode: mode.mode,
    ifName,
    defaultNic:
      (request.annotation === undefined ? undefined : parseIfName(request.annotation)) ?? conf.podDefaultRouteNic,
    addresses,
    pair,
    alias: formatAlias({ owner, containerId: container, network, pod: request.pod }),
    owner,
    routable: isRestricted
      ? { allocated: (allocated ?? []).map(prefix), allowed: (allowed ?? []).map(prefix) }
      : undefined,
    losesMainRoutes: request.losesMainRoutes,
    attached: [
      { ifName, addresses: (allocated ?? []).map((each) => prefix(each).ip), conf },
      ...Object.entries(request.others).map(([name, ips]) => ({ ifName: name, addresses: ips.map(ip), conf })),
    ],
    gateways: all.host.routes.flatMap(({ table, gateway }) => (table === RT_TABLE_MAIN && gateway ? [gateway] : [])),
    mac: link && planMac(conf.podMACPrefix, link, addresses),
    observed,
  };
  const input = isCheck ? ignoreLaterChanges(current, collected) : current;
  const { plan, warnings } = planAttachment(input);
  const nic = { ifName, routers: [], collected };
  const operations = diffPlan(input.observed, plan).filter((each) => !isCheck || isDifference(each, nic));
  return { mode, plan, operations, warnings, observed };
}
