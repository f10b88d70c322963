/**
 * A call of the registry as an operation of its thread: which method of the store, and what its commit must be able to.
 * Called by sqlite-worker.ts; sqlite-registry.ts sends the calls.
 * Effects: none by itself; those of the store when the operation is run.
 */
import { invariant } from "../../lib/invariant.ts";
import type { Operation } from "./batch.ts";
import type { SqliteJournal } from "./journal.ts";

/** Store methods that may be called from outside. */
export type StoreMethod = Exclude<keyof SqliteJournal, Internal>;

type Internal = "takeFreed" | "takeWritten" | "coolDeadBoots" | "quarantine" | "countCooling" | "identity";

export interface CallMessage {
  readonly id: number;
  /** `probe` and `close` are about the database, not its rows. */
  readonly method: StoreMethod | "probe" | "close";
  readonly args: readonly unknown[];
}

const RELEASES: readonly string[] = [
  "release",
  "releaseOthers",
  "releaseUnattached",
  "expire",
  "undo",
  "endQuarantine",
  "collect",
  "forget",
  "recover",
];

/** Allocation rule 13: a sandbox does not outlive the power, a machine with our address does. */
const OUTLIVE_POWER: readonly string[] = ["quarantineAndUndo"];

export function operationOf(message: CallMessage): Operation {
  return {
    id: message.id,
    recordsRelease: RELEASES.includes(message.method),
    outlivesPower: OUTLIVE_POWER.includes(message.method),
    run: (store) => {
      invariant(
        message.method !== "close" && message.method !== "probe",
        `${message.method} is no operation of the store`,
      );
      const method = Reflect.get(store, message.method) as ((...args: readonly unknown[]) => unknown) | undefined;
      invariant(method !== undefined, `${message.method} is an operation of a journal`);
      return method.apply(store, [...message.args]);
    },
  };
}
