/**
 * `npm run demo`: what Berth does, explained to a newcomer to CNI, on real namespaces with real plugins.
 * `npm run demo -- --stay` waits for Enter at the end, with the address map open.
 * `npm run demo -- --cluster`: what it does in a cluster, on a real etcd and a real API server; `--record
 * docs/operator.svg` writes the README's recording.
 * `npm run demo -- --clusters`: two clusters that share a segment.
 * The exit code is 0 only when every claim came true; everything is removed in any case, also after Ctrl-C.
 * Effects: network namespaces, an agent, temporary files; all removed.
 */
import { writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { OPERATOR_TITLE } from "./demo/cluster/operator-scene.ts";
import { tellCluster } from "./demo/cluster/story.ts";
import { tellClusters } from "./demo/clusters/story.ts";
import { type Narrator, openNarrator, StoryError } from "./demo/narrator.ts";
import { type PrintedLine, renderRecording } from "./demo/recording.ts";
import { scenes } from "./demo/scenes.ts";
import { openStage } from "./demo/stage.ts";
import { runSetup } from "./setup/run-setup.ts";

const { values } = parseArgs({
  options: {
    cluster: { type: "boolean", default: false },
    clusters: { type: "boolean", default: false },
    /** Wait for Enter before everything is deleted, so that the address map can be looked at. */
    stay: { type: "boolean", default: false },
    /** File for an SVG of the scene in which an operator types commands; with `--cluster`. */
    record: { type: "string" },
  },
});

async function tellNode(narrator: Narrator): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const stage = await openStage(stack);
  const last = scenes.at(-1);
  for (const scene of scenes) {
    if (values.stay && scene === last) await untilEnter(`The address map is at ${stage.mapUrl}. Press Enter to go on.`);
    await scene(stage, narrator);
  }
}

/** Resolves on Enter, at the end of the input, and when the user interrupts. */
async function untilEnter(text: string): Promise<void> {
  console.log(`\n${text}`);
  await new Promise<void>((resolve) => {
    for (const event of ["data", "end"] as const) process.stdin.once(event, () => resolve());
    interruption.signal.addEventListener("abort", () => resolve());
  });
  process.stdin.destroy();
}

async function tell(interrupted: AbortSignal): Promise<void> {
  const startMs = performance.now();
  const printed: PrintedLine[] = [];
  const narrator = openNarrator(interrupted, (text) => {
    console.log(text);
    printed.push({ text, atMs: performance.now() });
  });
  console.log(
    "Berth gives pods their addresses. This demo uses network namespaces of its own; this machine's network stays as it is.",
  );
  await (values.cluster ? tellCluster : values.clusters ? tellClusters : tellNode)(narrator);
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
  console.log(`\n${narrator.claims} claims, all true, in ${seconds} s; everything has been removed.`);
  if (values.record !== undefined) await writeFile(values.record, renderRecording(OPERATOR_TITLE, sceneOf(printed)));
}

/** The lines of the operator's scene, up to the next scene. */
function sceneOf(printed: readonly PrintedLine[]): PrintedLine[] {
  const isTitle = ({ text }: PrintedLine) => /^\n\d+\. /.test(text);
  const first = printed.findIndex((line) => isTitle(line) && line.text.includes(OPERATOR_TITLE));
  const next = printed.findIndex((line, index) => index > first && isTitle(line));
  return printed
    .slice(first, next === -1 ? undefined : next)
    .map(({ text, atMs }) => ({ text: text.replace(/^\n/, "").replace(/^ {3}/gm, ""), atMs }));
}

const interruption = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => interruption.abort());
// Who listened has gone, as in `npm run demo | head`: what has been made must still be removed.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => interruption.abort());

if (process.getuid?.() !== 0) {
  console.error("The demo makes network namespaces, which only root may do. Run: sudo npm run demo");
  process.exit(1);
}
if (values.cluster || values.clusters) runSetup("reference", "cluster");
try {
  await tell(interruption.signal);
} catch (error) {
  const reason = error instanceof StoryError ? error.message : String(error);
  console.error(
    `\nThe demo ends here, everything has been removed. ${interruption.signal.aborted ? "Interrupted" : reason}`,
  );
  process.exitCode = interruption.signal.aborted ? 130 : 1;
}
