/**
 * The benchmark `ipam`: ADD and DEL from exec to exit, one at a time and forty at once; Berth against host-local,
 * above the floors of the same run.
 * Effects: runs plugins and agents; one network namespace; files below .scratch, removed at the end.
 */
import { referenceTool } from "../../scripts/setup/paths.mjs";
import type { Bench, BenchOptions, BenchReport } from "../harness/report.ts";
import { measureAgent } from "./agent.ts";
import { openBerth, writeNetConf } from "./berth.ts";
import { type Contestant, openPlace, type Place } from "./contestant.ts";
import { openEchoAgent, openEmptyProgram } from "./floor.ts";
import { openHostLocal } from "./host-local.ts";
import { type Courses, measureSeries } from "./measure.ts";
import { coolingC24, emptyC24, full12, full16, half16 } from "./pool-shape.ts";
import { tabulate, targetsOf } from "./tabulate.ts";

const AT_ONCE = 40;

/**
 * So each agent has answered 600 ADDs before: an agent runs for weeks, and around the 510th V8 compiles most of an
 * ADD's code at once, which makes four or five of them slow, this once.
 */
const WARM_UP_ROUNDS = 30;

export const ipamBench: Bench = { name: "ipam", run: runIpam };

async function runIpam(options: BenchOptions): Promise<BenchReport> {
  await using stack = new AsyncDisposableStack();
  const place = await openPlace(stack, "ipam");
  const series = await measureSeries(await openContestants(stack, place, options), coursesOf(options));
  const agent = await measureAgent(place);
  return {
    tables: [tabulate(series), agent.table],
    targets: [...targetsOf(series), ...agent.targets],
    notes: notesOf(options),
    versions: { "host-local": referenceTool("plugins").version },
  };
}

function coursesOf({ quick }: BenchOptions): Courses {
  return {
    oneAtATime: { atOnce: 1, callsPerRound: 20, warmUpRounds: quick ? 3 : WARM_UP_ROUNDS, rounds: quick ? 5 : 50 },
    manyAtOnce: { atOnce: AT_ONCE, callsPerRound: 200, warmUpRounds: 1, rounds: quick ? 2 : 10 },
  };
}

async function openContestants(
  stack: AsyncDisposableStack,
  place: Place,
  { quick }: BenchOptions,
): Promise<Contestant[]> {
  const contestants: Contestant[] = [];
  const add = (contestant: Contestant): void => {
    stack.defer(() => contestant.close());
    contestants.push(contestant);
  };
  add(openEmptyProgram(place));
  add(openHostLocal(emptyC24, place));
  add(await openEchoAgent(place, writeNetConf(place)));
  for (const shape of [emptyC24, coolingC24, half16, full16, ...(quick ? [] : [full12])])
    add(await openBerth(shape, place));
  return contestants;
}

function notesOf({ quick }: BenchOptions): string[] {
  const notes = [
    "Milliseconds from exec to exit, as a runtime sees them. Ratios compare with `host-local` on an empty /24 within the same run; the first rows are the floors of that run.",
    "Before, each agent has answered 600 ADDs, one at a time: an agent runs for weeks, and its first calls are its slowest. Around the 510th V8 compiles most of what an ADD calls, all at once.",
    "Each round runs ADDs, then the DELs of the same pods. Neither waits for the disk: Berth's record survives a kill -9 before the answer goes out, and after a power loss no pod lives. Released addresses are free again at once, as host-local's are, except in the row with a cooldown: there nearly all of the /24 cools after the first round, most ADDs take such an address over, and forty at once wait until one has rested for the two seconds that Berth insists on.",
  ];
  if (quick) notes.push("A quick run warms up for 60 ADDs only.", "The largest pools are left out of a quick run.");
  return notes;
}
