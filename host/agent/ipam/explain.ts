/**
 * Why a pod would get its addresses from these pools and not from others: selection without a claim.
 * Effects: reads the registry; one look at a Subnet where a pool is to be generated out of it and is not there.
 */

import { familyName, type Selection, type Subject } from "../../ipam/model.ts";
import { poolsOf } from "../../ipam/pick.ts";
import { describeDemand } from "../../ipam/refusal.ts";
import { selectPools } from "../../ipam/selection.ts";
import { describeObstacle } from "../../ipam/subnet-capacity.ts";
import { formatIp } from "../../net/ip.ts";
import { describePoolOwner } from "../../resources/fields/subnet-pool.ts";
import { SUBNET_LOOK_MS } from "../cluster/subnet-state.ts";
import type { IpamTools } from "./add.ts";
import { describeSubject } from "./subject.ts";

export interface Question {
  readonly namespace: string;
  readonly pod: string;
  readonly ifName: string;
  /** Name of the network configuration, for pools with `multusName`. */
  readonly network: string;
}

/** Lines for a person. Throws what ADD would throw: CniError or ConfigError. */
export async function explainPod(tools: IpamTools, question: Question): Promise<string> {
  const snapshot = await tools.catalogue.loaded();
  const { namespace, pod: name, ifName, network } = question;
  const identity = await tools.identifier.find(namespace, name);
  const networkNames = tools.networkNames({ ifName, network, pod: identity.subject });
  const subject: Subject = describeSubject(snapshot, {
    ...{ identity, ifName, network, networkNames, node: tools.node },
    ipamConf: { type: "berth" },
  });
  const selection = selectPools(subject, snapshot.pools, snapshot.refused);
  const roomOf = roomByPool(tools, selection);
  const supply = await explainSupply(tools, selection);
  const held = identity.owner === "" ? [] : await tools.registry.findOwner(identity.owner);
  return [
    ...selection.nics.map((nic) => describeDemand(nic, roomOf)),
    ...supply,
    ...selection.warnings.map((warning) => `warning: ${warning}`),
    ...held.map(({ ip, ifName: nic, pool, state }) => `${nic} has ${formatIp(ip)} of pool "${pool}" (${state})`),
  ].join("\n");
}

/** Of NICs whose pools are generated: for whom, out of what, and why there may be none. */
async function explainSupply({ supply }: IpamTools, { nics }: Selection): Promise<string[]> {
  const demands = nics.flatMap(({ ifName, families }) => families.map((demand) => ({ ifName, demand })));
  const lines = demands.map(async ({ ifName, demand }) => {
    const { family, candidates, generated } = demand;
    if (generated === undefined) return [];
    const { application, wish } = generated;
    const subnets = wish.subnets.map((name) => `"${name}"`).join(" or ");
    const what = `${ifName} ${familyName(family)}`;
    const whose = `${what}: out of Subnet ${subnets}, for ${describePoolOwner(application)}, UID ${application.uid}`;
    if (candidates.length > 0 || supply === undefined) return [whose];
    const sight = await supply.lookAtSubnet(
      { name: wish.subnets[0] ?? "", namespace: application.namespace },
      AbortSignal.timeout(SUBNET_LOOK_MS),
    );
    return [whose, `${what}: ${describeObstacle(demand, sight)}`];
  });
  return (await Promise.all(lines)).flat();
}

function roomByPool({ catalogue }: IpamTools, { nics }: Selection): Map<string, string> {
  const pools = nics.flatMap(({ families }) => families.flatMap(poolsOf));
  return new Map(
    pools.map(({ name }) => {
      const { free, total } = catalogue.poolCache.counts(name) ?? { free: 0n, total: 0n };
      return [name, `fits, ${free} of ${total} addresses are free`];
    }),
  );
}
