/**
 * The process of berthctl as one file, for laptops: it has two programs, by the name that it is called by. krew calls
 * it `kubectl-berth`.
 */
import { runBerthctl } from "./berthctl-process.ts";

await runBerthctl(/kubectl-berth(?:\.exe)?$/i.test(process.argv0) ? "kubectl berth" : "berthctl");
