/**
 * Berth with an embedded agent of its own on a pool of a given shape.
 * Effects: an agent; its state lies on the benchmark's disk, its socket in the system's temporary folder.
 */
import { writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startAgent } from "../../test/lab/agent.ts";
import { berthBin } from "../../test/lab/cnitool.ts";
import { daemonCpuMs } from "../../test/lab/statistics.ts";
import { type Contestant, type Place, pluginCalls } from "./contestant.ts";
import { type PoolShape, takenAddresses, usableRange, usableRange6 } from "./pool-shape.ts";
import { prefillBerth } from "./prefill-berth.ts";

const POOL = "bench";

/** The configuration on the plugin's stdin; the pool is the agent's default pool. */
export function writeNetConf(place: Place): string {
  const path = join(place.directory, "berth.json");
  writeFileSync(path, JSON.stringify({ cniVersion: "1.0.0", name: "bench", type: "bridge", ipam: { type: "berth" } }));
  return path;
}

export async function openBerth(shape: PoolShape, place: Place): Promise<Contestant> {
  const stateDir = join(place.directory, `berth-${shape.name.replaceAll(/\W+/g, "-")}`);
  const prefixLength = Number(shape.subnet.split("/")[1]);
  if (shape.taken > 0) await prefillBerth({ stateDir, pool: POOL, prefixLength, addresses: takenAddresses(shape) });
  const agent = await startAgent({ config: { "pool.yaml": poolManifests(shape) }, stateDir, readyMs: 120_000 });
  await untilIdle(agent.pid);
  const stdinFile = writeNetConf(place);
  return {
    name: `berth, ${shape.name}`,
    ...pluginCalls(join(berthBin, "berth"), stdinFile, place, agent.env),
    daemonPid: agent.pid,
    close: async () => {
      await agent.delete();
      await rm(stateDir, { recursive: true, force: true });
    },
  };
}

/** After its start an agent still writes a line for each address in use. */
async function untilIdle(pid: number): Promise<void> {
  let beforeMs: number;
  do {
    beforeMs = daemonCpuMs(pid);
    await sleep(1_000);
  } while (daemonCpuMs(pid) - beforeMs > 20);
}

function poolManifests({ subnet, subnet6, cooldown }: PoolShape): string {
  const v4 = poolManifest(POOL, subnet, usableRange({ subnet }), { cooldown });
  return subnet6 === undefined
    ? v4
    : `${v4}---\n${poolManifest(`${POOL}-6`, subnet6, usableRange6(subnet6), { cooldown })}`;
}

export function poolManifest(
  name: string,
  subnet: string,
  { gateway, first, last }: ReturnType<typeof usableRange>,
  { cooldown = "0s", isDefault = true }: { readonly cooldown?: string; readonly isDefault?: boolean },
): string {
  return `apiVersion: ipam.vendor.io/v1
kind: IPPool
metadata: {name: ${name}}
spec:
  subnet: "${subnet}"
  ips: ["${first}-${last}"]
  gateway: "${gateway}"
  default: ${isDefault}
  cooldown: ${cooldown}
`;
}
