/** Search of the walk's nodes for an address: a small version of allocate.ts. */
import type { Allocation, Claim, Proposal } from "../../../host/registry/registry.ts";
import { allocationName } from "../../../host/resources/ip-allocation.ts";
import type { ClusterNode } from "../../world/node.ts";
import { proposal } from "../../world/subjects.ts";
import type { Nodes, WalkNode, WalkPod } from "./walk-nodes.ts";

/** Addresses of each pool: so few that pods meet. */
const ADDRESSES = 3;
/** Pods that keep their addresses, each its own. */
export const MEMBERS = ["web-0", "web-1"];
const MIN_COOLING_MS = 2_000;
const ATTEMPTS = 6;

interface Attempt {
  readonly pod: WalkPod;
  readonly containerId: string;
  readonly signal: AbortSignal;
}

type Side = 4 | 6;

/** The pool of each family; that of IPv6 is in a space with a name. */
function proposalAt(side: Side, index: number): Proposal {
  if (side === 4) return proposal(`10.0.0.${index + 1}`);
  return proposal(`fd00::${index + 1}`, { space: "lab", prefixLength: 64, pool: "six" });
}

/** Does the work of allocate.ts on a small scale. Returns the names of the claimed addresses. */
export async function claimAddresses(world: Nodes, node: WalkNode, attempt: Attempt): Promise<readonly string[]> {
  const { random } = world;
  const { pod, containerId, signal } = attempt;
  const { uid: owner, name, workload } = pod;
  const { agent } = node;
  if (agent === undefined) throw new Error("no agent");
  const { registry } = agent;
  const about = { owner, namespace: "shop", pod: name, ifName: "eth0", containerId, network: "net" };
  const claimant: Omit<Claim, "proposals"> = workload === undefined ? about : { ...about, workload };
  const first = (): number => (workload === undefined ? random.below(ADDRESSES) : MEMBERS.indexOf(name));
  let proposals = pod.sides.map((side) => proposalAt(side, first()));
  let skipOwnCooling = false;
  for (let turn = 0; turn < ATTEMPTS; turn++) {
    const outcome = await registry.claim({ ...claimant, proposals, skipOwnCooling }, signal);
    if (outcome.kind === "bound") {
      if (outcome.held.length === 0) throw new Error("nothing held");
      if (random.chance(0.1)) {
        await registry.undo(outcome.created);
        throw new Error("undone");
      }
      return outcome.held.map(({ space, ip }) => allocationName(ip, space));
    }
    const next: Proposal[] = [];
    for (const proposal of proposals) {
      const { family } = proposal.ip;
      if (outcome.kind === "cooling") {
        const own = outcome.own.find(({ ip }) => ip.family === family);
        next.push(own === undefined ? proposal : { ...proposal, ip: own.ip, replaces: own.version });
        continue;
      }
      const by = outcome.by.find(({ ip }) => ip.family === family);
      next.push(by === undefined ? proposal : await insteadOf(world, agent, by, { pod, side: family }));
    }
    if (outcome.kind === "cooling") skipOwnCooling = true;
    proposals = next;
  }
  throw new Error("no address");
}

/** Which address to request when the requested one is taken. */
async function insteadOf(
  world: Nodes,
  { registry }: ClusterNode,
  by: Allocation,
  { pod, side }: { pod: WalkPod; side: Side },
): Promise<Proposal> {
  const { random } = world;
  const other = proposalAt(side, random.below(ADDRESSES));
  const isRipe = ({ sinceMs }: Allocation): boolean => world.nowMs - sinceMs >= MIN_COOLING_MS;
  if (by.state === "Cooling" && isRipe(by)) return { ...other, ip: by.ip, replaces: by.version };
  if (pod.workload !== undefined && by.workload?.member === pod.name && by.version > 0 && by.state === "Bound") {
    const cooling = await registry.collect(by);
    return cooling === undefined ? other : { ...other, ip: by.ip, replaces: cooling.version };
  }
  if (random.chance(0.4)) return other;
  const [first, last] = [proposalAt(side, 0).ip.value, proposalAt(side, ADDRESSES - 1).ip.value];
  const found = await registry.findCooling([{ space: other.space, family: side, first, last }], 8, other.pool);
  const ripe = found.filter(isRipe);
  if (ripe.length === 0) return other;
  const chosen = random.pick(ripe);
  return { ...other, ip: chosen.ip, replaces: chosen.version };
}
