/** What this node has set up for its pods, also for those that an earlier agent served. */
import { type AttachRequest, IFACER_TYPES } from "../../cni/request.ts";
import type { PlacedEntry } from "../../config/network-definition.ts";
import { listRows } from "../../registry/list-rows.ts";
import type { Allocation, Registry } from "../../registry/registry.ts";
import type { Snapshot } from "../../resources/snapshot.ts";
import { openManifestIdentifier } from "../ipam/pod-identity.ts";
import type { NicSettings } from "../nic-definition.ts";
import type { CoordinatedAttachments } from "./attachments.ts";
import { pluginsOfRow, rebuildRequest } from "./rebuild-request.ts";

/** Rows of the registry on one page. */
const ROWS_AT_ONCE = 256;

export interface KnownAttachments {
  /** The attachments of the coordinator, as requests of a CHECK. */
  readonly requests: readonly AttachRequest[];
  /** The entries of the ifacer in their networks, each once. */
  readonly devices: readonly PlacedEntry["entry"][];
}

interface KnownDeps {
  readonly registry: Registry;
  readonly definitions: Pick<NicSettings, "nicsOf" | "pluginsOf">;
  readonly snapshot: () => Snapshot;
}

/** Asks the registry and reads definitions; never asks an API server. */
export async function listKnown(deps: KnownDeps, attachments: CoordinatedAttachments): Promise<KnownAttachments> {
  const { registry, definitions: networks } = deps;
  const requests = new Map(attachments.requests.map((request) => [keyOf(request), request]));
  const devices = new Map<string, PlacedEntry["entry"]>();
  const rebuilding = { networks, identifier: openManifestIdentifier(deps.snapshot) };
  const rows = (await Array.fromAsync(listRows(registry, ROWS_AT_ONCE))).filter(({ state }) => state === "Bound");
  for (const [key, nic] of Map.groupBy(rows, keyOf)) {
    const request = requests.get(key) ?? (await rebuildRequest(rebuilding, nic));
    if (request !== undefined) requests.set(key, request);
    for (const row of nic) {
      const entries = (await pluginsOfRow(rebuilding, row)).map(({ entry }) => entry).filter(isOfIfacer);
      for (const entry of entries) devices.set(JSON.stringify(entry), entry);
    }
  }
  return {
    requests: [...requests.values()].map((request) => ({ ...request, command: "CHECK" })),
    devices: [...devices.values()],
  };
}

const isOfIfacer = ({ type }: PlacedEntry["entry"]): boolean => IFACER_TYPES.some((known) => known === type);

function keyOf({ containerId, ifName }: Pick<Allocation, "containerId" | "ifName">): string {
  return `${containerId} ${ifName}`;
}
