/**
 * Runs of the simulation with eight machines and forty pods that once violated an invariant. They stay, as those of
 * test/simulation/findings.test.ts do, which the gate runs.
 */
import { it } from "vitest";
import { checkRun } from "../simulation/check-run.ts";
import { DEFAULTS, type RunOptions } from "../simulation/run.ts";

type Finding = Pick<RunOptions, "seed" | "profile" | "steps"> & Partial<Pick<RunOptions, "faults">>;

const FINDINGS: readonly (readonly [what: string, options: Finding])[] = [
  [
    "an address that was retained on this node was freed without its knowledge",
    { seed: 650_000_013, profile: "calm", steps: 24_000 },
  ],
  [
    "an attempt to create a record is carried out after a later one was undone",
    { seed: 690_000_000, profile: "restores", steps: 36_000 },
  ],
  [
    "a machine's target finds what a lost node has retained where its search starts",
    { seed: 690_000_009, profile: "machines", steps: 20_000 },
  ],
  [
    "the pod from which a machine migrates keeps its address, whatever the other one has",
    { seed: 700_000_020, profile: "machines", steps: 38_500 },
  ],
  [
    "a node that was off records late which machine it heard",
    { seed: 721_000_020, profile: "conflicts", steps: 40_000 },
  ],
  [
    "a machine whose node has lost its journal keeps its address while it is refused what an earlier pod has",
    { seed: 700_000_200, profile: "machines", steps: 36_500 },
  ],
  [
    "a record that was deleted by hand and restored by hand needs no write of the product",
    { seed: 726_000_003, profile: "hands", steps: 40_000 },
  ],
  [
    "one lost answer about a pod that is gone does not hold up the release of others",
    { seed: 732_000_012, profile: "statefulsets", steps: 40_000, faults: 1 },
  ],
  [
    "of two addresses of which a lost journal knew which was answered, either may be next, until one is released",
    { seed: 733_000_005, profile: "restores", steps: 34_500, faults: 1 },
  ],
];

it.for(FINDINGS)("%s", ([, options]) => checkRun({ ...DEFAULTS, nodes: 8, pods: 40, ...options }));
