/** The node's state of the attachments of its pods, including those that an earlier agent served. */
import { type AttachRequest, isIfacer } from "../../cni/request.ts";
import { findCoordinator, type PlacedEntry } from "../../config/network-definition.ts";
import { listRows } from "../../registry/list-rows.ts";
import type { Allocation, Registry } from "../../registry/registry.ts";
import type { Snapshot } from "../../resources/snapshot.ts";
import { openManifestIdentifier } from "../ipam/pod-identity.ts";
import type { NicSettings } from "../request/nic-definition.ts";
import type { CoordinatedAttachments } from "./attachments.ts";
import { pluginsOfRow, type RebuildDeps, rebuildRequest } from "./rebuild-request.ts";

/** The node's side of its pods. */
export interface NodeSide {
  /** The attachments of the coordinator, as requests of a CHECK. */
  readonly requests: readonly AttachRequest[];
  /** The entries of the ifacer in the networks of attachments, each once. */
  readonly devices: readonly PlacedEntry["entry"][];
}

interface KnownDeps {
  readonly registry: Registry;
  readonly definitions: Pick<NicSettings, "nicsOf" | "pluginsOf">;
  readonly snapshot: () => Snapshot;
  readonly attachments: CoordinatedAttachments;
  /** When this agent started, on the registry's clock: milliseconds. */
  readonly startMs: number;
}

export class KnownAttachments {
  readonly #deps: KnownDeps;
  #hasAdopted = false;

  constructor(deps: KnownDeps) {
    this.#deps = deps;
  }

  /** Asks the registry and reads definitions; never asks an API server. */
  async read(): Promise<NodeSide> {
    const { registry, definitions: networks, snapshot, attachments } = this.#deps;
    const rebuilding: RebuildDeps = { networks, identifier: openManifestIdentifier(snapshot) };
    const devices = new Map<string, PlacedEntry["entry"]>();
    // Nothing is kept of other rows: a registry may have a million of them.
    const coordinated: Allocation[] = [];
    for await (const row of listRows(registry)) {
      if (row.state !== "Bound") continue;
      const plugins = await pluginsOfRow(rebuilding, row);
      for (const { entry } of plugins) if (isIfacer(entry.type)) devices.set(JSON.stringify(entry), entry);
      if (!this.#hasAdopted && findCoordinator(plugins) !== undefined) coordinated.push(row);
    }
    if (!this.#hasAdopted) await this.#adopt(coordinated, rebuilding);
    this.#hasAdopted = true;
    const requests = attachments.requests.map((request): AttachRequest => ({ ...request, command: "CHECK" }));
    return { requests, devices: [...devices.values()] };
  }

  /** Once: from then on a DEL forgets the attachment, although its rows are released a moment later. */
  async #adopt(rows: readonly Allocation[], rebuilding: RebuildDeps): Promise<void> {
    const { attachments, startMs } = this.#deps;
    const earlier = rows.filter(({ sinceMs }) => sinceMs < startMs);
    for (const nic of Map.groupBy(earlier, ({ containerId, ifName }) => `${containerId} ${ifName}`).values()) {
      const request = await rebuildRequest(rebuilding, nic);
      if (request !== undefined) attachments.adopt(request);
    }
  }
}
