/**
 * The servers of blocks, the hub and the IPAM of record: each is opened at its first use. Their answers are kept for
 * metrics.
 */
import { randomUUID } from "node:crypto";
import { readClusterId } from "../../../host/kubernetes/cluster-id.ts";
import type { SourceSpec } from "../../../host/resources/pool-source.ts";
import type { SourceView } from "../blocks/block-source.ts";
import { openHub } from "../blocks/hub.ts";
import type { Parent } from "../blocks/lease-server.ts";
import { Leases } from "../blocks/leases.ts";
import { OwnRanges } from "../blocks/own-ranges.ts";
import type { BlockDemand } from "../blocks/plan-leases.ts";
import { keyOfPrefix, PrefixServer } from "../record-server/prefix-server.ts";
import { recordFailure } from "../record-server/record-failure.ts";
import type { BlocksDeps } from "../types.ts";
import { RangeRecords } from "./range-records.ts";
import type { Followed } from "./sourced-pools.ts";

/** Time for which a hub may take to answer: milliseconds. */
const HUB_PATIENCE_MS = 10_000;

/** The same for all requests of a pass to an IPAM of record: milliseconds. A block rests for twice that time. */
const RECORDS_PATIENCE_MS = 30_000;

type Source = Pick<Leases<Parent>, "update">;

type Deps = Pick<BlocksDeps, "api" | "clock" | "hub" | "leading" | "recordServer">;

export class BlockSources {
  /** By key of the source. */
  readonly records = new RangeRecords();
  readonly #deps: Deps;
  readonly #opened = new Map<string, Source>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Returns the ranges of the hub that the cluster has blocks of: also of pools that are gone. */
  async held(): Promise<readonly string[]> {
    const { hub, api, leading } = this.#deps;
    return hub === undefined ? [] : new OwnRanges(api, hub.namespace).held(leading);
  }

  /** Returns this cluster's name at the source's server; "" if there is none. */
  memberOf({ prefix }: SourceSpec): string {
    const { hub, recordServer } = this.#deps;
    return (prefix === undefined ? hub?.member : recordServer?.cluster) ?? "";
  }

  /** Rejects without a server, and without an answer: with SourceFailure if the server is the cause. */
  async ask(followed: Followed, demand: BlockDemand): Promise<SourceView> {
    const { leading, clock } = this.#deps;
    const { key, spec } = followed;
    const name = `${key} ${spec.prefix?.blockSize ?? ""}`;
    const source = this.#opened.get(name) ?? (await this.#open(followed));
    this.#opened.set(name, source);
    const patience = AbortSignal.timeout(spec.prefix === undefined ? HUB_PATIENCE_MS : RECORDS_PATIENCE_MS);
    const view = await source.update(demand, AbortSignal.any([leading, patience])).catch((error: unknown) => {
      throw spec.prefix === undefined ? error : recordFailure(error);
    });
    this.records.answered(key, view, clock.now());
    return view;
  }

  async #open({ spec: { range, prefix }, addressSpace }: Followed): Promise<Source> {
    const { api, hub, recordServer, clock } = this.#deps;
    const common = { newId: randomUUID, nowMs: clock.nowMs };
    if (prefix === undefined) {
      if (hub === undefined) throw new Error("the controller has no hub (--hub-kubeconfig)");
      const cluster = await readClusterId(api, HUB_PATIENCE_MS);
      const member = { range, member: hub.member, cluster };
      return openHub({ hub: hub.api, home: api, namespace: hub.namespace, member, clock, renews: true });
    }
    if (recordServer === undefined) throw new Error("the controller has no IPAM of record (--records-server)");
    const space = recordServer.spaces.get(addressSpace);
    if (space === undefined) throw new Error(`address space "${addressSpace}" has no place there (--records-space)`);
    const own = new OwnRanges(api, recordServer.namespace);
    const cluster = await readClusterId(api, HUB_PATIENCE_MS);
    const source = { addressSpace, ...prefix };
    const server = new PrefixServer({ ...recordServer, space, source });
    return new Leases({ server, own, key: keyOfPrefix(source), cluster, name: recordServer.cluster, ...common });
  }
}
