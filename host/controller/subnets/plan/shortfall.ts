/** Explains why a workload lacks addresses, for its event, and for the conditions of its pool and Subnet. */
import { sizeOf } from "../../../core/spans.ts";
import { describeWanted } from "../../../ipam/subnet-capacity.ts";
import type { PoolDemand } from "../../../ipam/subnet-pools.ts";
import { MAX_RANGES } from "../../../resources/fields/address-spec.ts";
import { MAX_POOLS_OF_SUBNET } from "../../../resources/status.ts";
import { refuseNamespace } from "../../../resources/subnet.ts";
import type { Limit, Shortfall } from "../../division.ts";
import { MAX_EXAMPLES } from "../../examples.ts";
import type { SubnetsView } from "../model.ts";
import type { SubnetCapacity } from "./capacity.ts";
import type { PlannedPool } from "./planned-pool.ts";

interface ShortfallInput {
  readonly demand: PoolDemand;
  readonly capacities: readonly SubnetCapacity[];
  /** Those of the demand. */
  readonly pools: readonly PlannedPool[];
  readonly limits: ReadonlySet<Limit>;
}

interface Obstacle {
  readonly reason: Shortfall["reason"];
  readonly why: string;
}

type ObstacleInput = Pick<ShortfallInput, "demand" | "capacities"> & { readonly view: SubnetsView };

/** The reason is the first of these that an obstacle has. */
const ORDER = ["SubnetFull", "SubnetTerminating", "SubnetRefused", "SubnetInvalid", "SubnetMissing"] as const;

export function explainShortfall(view: SubnetsView, { demand, capacities, pools, limits }: ShortfallInput): Shortfall {
  const { ifName, family, count, reasonIfShort: reason = demand.reason } = demand;
  const [limit] = limits;
  const obstacles = demand.subnets.map((name) => findObstacle(name, { demand, capacities, view }));
  const causes =
    limit === undefined
      ? obstacles.map(({ why }) => why)
      : [...limits].map((each) => describeLimit(each, demand, view));
  const why = causes.slice(0, MAX_EXAMPLES);
  if (causes.length > why.length) why.push(`and ${causes.length - why.length} more Subnets`);
  const has = pools.reduce((sum, { size }) => sum + size, 0);
  const describe = (size: number, wanted: number) => `${describeWanted(size, { wanted, reason })}: ${why.join("; ")}`;
  const [pool] = pools;
  const { size = 0 } = pool ?? {};
  const wanted = size + count - has;
  return {
    demand,
    reason: limit ?? ORDER.find((each) => obstacles.some((obstacle) => obstacle.reason === each)) ?? "SubnetMissing",
    message: `For ${ifName}, IPv${family}, it ${describe(has, count)}`,
    pool: pool && {
      name: pool.name,
      subnet: pool.generated.subnet,
      has: size,
      wanted,
      message: describe(size, wanted),
      room: pool.capacity === undefined ? "" : describeRoom(pool.capacity),
    },
  };
}

function describeLimit(
  limit: Limit,
  { application }: PoolDemand,
  { maxPoolSize, maxPerNamespace }: SubnetsView,
): string {
  if (limit === "PoolTooLarge") return `a generated pool has at most ${maxPoolSize} (maxGeneratedPoolSize)`;
  if (limit === "TooScattered") return `a pool has at most ${MAX_RANGES} ranges, and what is free lies scattered`;
  return `namespace "${application.namespace}" may have ${maxPerNamespace} (maxGeneratedAddressesPerNamespace)`;
}

function findObstacle(name: string, { demand, capacities, view }: ObstacleInput): Obstacle {
  const said = (reason: Obstacle["reason"], why: string): Obstacle => ({ reason, why: `Subnet "${name}" ${why}` });
  const capacity = capacities.find(({ subnet }) => subnet.object.name === name);
  if (capacity !== undefined)
    return said(capacity.subnet.object.deleting ? "SubnetTerminating" : "SubnetFull", describeRoom(capacity));
  const subnet = view.subnets.find(({ object }) => object.name === name);
  const fault = view.faultOf(name);
  if (fault !== undefined) return said("SubnetInvalid", `cannot be used: ${fault}`);
  if (subnet === undefined) return said("SubnetMissing", "does not exist");
  if (subnet.spec.family !== demand.family) return said("SubnetMissing", `is not IPv${demand.family}`);
  const { namespace } = demand.application;
  const asking = { name: namespace, labels: view.labelsOf(namespace), closedTo: view.closedTo };
  return said("SubnetRefused", refuseNamespace(subnet.spec, asking) ?? "");
}

/** `has 0 free of 254 addresses, and 12 pools` */
function describeRoom({ subnet, total, free, withheld, poolCount: pools }: SubnetCapacity): string {
  if (subnet.object.deleting) return "is being deleted";
  const others = withheld === 0 ? "" : ` (${withheld} reserved or in pools made by hand)`;
  const count = `${pools} ${pools === 1 ? "pool" : "pools"}${pools < MAX_POOLS_OF_SUBNET ? "" : ", as many as it may have"}`;
  return `has ${sizeOf(free.spans)} free of ${total} addresses${others}, and ${count}`;
}
