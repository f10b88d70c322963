/** The process of `berthctl` (host/cli/berthctl.ts). */
import { runBerthctl } from "./berthctl-process.ts";

await runBerthctl("berthctl");
