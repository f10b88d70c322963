/**
 * Why a pod would get its addresses from these pools and not from others: selection without a claim.
 */
import { familyName, type Selection, type Subject } from "../../ipam/model.ts";
import { poolsOf } from "../../ipam/pick.ts";
import { describeDemand } from "../../ipam/refusal.ts";
import { selectPools } from "../../ipam/selection.ts";
import { describeObstacle } from "../../ipam/subnet-capacity.ts";
import { formatIp } from "../../net/ip.ts";
import { describePoolOwner } from "../../resources/fields/subnet-pool.ts";
import { SUBNET_READ_MS } from "../add-deadline.ts";
import type { NicSettings } from "../nic-definition.ts";
import type { ClusterIpam } from "./cluster-ipam.ts";
import type { Identifier } from "./pod-identity.ts";
import type { PoolInventory } from "./pool-inventory.ts";
import { describeSubject } from "./subject.ts";

export interface Question {
  readonly namespace: string;
  readonly pod: string;
  readonly ifName: string;
  /** Name of the network configuration, for pools with `multusName`. */
  readonly network: string;
}

interface ExplainDeps {
  readonly identifier: Identifier;
  readonly networks: NicSettings;
  readonly node: Subject["node"];
  readonly inventory: PoolInventory;
  readonly cluster?: Pick<ClusterIpam, "readSubnet"> | undefined;
}

/** Returns lines of text. Throws what ADD would throw: CniError or ConfigError. */
export async function explainPod(deps: ExplainDeps, question: Question): Promise<string> {
  const snapshot = await deps.inventory.loaded();
  const { namespace, pod: name, ifName, network } = question;
  const identity = await deps.identifier.find(namespace, name);
  const networkNames = deps.networks.networkNames({ ifName, network, pod: identity.subject });
  const subject: Subject = describeSubject(snapshot, {
    identity,
    ifName,
    network,
    networkNames,
    node: deps.node,
    ipamConf: { type: "berth" },
  });
  const selection = selectPools(subject, snapshot.pools, snapshot.refused);
  const roomOf = roomByPool(deps, selection);
  const generated = await explainGenerated(deps, selection);
  const held = identity.owner === "" ? [] : await deps.inventory.registry.findOwner(identity.owner);
  return [
    ...selection.nics.map((nic) => describeDemand(nic, roomOf)),
    ...generated,
    ...selection.warnings.map((warning) => `warning: ${warning}`),
    ...held.map(({ ip, ifName: nic, pool, state }) => `${nic} has ${formatIp(ip)} of pool "${pool}" (${state})`),
  ].join("\n");
}

/** For NICs with generated pools: for whom, out of which Subnet, and why there may be none. */
async function explainGenerated({ cluster }: ExplainDeps, { nics }: Selection): Promise<string[]> {
  const demands = nics.flatMap(({ ifName, families }) => families.map((demand) => ({ ifName, demand })));
  const lines = demands.map(async ({ ifName, demand }) => {
    const { family, candidates, generated } = demand;
    if (generated === undefined) return [];
    const { application, request } = generated;
    const subnets = request.subnets.map((name) => `"${name}"`).join(" or ");
    const what = `${ifName} ${familyName(family)}`;
    const whose = `${what}: out of Subnet ${subnets}, for ${describePoolOwner(application)}, UID ${application.uid}`;
    if (candidates.length > 0 || cluster === undefined) return [whose];
    const state = await cluster.readSubnet(
      { name: request.subnets[0] ?? "", namespace: application.namespace },
      AbortSignal.timeout(SUBNET_READ_MS),
    );
    return [whose, `${what}: ${describeObstacle(demand, state)}`];
  });
  return (await Promise.all(lines)).flat();
}

function roomByPool({ inventory }: ExplainDeps, { nics }: Selection): Map<string, string> {
  const pools = nics.flatMap(({ families }) => families.flatMap(poolsOf));
  return new Map(
    pools.map(({ name }) => {
      const { free, total } = inventory.poolCache.counts(name) ?? { free: 0n, total: 0n };
      return [name, `fits, ${free} of ${total} addresses are free`];
    }),
  );
}
