/** The process of berthctl as one file, for laptops: it has two programs, by the name that it is called by. */
import { runBerthctl } from "./berthctl-process.ts";

await runBerthctl(/kubectl-berth$/.test(process.argv0) ? "kubectl berth" : "berthctl");
