/**
 * Known faults of today's product, by name, with a run of the simulation that shows each; some only the search shows
 * (property/registry/search/scenes.ts). What leads to one happens in no other run, so that fresh seeds find what is not
 * known yet.
 */
import type { RunOptions } from "./run.ts";

export const FINDING_NAMES = [
  "a renamed NIC",
  "a bystander with an orphan's address",
  "a machine behind a path by number",
  "another machine under a node's name",
  "a create that lands late",
  "an address that comes up late",
  "a registry that has just appeared",
  "a registry that went back",
  "a slow admission webhook",
  "a path that is used again",
  "a NIC that comes up while its agent starts",
  "a read beside a take-over",
  "a create of a killed agent",
  "an undone claim beside another launcher",
] as const;
export type FindingName = (typeof FINDING_NAMES)[number];

export interface OpenFinding {
  readonly shows: FindingName;
  readonly options: Pick<RunOptions, "seed" | "profile" | "steps"> &
    Partial<Pick<RunOptions, "faults" | "nodes" | "pods" | "without">>;
  /** Part of the violation. */
  readonly violation: string;
}

export const OPEN_FINDINGS: readonly OpenFinding[] = [
  {
    shows: "a create that lands late",
    options: { seed: 97, profile: "delays", steps: 3_500, nodes: 2, pods: 8, faults: 4 },
    violation: "is still Bound",
  },
  {
    shows: "another machine under a node's name",
    options: { seed: 4, profile: "replacements", steps: 4_000, pods: 6 },
    violation: "and its record is Kept",
  },
  {
    shows: "a registry that has just appeared",
    options: { seed: 6, profile: "registry", steps: 8_000 },
    violation: "and its record is Bound",
  },
  {
    shows: "a registry that went back",
    options: { seed: 16, profile: "registry", steps: 8_000 },
    violation: "is on two NICs",
  },
  {
    shows: "a slow admission webhook",
    options: { seed: 1, profile: "webhooks", steps: 12_000 },
    violation: "while a webhook keeps each write",
  },
  {
    shows: "a renamed NIC",
    options: { seed: 4, profile: "nics", steps: 5_760 },
    violation: "and its record is Kept",
  },
  {
    shows: "an address that comes up late",
    options: { seed: 38, profile: "nics", steps: 2_800 },
    violation: "and its record is Kept",
  },
  {
    shows: "a bystander with an orphan's address",
    options: { seed: 26, profile: "spaces", steps: 2_800 },
    violation: "of another tool () on n1 loses addresses",
  },
  {
    shows: "a bystander with an orphan's address",
    options: { seed: 45, profile: "spaces", steps: 4_700 },
    violation: "as if it were an orphan's",
  },
  {
    shows: "a machine behind a path by number",
    options: { seed: 3, profile: "bridges", steps: 3_360 },
    violation: "and its record is Kept",
  },
  {
    shows: "a path that is used again",
    options: { seed: 317, profile: "nics", steps: 3_300 },
    violation: "as if it were an orphan's",
  },
];
