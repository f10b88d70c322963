/**
 * Fills an embedded registry before its agent starts, through the registry's own port: a pod for every address.
 * Effects: creates the registry in `stateDir`.
 */
import { readFileSync } from "node:fs";
import { parseIp } from "../../host/net/ip.ts";
import type { Claim } from "../../host/registry/registry.ts";
import { openSqliteRegistry } from "../../host/registry/sqlite/sqlite-registry.ts";

export interface Prefill {
  readonly stateDir: string;
  readonly pool: string;
  readonly prefixLength: number;
  readonly addresses: Iterable<string>;
}

/** Number of claims under way at a time; the registry commits them in groups. */
const AT_ONCE = 4_096;

/** Gives the number of addresses claimed. Throws when one of them is not free. */
export async function prefillBerth({ stateDir, pool, prefixLength, addresses }: Prefill): Promise<number> {
  const registry = await openSqliteRegistry({
    directory: stateDir,
    bootId: readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim(),
    nowMs: () => Number(process.hrtime.bigint() / 1_000_000n),
    lockWaitMs: 0,
    cooldowns: { defaultMs: 0, byPool: new Map() },
    onFreed: () => {},
    onDeath: (error) => {
      throw error;
    },
    faultCounter: new SharedArrayBuffer(8),
  });
  let count = 0;
  let underWay: Promise<void>[] = [];
  for (const address of addresses) {
    underWay.push(claimOne(address));
    count++;
    if (underWay.length < AT_ONCE) continue;
    await Promise.all(underWay);
    underWay = [];
  }
  await Promise.all(underWay);
  await registry.close();
  return count;

  async function claimOne(address: string): Promise<void> {
    const { kind } = await registry.claim(claimOf(address, pool, prefixLength));
    if (kind !== "bound") throw new Error(`Cannot prefill ${address}: ${kind}`);
  }
}

function claimOf(address: string, pool: string, prefixLength: number): Claim {
  const ip = parseIp(address);
  if (ip === undefined) throw new Error(`"${address}" is no address`);
  return {
    owner: `other-${address}`,
    namespace: "bench",
    pod: `other-${address}`,
    ifName: "eth0",
    containerId: `other-${address}`,
    network: "bench",
    proposals: [{ space: "", ip, prefixLength, pool, ifName: "eth0" }],
  };
}
