/** The records of one node, from its agent's status API. */

import * as z from "zod";
import { pauseUnlessAborted } from "../lib/abort.ts";
import { byName } from "../lib/order.ts";
import { type AddressRecord, addressRecord } from "../records/address-record.ts";
import { type AllocationRecord, allocationRecord } from "../records/allocation-record.ts";
import { type HealthRecord, healthRecord } from "../records/health-record.ts";
import type { PodRecord } from "../records/pod-record.ts";
import { type PoolRecord, poolRecord } from "../records/pool-record.ts";
import { type ReservationRecord, reservationRecord } from "../records/reservation-record.ts";
import { AgentError, askForRecord } from "./ask-agent.ts";
import { type AllocationFilter, matchesFilter, type PodName, type Source, type VersionRecord } from "./source.ts";

/** Interval at which `--watch` asks the agent: milliseconds. */
const WATCH_INTERVAL_MS = 2_000;

/** Most pages of addresses that are read, of 1,000 each. */
const MAX_PAGES = 2_000;

export class NodeSource implements Source {
  readonly #socket: string;

  constructor(socket: string) {
    this.#socket = socket;
  }

  async scope(): Promise<string | undefined> {
    const { mode, node } = await readHealth(this.#socket);
    return mode === "cluster"
      ? `THIS NODE ONLY (${node ?? "unnamed"}); "kubectl berth" shows the whole cluster`
      : undefined;
  }

  async pools(): Promise<readonly PoolRecord[]> {
    return (await this.#list(poolRecord, "/v1/pools")).sort(byName);
  }

  async allocations(filter: AllocationFilter): Promise<readonly AllocationRecord[]> {
    const records: AllocationRecord[] = [];
    let after = "";
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const query = after === "" ? "" : `?after=${encodeURIComponent(after)}`;
      const page = await this.#list(allocationRecord, `/v1/allocations${query}`);
      for (const record of page) if (matchesFilter(record, filter)) records.push(record);
      const last = page.at(-1);
      if (last === undefined) return records;
      if (last.cursor === after) break;
      after = last.cursor;
    }
    throw new AgentError(`The agent on ${this.#socket} does not come to the end of its addresses`);
  }

  async reservations(): Promise<readonly ReservationRecord[]> {
    return (await this.#list(reservationRecord, "/v1/reservations")).sort(byName);
  }

  address(address: string): Promise<AddressRecord> {
    return askForRecord(addressRecord, this.#socket, `/v1/address?address=${encodeURIComponent(address)}`);
  }

  async pod({ namespace, name }: PodName): Promise<PodRecord> {
    const allocations = await this.allocations({ namespace, pod: name });
    return { namespace, name, isMissing: false, allocations };
  }

  async versions(): Promise<readonly VersionRecord[]> {
    const { version } = await readHealth(this.#socket);
    return [{ component: "agent", version }];
  }

  async *changes(_: "pools" | "allocations", signal: AbortSignal): AsyncGenerator<void> {
    while (!signal.aborted) {
      yield;
      await pauseUnlessAborted(WATCH_INTERVAL_MS, signal);
    }
  }

  async close(): Promise<void> {}

  #list<S extends z.ZodType>(schema: S, path: string): Promise<z.output<S>[]> {
    return askForRecord(z.array(schema), this.#socket, path);
  }
}

/** Rejects with AgentError. */
export function readHealth(socket: string): Promise<HealthRecord> {
  return askForRecord(healthRecord, socket, "/v1/health");
}
