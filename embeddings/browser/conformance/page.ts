/**
 * The conformance runner in a browser's page.
 * Effects: requests to the server of the page; the page.
 */
import { report } from "../page.ts";
import { replayAll, type Vector } from "./replay.ts";

await report(async (say) => {
  const wasm = await WebAssembly.compileStreaming(fetch(import.meta.resolve("berth-core/berth-core.wasm")));
  const names = (await (await fetch("/given/")).json()) as string[];
  const read = async (name: string) => (await (await fetch(`/given/${name}`)).json()) as Vector;
  return replayAll(
    names.filter((name) => name.endsWith(".json")),
    read,
    wasm,
    say,
  );
});
