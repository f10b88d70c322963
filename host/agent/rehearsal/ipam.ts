/** The IPAM of a rehearsal: one pool of one address, in a registry and an instance of the core of its own. */
import { PoolSpace } from "../../core/pool-space.ts";
import { PoolCache } from "../../ipam/pool-cache.ts";
import type { Log } from "../../lib/log.ts";
import { formatIp } from "../../net/ip.ts";
import { formatPrefix, maskPrefix } from "../../net/prefix.ts";
import { openMemoryRegistry } from "../../registry/sqlite/sqlite-registry.ts";
import { API_VERSION } from "../../resources/fields/metadata.ts";
import { decodeIpPool } from "../../resources/ip-pool.ts";
import { assembleSnapshot, type Snapshot } from "../../resources/snapshot.ts";
import { ResolvedSettings } from "../definitions.ts";
import { AnsweredAttachments } from "../detection/answered-attachments.ts";
import type { Detection } from "../detection/open-detection.ts";
import type { AddDeps } from "../ipam/add.ts";
import { openManifestIdentifier } from "../ipam/pod-identity.ts";
import { cooldownsOf, PoolInventory } from "../ipam/pool-inventory.ts";
import { NODE_ADDRESS, POD_ADDRESS } from "./nic.ts";

interface RehearsedIpamDeps {
  /** The built core, berth-core.wasm. */
  readonly coreWasm: Uint8Array;
  /** The agent's own: only what it remembers of a NIC is kept apart. */
  readonly detection: Detection;
  readonly nowMs: () => number;
  readonly log: Log;
}

/** `vendorConf`: the settings of the rehearsal. All of it is memory: nothing has to be closed. */
export function openRehearsedIpam(
  { coreWasm, detection, nowMs, log }: RehearsedIpamDeps,
  vendorConf: Snapshot["vendorConf"],
): AddDeps {
  const spec = {
    ...{ subnet: formatPrefix(maskPrefix(POD_ADDRESS)), ips: [formatIp(POD_ADDRESS.ip)] },
    ...{ gateway: formatIp(NODE_ADDRESS.ip), default: true },
  };
  const object = { apiVersion: API_VERSION, kind: "IPPool", metadata: { name: "rehearsal" }, spec };
  const resources = [decodeIpPool(object, "rehearsal")];
  const snapshot = { ...assembleSnapshot([{ source: "rehearsal", resources }]), vendorConf };
  const poolCache = new PoolCache(PoolSpace.open(coreWasm));
  const registry = openMemoryRegistry({
    ...{ bootId: "", nowMs, cooldowns: cooldownsOf(snapshot) },
    onFreed: (space, ip) => poolCache.unmark(space, ip),
  });
  const inventory = new PoolInventory(poolCache, registry, snapshot);
  inventory.follow(snapshot);
  const settings = new ResolvedSettings();
  return {
    identifier: openManifestIdentifier(() => snapshot),
    networks: {
      networkNames: () => undefined,
      settingsFor: () => settings.of(undefined, snapshot),
      isCoordinated: () => true,
      nicsOf: () => [],
      pluginsOf: () => undefined,
    },
    node: { name: "rehearsal", labels: {} },
    inventory,
    detection: { ...detection, answered: new AnsweredAttachments() },
    clock: { nowMs, sleep: () => Promise.reject(new Error("A rehearsal waits for nothing")) },
    log,
  };
}
