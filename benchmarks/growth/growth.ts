/**
 * The benchmark `growth`: ADD and memory against pool size, pools and addresses in use, beside the peers that can
 * follow.
 * Effects: control planes on loopback; daemons and plugins; network namespaces; files below .scratch, removed at the
 * end.
 */
import { referenceTool } from "../../scripts/setup/paths.mjs";
import { runSetup } from "../../scripts/setup/run-setup.ts";
import type { Bench, BenchOptions, BenchReport } from "../harness/report.ts";
import { openPlace } from "../ipam/contestant.ts";
import { measureAllocations } from "./allocations.ts";
import { figureOf, flatnessOf, tablesOf } from "./axis.ts";
import { measurePools } from "./pools.ts";
import { measureSizes } from "./sizes.ts";

export const growthBench: Bench = { name: "growth", run: runGrowth };

async function runGrowth({ quick }: BenchOptions): Promise<BenchReport> {
  runSetup("cluster", "peers");
  await using stack = new AsyncDisposableStack();
  const place = await openPlace(stack, "growth");
  const sizes = await measureSizes(place, quick);
  const allocations = await measureAllocations(place, quick);
  const pools = await measurePools(place, quick);
  const axes = [sizes, allocations, pools];
  return {
    tables: axes.flatMap(tablesOf),
    targets: axes.flatMap(flatnessOf),
    notes: NOTES,
    versions: {
      "host-local": referenceTool("plugins").version,
      whereabouts: referenceTool("whereabouts").version,
      Spiderpool: referenceTool("spiderpool").version,
      Kubernetes: referenceTool("kubernetes").version,
    },
    figures: [figureOf(allocations, "ADD"), figureOf(pools, "memory")],
  };
}

const NOTES = [
  "Milliseconds from exec to exit, one at a time. At each place the IPAMs take turns; of the places, those of pool size take turns, the others follow each other, and the agents of clusters run on from one to the next.",
  "Where a curve of a peer ends it cannot follow. Spiderpool enumerates a pool's addresses for each ADD, and keeps at most 5,000 records in a pool; the object of a pool of whereabouts becomes too large for the API server. host-local knows no other pools than its own, and no cluster.",
  "Other addresses in use are spread over a /12 at random.",
];
