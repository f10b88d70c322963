/** A call of the registry, as it is sent to its thread, and the operation that it becomes there. */
import { invariant } from "../../lib/invariant.ts";
import type { Operation } from "./batch.ts";
import type { SqliteJournal } from "./journal.ts";

/** Methods of the store that a call may name. */
export type StoreMethod = Exclude<
  keyof SqliteJournal,
  "takeFreed" | "takeWritten" | "coolDeadBoots" | "identity" | "point" | "cooldowns"
>;

export interface CallMessage {
  readonly id: number;
  /** `probe` and `close` concern the database, not its rows. */
  readonly method: StoreMethod | "probe" | "close";
  readonly args: readonly unknown[];
}

/** Methods that free addresses or room: on a full disk they may use the reserve. */
const RELEASES: readonly string[] = ["release", "expire", "undo", "endQuarantine", "collect", "forget", "recover"];

/** A sandbox does not outlive a power loss, but another machine with our address does (clocks-and-boots). */
const OUTLIVE_POWER: readonly string[] = ["quarantineAndUndo"];

const READS: readonly string[] = [
  "findAttachment",
  "findAddress",
  "findOwner",
  "findCooling",
  "findQuarantined",
  "findDue",
  "readOwners",
  "readUsed",
  "countUsage",
  "list",
] satisfies StoreMethod[];

/** Returns whether the method changes neither rows nor files. */
export function onlyReads(method: CallMessage["method"]): boolean {
  return READS.includes(method);
}

export function operationOf(message: CallMessage): Operation {
  return {
    id: message.id,
    recordsRelease: RELEASES.includes(message.method),
    outlivesPower: OUTLIVE_POWER.includes(message.method),
    onlyReads: onlyReads(message.method),
    run: (store) => {
      invariant(
        message.method !== "close" && message.method !== "probe",
        `${message.method} is not an operation of the store`,
      );
      const method = Reflect.get(store, message.method) as ((...args: readonly unknown[]) => unknown) | undefined;
      invariant(method !== undefined, `${message.method} is an operation of a journal only`);
      return method.apply(store, [...message.args]);
    },
  };
}
