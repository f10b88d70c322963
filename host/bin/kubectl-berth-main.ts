/** The process of `kubectl berth`: berthctl with the cluster of a kubeconfig as its default source. */
import { runBerthctl } from "./berthctl-process.ts";

await runBerthctl("kubectl berth");
