/**
 * How the walk's nodes look for an address: what claim-addresses.ts does, in little.
 */
import { parseIp } from "../../../host/net/ip.ts";
import type { Claim, Proposal } from "../../../host/registry/registry.ts";
import type { WalkNode, WalkPod } from "./walk-node.ts";
import type { WalkWorld } from "./walk-world.ts";

/** Addresses of the pool: so few that pods meet. */
const ADDRESSES = 6;
/** Pods that keep their addresses, each its own. */
export const MEMBERS = ["web-0", "web-1"];
const MIN_COOLING_MS = 2_000;
const ATTEMPTS = 6;

interface Attempt {
  readonly pod: WalkPod;
  readonly containerId: string;
  readonly signal: AbortSignal;
}

function proposalOf(address: string, replaces?: number): Proposal {
  const ip = parseIp(address);
  if (ip === undefined) throw new Error(address);
  return {
    space: "",
    ip,
    prefixLength: 24,
    pool: "blue",
    ifName: "eth0",
    ...(replaces === undefined ? {} : { replaces }),
  };
}

const addressAt = (index: number): string => `10.0.0.${index + 1}`;

/** What claim-addresses.ts does, in little. */
export async function claimAddress(
  world: WalkWorld,
  node: WalkNode,
  { pod, containerId, signal }: Attempt,
): Promise<string> {
  const { random } = world;
  const { agent } = node;
  if (agent === undefined) throw new Error("no agent");
  const { registry } = agent;
  const { uid: owner, name, workload } = pod;
  const about = { owner, namespace: "shop", pod: name, ifName: "eth0", containerId, network: "net" };
  const claimant: Omit<Claim, "proposals"> = workload === undefined ? about : { ...about, workload };
  let forsakeCooling = false;
  let proposal = proposalOf(
    workload === undefined ? addressAt(random.below(ADDRESSES)) : addressAt(MEMBERS.indexOf(name)),
  );
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const outcome = await registry.claim({ ...claimant, proposals: [proposal], forsakeCooling }, signal);
    if (outcome.kind === "bound") {
      const [held] = outcome.held;
      if (held === undefined) throw new Error("nothing held");
      if (random.chance(0.1)) {
        await registry.undo(outcome.created);
        throw new Error("undone");
      }
      return `10.0.0.${Number(held.ip.value & 255n)}`;
    }
    if (outcome.kind === "cooling") {
      const [own] = outcome.own;
      forsakeCooling = true;
      if (own !== undefined) proposal = { ...proposal, ip: own.ip, replaces: own.version };
      continue;
    }
    proposal = proposalOf(addressAt(random.below(ADDRESSES)));
    const [by] = outcome.by;
    const isRipe = (sinceMs: number): boolean => world.nowMs - sinceMs >= MIN_COOLING_MS;
    if (by?.state === "Cooling" && isRipe(by.sinceMs)) proposal = { ...proposal, ip: by.ip, replaces: by.version };
    else if (workload !== undefined && by?.workload?.member === name && by.version > 0 && by.state === "Bound") {
      const cooling = await registry.collect(by);
      if (cooling !== undefined) proposal = { ...proposal, ip: by.ip, replaces: cooling.version };
    } else if (random.chance(0.6)) {
      const span = {
        space: "",
        family: 4 as const,
        first: proposalOf(addressAt(0)).ip.value,
        last: proposalOf(addressAt(ADDRESSES - 1)).ip.value,
      };
      const ripe = (await registry.findCooling([span], 8, "blue")).filter(({ sinceMs }) => isRipe(sinceMs));
      if (ripe.length > 0) {
        const chosen = random.pick(ripe);
        proposal = { ...proposal, ip: chosen.ip, replaces: chosen.version };
      }
    }
  }
  throw new Error("no address");
}
