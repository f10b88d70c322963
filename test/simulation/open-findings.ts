/**
 * Known faults of today's product, by name, with a run of the simulation that shows each. What leads to one happens
 * in no other run, so that fresh seeds find what is not known yet.
 */
import type { RunOptions } from "./run.ts";

export const FINDING_NAMES = [
  "a renamed NIC",
  "a bystander with an orphan's address",
  "a machine behind a path by number",
  "a journal damaged under its agent",
  "another machine under a node's name",
  "a create that lands late",
  "an address that comes up late",
  "a spooled DEL that waits",
] as const;
export type FindingName = (typeof FINDING_NAMES)[number];

export interface OpenFinding {
  readonly shows: FindingName;
  readonly options: Pick<RunOptions, "seed" | "profile" | "steps"> &
    Partial<Pick<RunOptions, "faults" | "nodes" | "pods" | "without">>;
  /** Part of the violation. */
  readonly violation: string;
}

export const OPEN_FINDINGS: readonly OpenFinding[] = [];
