/**
 * `npm run simulate:scale`: 5,000 nodes, some minutes of processor time and 4 GB of memory. With `-- --small` 50 nodes.
 * Prints the table of docs/develop/scale.md.
 */
import { parseArgs } from "node:util";
import { describeScale, runScale } from "./run-scale.ts";

const LARGE = { nodes: 5_000, full: 2, pods: 150_000, pools: 10_000, rate: 1_000, loadS: 20, processors: 32 };
const SMALL = { nodes: 50, full: 5, pods: 500, pools: 20, rate: 50, loadS: 10, processors: 8 };

const { values } = parseArgs({ options: { small: { type: "boolean", default: false } } });
const report = await runScale(values.small ? SMALL : LARGE, console.log);
console.log(`\n${describeScale(report)}`);
process.exit(0);
