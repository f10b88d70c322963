/**
 * The product that machines and controllers of the simulation run: of this tree, or of the last release. Both are
 * loaded in one process, each with its own modules.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { startMaintenance, watchRegistry } from "../../host/agent/agent.ts";
import { openClusterBackend } from "../../host/agent/cluster/backend.ts";
import { IpamPlugin } from "../../host/agent/ipam/plugin.ts";
import { isBug } from "../../host/agent/server/answer.ts";
import { decodeRequest } from "../../host/cni/request.ts";
import { openController } from "../../host/controller/controller-process.ts";
import { CONTROLLERS } from "../../host/controller/controllers.ts";
import { openKubeClient } from "../../host/kubernetes/client.ts";
import type { Send } from "../../host/kubernetes/http/request.ts";
import { createFaultCounter } from "../../host/lib/fault.ts";
import { openLog } from "../../host/lib/log.ts";
import { RegistryError } from "../../host/registry/registry.ts";
import { prepareSchema } from "../../host/registry/sqlite/schema.ts";
import { findLoss } from "../../host/registry/sqlite/session.ts";
import { SqliteRegistry } from "../../host/registry/sqlite/sqlite-registry.ts";
import { lastReleaseDir, root } from "../../scripts/setup/paths.mjs";
import { lastRelease } from "../../scripts/setup/version.mjs";
import type { Admission } from "../fakes/admission/admission.ts";
import { BerthAdmission } from "../fakes/admission/berth-admission.ts";
import { MemoryStore } from "../fakes/memory-store.ts";

const THIS_TREE = {
  openClusterBackend,
  startMaintenance,
  watchRegistry,
  IpamPlugin,
  isBug,
  decodeRequest,
  openController,
  CONTROLLERS,
  openKubeClient,
  createFaultCounter,
  openLog,
  RegistryError,
  MemoryStore,
  prepareSchema,
  findLoss,
  SqliteRegistry,
};
type Exports = typeof THIS_TREE;

/**
 * The status of a usage is written apart here, as in the runs that FINDINGS records: its schema would change each of
 * them.
 */
const UNKNOWN_KINDS = ["ippoolusages"];

export interface Product extends Exports {
  readonly version: string;
  /** The built core, berth-core.wasm. */
  readonly coreWasm: Uint8Array;
  /** Its custom resource definitions and policies. */
  readonly admission: Admission;
}

/** Paths below `host/` of the last release. */
const LAST_RELEASE: Readonly<Record<keyof Exports, string>> = {
  openClusterBackend: "agent/cluster/backend.ts",
  startMaintenance: "agent/maintenance.ts",
  watchRegistry: "agent/registry-watch.ts",
  IpamPlugin: "agent/ipam/plugin.ts",
  isBug: "agent/server/answer.ts",
  decodeRequest: "cni/request.ts",
  openController: "controller/controller-process.ts",
  CONTROLLERS: "controller/controllers.ts",
  openKubeClient: "kubernetes/client.ts",
  createFaultCounter: "lib/fault.ts",
  openLog: "lib/log.ts",
  RegistryError: "registry/registry.ts",
  MemoryStore: "registry/sqlite/memory-store.ts",
  prepareSchema: "registry/sqlite/schema.ts",
  findLoss: "registry/sqlite/find-loss.ts",
  SqliteRegistry: "registry/sqlite/sqlite-registry.ts",
};

function productAt(directory: string, version: string, exports: Exports): Product {
  const coreWasm = readFileSync(join(directory, "dist", "core", "berth-core.wasm"));
  return { ...exports, version, coreWasm, admission: new BerthAdmission(UNKNOWN_KINDS, directory) };
}

export const THIS_PRODUCT: Product = productAt(root, "this version", THIS_TREE);

let lastProduct: Promise<Product> | undefined;

/** Rejects if the set-up has not made it (`node scripts/setup.mjs last-release-product`), or if it lacks an export. */
export function openLastRelease(): Promise<Product> {
  lastProduct ??= loadLastRelease(lastReleaseDir());
  return lastProduct;
}

async function loadLastRelease(directory: string): Promise<Product> {
  const found: Record<string, unknown> = {};
  for (const [name, path] of Object.entries(LAST_RELEASE)) {
    const module = await import(pathToFileURL(join(directory, "host", path)).href);
    if (module[name] === undefined) throw new Error(`host/${path} of ${lastRelease.version} has no export ${name}`);
    found[name] = module[name];
  }
  const exports = found as Exports;
  const openKubeClient: Exports["openKubeClient"] = ({ send, ...options }) =>
    exports.openKubeClient({ ...options, ...exchangeOf(send) });
  return productAt(directory, lastRelease.version, { ...exports, openKubeClient });
}

/** The option of the last release in place of `send`. */
function exchangeOf(send: Send | undefined): object {
  const sendOver = (_over: string, ...sent: Parameters<Send>) => send?.(...sent);
  return { exchange: { connections: 1, send: sendOver, close: async () => {} } };
}
