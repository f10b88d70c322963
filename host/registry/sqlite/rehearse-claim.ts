/**
 * A rehearsal of the registry's thread: it claims and releases an address in a database of its own, in memory. V8 compiles a function when it is called for the
 * first time, so the first claim after a start would take five times as long as those after it. Nothing of it reaches the registry's files.
 */
import type { Claim } from "../registry.ts";
import { MemoryStore, openMemoryDatabase } from "./memory-store.ts";

/** Of documentation (RFC 5737). */
const CLAIM: Claim = {
  ...{ owner: "rehearsal", namespace: "rehearsal", pod: "rehearsal", ifName: "eth0" },
  ...{ containerId: "rehearsal", network: "rehearsal" },
  proposals: [
    {
      ...{ space: "", ip: { family: 4, value: 0xc0000202n }, prefixLength: 24 },
      ...{ pool: "rehearsal", ifName: "eth0" },
    },
  ],
};

/**
 * Resolves with what was claimed and what was released. Both have happened when the function returns, without a turn of the event loop. Rejects if SQLite refuses
 * any of it. `isJournal`: the registry's kind.
 */
export async function rehearseClaim(isJournal: boolean): Promise<[claimed: unknown, released: unknown]> {
  const database = openMemoryDatabase();
  const cooldowns = { defaultMs: 0, byPool: new Map() };
  const store = new MemoryStore(database, { isJournal, bootId: "", cooldowns, onFreed: () => {}, openedAtMs: 0 });
  const outcomes = [
    store.send("claim", [CLAIM, 0]),
    store.send("release", [{ containerId: CLAIM.containerId, ifName: CLAIM.ifName }, 0]),
  ] as const;
  database.close();
  return Promise.all(outcomes);
}
