/** `explain` foretells the ADD, and changes nothing. */
import { expect, it } from "vitest";
import { times } from "../../world/long-cases.ts";
import { Seeded } from "../../world/seeded.ts";
import { ExplainWorld, explainedAnswers } from "./explain-world.ts";

/**
 * The same each time, so that the gate repeats its verdict on a commit; others with BERTH_SEED, and more with
 * BERTH_RUNS.
 */
const SEED = Number(process.env.BERTH_SEED ?? 1);
const CLUSTERS = Number(process.env.BERTH_RUNS ?? times(50));
/** Number of clusters of one node, one after the other. */
const CLUSTERS_OF_NODE = 25;

it(`an ADD of ${CLUSTERS} random clusters does as explain said before`, async () => {
  const differences: string[] = [];
  const kinds = new Map<string, number>();
  for (let seed = SEED; seed < SEED + CLUSTERS / CLUSTERS_OF_NODE; seed++) {
    const world = await ExplainWorld.open(new Seeded(seed));
    for (let at = 0; at < CLUSTERS_OF_NODE; at++) {
      await world.change();
      await world.live();
      const question = world.question();
      const before = await world.state();
      const explanation = await world.explain(question);
      expect(await world.state(), `seed ${seed}, cluster ${at}`).toEqual(before);
      const said = explainedAnswers(explanation);
      const done = await world.addAll(question, explanation);
      if (explanation.nics.length === 0) kinds.set("whole", (kinds.get("whole") ?? 0) + 1);
      for (const [index, answer] of done.entries()) {
        const kind = / (1\d\d|\d\d?) /.exec(`${answer} `)?.[1] ?? "allocated";
        kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
        if (said[index] !== answer) differences.push(`seed ${seed}, cluster ${at}: said ${said[index]}, did ${answer}`);
      }
    }
    await world.close();
  }
  console.log(`ADDs: ${[...kinds].map(([kind, count]) => `${count} ${kind}`).join(", ")}`);
  expect(differences).toEqual([]);
}, 600_000);
