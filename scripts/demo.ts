/**
 * `npm run demo`: Berth on a node, explained to a newcomer to CNI, with real plugins; `-- --stay` waits for Enter at
 * the end, with the address map open. `-- --cluster`: on a real etcd and a real API server; `--record
 * docs/operator.svg` writes the README's recording. The exit code is 0 only when every claim came true; everything is
 * removed in any case, also after Ctrl-C.
 * Effects: network namespaces, processes, temporary files; all removed.
 */
import { writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { clusterStory, OPERATOR_TITLE } from "./demo/cluster/story.ts";
import { StoryError, tell } from "./demo/engine.ts";
import { nodeStory } from "./demo/node/story.ts";
import { renderRecording } from "./demo/recording.ts";
import { runSetup } from "./setup/run-setup.ts";

const { values } = parseArgs({
  options: {
    cluster: { type: "boolean", default: false },
    stay: { type: "boolean", default: false },
    record: { type: "string" },
  },
});

const interruption = new AbortController();
const interrupted = interruption.signal;
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => interruption.abort());
// The reader has gone, as in `npm run demo | head`: the clean-up must still run.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => interruption.abort());

/** Resolves on Enter, at the end of the input, and when the user interrupts. */
async function untilEnter(sight: string): Promise<void> {
  console.log(`\n${sight} Press Enter to go on.`);
  await new Promise<void>((resolve) => {
    for (const event of ["data", "end"] as const) process.stdin.once(event, () => resolve());
    interrupted.addEventListener("abort", () => resolve());
  });
  process.stdin.destroy();
}

async function play(): Promise<void> {
  const options = { interrupted, stay: values.stay ? untilEnter : undefined };
  if (!values.cluster) await tell(nodeStory, options);
  else {
    const printed = await tell(clusterStory, options);
    if (values.record !== undefined) await writeFile(values.record, renderRecording(OPERATOR_TITLE, printed));
  }
}

if (process.getuid?.() !== 0) {
  console.error("The demo makes network namespaces, which only root may do. Run: sudo npm run demo");
  process.exit(1);
}
if (values.cluster) runSetup("reference", "cluster", "chart");
try {
  await play();
} catch (error) {
  const reason = error instanceof StoryError ? error.message : String(error);
  const why = interrupted.aborted ? "Interrupted" : reason;
  console.error(`\nThe demo ends here, everything has been removed. ${why}`);
  process.exitCode = interrupted.aborted ? 130 : 1;
}
