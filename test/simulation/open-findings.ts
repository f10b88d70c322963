/**
 * Known faults of today's product, by name, with a run of the simulation that shows each; some only the search shows
 * (property/registry/search/scenes.ts). What leads to one happens in no other run, so that fresh seeds find what is not
 * known yet.
 */
import type { RunOptions } from "./run.ts";

export const FINDING_NAMES = ["an undone claim beside another launcher"] as const;
export type FindingName = (typeof FINDING_NAMES)[number];

export interface OpenFinding {
  readonly shows: FindingName;
  readonly options: Pick<RunOptions, "seed" | "profile" | "steps"> &
    Partial<Pick<RunOptions, "faults" | "nodes" | "pods" | "without">>;
  /** Part of the violation. */
  readonly violation: string;
}

export const OPEN_FINDINGS: readonly OpenFinding[] = [];
