/**
 * Actions of administrators on Subnets, pools, ReservedIPs and limits during a walk: only what a real server would
 * accept, because the one in memory accepts everything.
 * Effects: writes to the API server in memory.
 */
import type { Seeded } from "../../world/seeded.ts";
import { CONFIG_MAPS, POOLS, RESERVED, SUBNETS, type SubnetsWorld } from "./subnets-controller.ts";
import type { Step } from "./subnets-walk.ts";

/** Networks that overlap, one beside them, one in another space, and one of IPv6. */
const NETWORKS: Readonly<Record<string, object>> = {
  a: { subnet: "10.0.0.0/28" },
  b: { subnet: "10.0.0.16/28", gateway: "10.0.0.17" },
  wide: { subnet: "10.0.0.0/27", ips: ["10.0.0.4-10.0.0.24"] },
  part: { subnet: "10.0.0.0/28", ips: ["10.0.0.8-10.0.0.14"] },
  far: { subnet: "10.0.0.0/28", addressSpace: "far" },
  six: { subnet: "fd00::/124", ips: ["fd00::2-fd00::f"] },
};

const EDITS: Readonly<Record<"lower" | "upper" | "six", readonly object[]>> = {
  lower: [
    { ips: ["10.0.0.1-10.0.0.9"] },
    { ips: null },
    { excludeIPs: ["10.0.0.3", "10.0.0.8-10.0.0.10"] },
    { excludeIPs: null },
    { gateway: "10.0.0.14" },
  ],
  upper: [
    { ips: ["10.0.0.18-10.0.0.26"] },
    { ips: null },
    { excludeIPs: ["10.0.0.19-10.0.0.20"] },
    { excludeIPs: null },
    { gateway: "10.0.0.30" },
  ],
  six: [{ ips: ["fd00::1-fd00::3"] }, { ips: ["fd00::2-fd00::f"] }, { gateway: "fd00::1" }],
};

const PLACES = ["10.0.0.2-10.0.0.4", "10.0.0.7", "10.0.0.9-10.0.0.12", "10.0.0.20-10.0.0.22", "10.0.0.13"];
/** Does one step of an administrator. */
export async function edit(world: SubnetsWorld, kind: Step["kind"], random: Seeded): Promise<void> {
  if (kind === "subnet") return makeSubnet(world, random.pick(Object.keys(NETWORKS)));
  if (kind === "edit subnet") {
    const name = random.pick(Object.keys(NETWORKS));
    // What the server takes: all of it is inside the network.
    const change = random.pick(name === "six" ? EDITS.six : name === "b" ? EDITS.upper : EDITS.lower);
    return void (await world.kubectl("PATCH", `${SUBNETS}/${name}`, { spec: change }));
  }
  if (kind === "delete subnet")
    return void (await world.kubectl("DELETE", `${SUBNETS}/${random.pick(Object.keys(NETWORKS))}`));
  if (kind === "pool by hand") return byHand(world, random);
  if (kind === "delete pool") {
    const pools = world.list(POOLS);
    if (pools.length === 0) return;
    return void (await world.kubectl("DELETE", `${POOLS}/${random.pick(pools).metadata.name}`));
  }
  if (kind === "reserve") {
    const name = random.pick(["r1", "r2"]);
    if (await world.kubectl("DELETE", `${RESERVED}/${name}`)) return;
    return void (await world.kubectl("POST", RESERVED, { metadata: { name }, spec: { ips: [random.pick(PLACES)] } }));
  }
  const [pool, namespace] = [random.pick([3, 5, 1_024]), random.pick([0, 0, 6, 12])];
  const conf = `maxGeneratedPoolSize: ${pool}\nmaxGeneratedAddressesPerNamespace: ${namespace}\n`;
  const body = { metadata: { name: "vendor-conf" }, data: { "conf.yml": conf } };
  if (!(await world.kubectl("POST", CONFIG_MAPS, body)))
    await world.kubectl("PATCH", `${CONFIG_MAPS}/vendor-conf`, body);
}

export async function makeSubnet(world: SubnetsWorld, name: string): Promise<void> {
  await world.kubectl("POST", SUBNETS, { metadata: { name }, spec: NETWORKS[name] });
}

async function byHand(world: SubnetsWorld, random: Seeded): Promise<void> {
  const name = random.pick(["hand1", "hand2"]);
  const dice = random.below(3);
  if (dice === 0) return void (await world.kubectl("DELETE", `${POOLS}/${name}`));
  const ips = [random.pick(PLACES)];
  if (dice === 1) return void (await world.kubectl("PATCH", `${POOLS}/${name}`, { spec: { ips } }));
  await world.kubectl("POST", POOLS, { metadata: { name }, spec: { subnet: "10.0.0.0/27", ips } });
}
