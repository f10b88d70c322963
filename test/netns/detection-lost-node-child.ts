/**
 * An agent's question for addresses of a lost node, from inside the node's namespace: the link by the pool's NICs,
 * frames on it, and what becomes of the journal's rows. Prints the addresses that are free afterwards, as JSON.
 *
 *   node detection-lost-node-child.ts <namespace of a pod of the pool, or "-"> 10.6.0.1 10.6.0.2
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDetection } from "../../host/agent/detection/open-detection.ts";
import { createFaultCounter } from "../../host/lib/fault.ts";
import { openLog } from "../../host/lib/log.ts";
import { formatIp } from "../../host/net/ip.ts";
import { openSqliteJournal } from "../../host/registry/sqlite/sqlite-registry.ts";
import { NO_AUDIT } from "../world/no-audit.ts";
import { ip } from "../world/values.ts";

const [netns = "-", ...asked] = process.argv.slice(2);
const directory = mkdtempSync(join(tmpdir(), "berth-lost-"));
const nowMs = (): number => Math.floor(performance.now());
const freed: string[] = [];
const registry = await openSqliteJournal({
  ...{ directory, bootId: "b", lockWaitMs: 0, nowMs, faultCounter: createFaultCounter(), onDeath: () => {} },
  ...{
    cooldowns: { defaultMs: 1_000, byPool: new Map() },
    onFreed: (_space, address) => freed.push(formatIp(address)),
  },
});
const place = { space: "", prefixLength: 24, pool: "blue" };
if (netns !== "-") {
  const proposals = [{ ...place, ip: ip("10.6.0.9"), ifName: "eth0" }];
  const who = { owner: "u", namespace: "shop", pod: "web", ifName: "eth0", containerId: "c", network: "lan" };
  await registry.claim({ ...who, netns: `/run/netns/${netns}`, proposals });
}
for (const address of asked) {
  const quarantine = { reason: "Conflict" as const, mac: undefined, parent: "", nextProbeAtMs: 0 };
  const unowned = { owner: "", ifName: "", namespace: "", pod: "" };
  await registry.adopt({ ...place, ...unowned, ip: ip(address), state: "Quarantined", quarantine });
}
const log = openLog("lost", "silent");
const detection = openDetection({ registry, pools: () => new Map(), nowMs, log, audit: NO_AUDIT });
await detection.probeQuarantined();
for (const row of await registry.findDue(100)) await registry.forget(row);
await detection.prober.close();
await registry.close();
rmSync(directory, { recursive: true, force: true });
console.log(JSON.stringify(freed.sort()));
