/** Survivors in what the coordinator plans, checks and detects. */
import type { Note } from "../notes.ts";

export const COORDINATOR_NOTES: readonly Note[] = [
  {
    file: "host/coordinator/probe.ts",
    text: "nonce !== undefined",
    note: "equivalent: no nonce of the session is undefined; for the compiler",
  },
];
