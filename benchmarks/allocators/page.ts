/** A contest as a report, and the report as a page. */
import type { BenchReport } from "../harness/report.ts";
import { type Contest, hasFewSamples, type Word } from "./contest.ts";
import type { Contestant } from "./contestants.ts";
import { tabulateCalls, tabulatePools } from "./tabulate.ts";
import { decideTargets, tabulateMargins } from "./targets.ts";

export function reportOf(contest: Contest): BenchReport {
  const { contestants, figures, words } = contest;
  const versions = words.filter(({ form }) => form === "version");
  const few = figures
    .filter(hasFewSamples)
    .map(({ runtime, shape, samples }) => ({ runtime, shape, text: `the median of ${samples} samples` }));
  return {
    tables: [tabulatePools(contest), tabulateMargins(contest), tabulateCalls(contest)],
    targets: decideTargets(contest),
    notes: [
      ...describeWords(
        contestants,
        words.filter(({ form }) => form === "refusal"),
      ),
      ...describeWords(
        contestants,
        words.filter(({ form }) => form === "remark"),
      ),
      ...describeWords(contestants, few),
    ],
    versions: Object.fromEntries(versions.map(({ runtime, text }) => [runtime, `(${text})`])),
    raw: { shapes: contest.shapes, figures, words },
  };
}

/** A sentence for each thing that a contestant says, with the pools of which it says it. */
function describeWords(
  contestants: readonly Contestant[],
  sayings: readonly Pick<Word, "runtime" | "shape" | "text">[],
): string[] {
  const pools = new Map<string, string[]>();
  for (const { runtime, shape, text } of sayings) {
    const label = contestants.find(({ name }) => name === runtime)?.label ?? runtime;
    const sentence = `${label}: ${text}`;
    pools.set(sentence, [...(pools.get(sentence) ?? []), ...(shape === "" ? [] : [shape])]);
  }
  return [...pools].map(([sentence, shapes]) =>
    shapes.length === 0 ? `${sentence}.` : `${sentence} (${shapes.join("; ")}).`,
  );
}

/** The page around the tables that {@link reportOf} leads to. */
export function renderPage(tables: string): string {
  return `# Beside other allocators

Written by \`npm run bench:allocators\` from the figures of one run. Each contestant has the same pools, in which the same addresses are used;
the network address, and of IPv4 the broadcast address, are always used. Timed is one pair: take the next free address, in the order that the
allocator has, and give it back. A program warms up for 0.2 s and takes nine samples of at least 30 ms. On each pool the programs take three
turns, one program at a time; the figure is the median of the turns' medians. A peer that needs more than 0.2 s for a pair, and Chromium, Java and Python, of which no
target tells, have one turn.

* **The peers** are the allocation code of other projects, called from a small Go program (\`peers/\`) without what is around it: no API
  server, no files, no lease, no plugin process. What exactly is timed stands at the top of each program; in doubt it favours the peer.
  Cilium and Kubernetes begin at a random address, host-local after the last one taken, the others at the lowest.
* **Berth** is the built core in each runtime, in the order ROUND_ROBIN: by an address of the language's own type, as a user would (in
  JavaScript, which has none, by text, and by family and number); by bytes in the exchange buffer; by ordinals; and in batches of 256 addresses.

A cell in the first table is the time of a pair. \`packed\`: the used addresses are the first ones; \`random\`: chance scatters them.

${tables}
`;
}
