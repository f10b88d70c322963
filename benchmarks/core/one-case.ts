/**
 * Measures one case of the core's benchmark: `node one-case.ts FOLDER CASE COUNT ROUNDS`, where FOLDER is the built
 * toolbox and CASE an index of CASES. Prints the turns, batches and loads of a row, as JSON.
 * Effects: instances' memory; a child process; prints.
 */
import { timeBatches } from "./batches.ts";
import { CASES } from "./cases.ts";
import { contest, openToolbox } from "./contestants.ts";
import { timeLoads } from "./loads.ts";

const [folder = "", index, count, rounds] = process.argv.slice(2);
const work = CASES[Number(index)];
if (!work) throw new Error(`case ${index}, wanted one below ${CASES.length}`);
const toolbox = openToolbox(folder);
const contested = contest(toolbox, work, Number(count), Number(rounds));
const batches = timeBatches(toolbox.core, work, Number(rounds));
process.stdout.write(JSON.stringify({ ...contested, batches, loads: timeLoads(toolbox, Number(rounds)) }));
