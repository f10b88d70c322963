/** Names use the words of docs/glossary.md and docs/develop/glossary.md; words they replaced must not come back. */
import { basename } from "node:path";
import { expect, it } from "vitest";
import { readSources, type Source, sourceOf } from "./sources.ts";

/** The words to use, each behind the retired ones as they stand in names. */
const RETIRED: Readonly<Record<string, string>> = Object.fromEntries(
  `
  asked: requested
  belief believe believed: estimate
  book: cache
  catalogue: inventory
  contest: takeOver
  displace: evict
  distrust hearsay: the address's state
  doubtful: needsProbe
  fate fates: liveness
  forsake: skip
  foundation: backend
  glimpse: readUsageSummary
  hope: reservation
  hopes: reservations
  inspector: statusApi
  janitor: maintenance
  judge: decide
  keeper: address owner
  keepers: address owners
  lack: shortfall
  mend: fix
  news: events or changes
  nobody somebody: the actor
  scattered: randomize
  settle: the concrete verb: flush, wait, assign, sync
  settled: the concrete verb: flushed, waited, assigned, synced
  sighting sightings: status
  stranger: orphan
  strangers: orphans
  survey: listUsed
  surveys: live usage
  tools: deps
  twin: model or duplicate
  twins: models or duplicates
  verdict: decision
  wane: shrinkIdle
  wish: request or demand
  wishes: requests or demands
`
    .trim()
    .split("\n")
    .map((row) => row.trim().split(": "))
    .flatMap(([words = "", ...better]) => words.split(" ").map((word) => [word, better.join(": ")])),
);

const DECLARATION = /\b(?:function\*?|class|interface|type|enum|const|let) (\w+)/g;
/** Outside of host/, local variables are free. */
const TOP_LEVEL = /^(?:export )?(?:async )?(?:function\*?|class|interface|type|enum|const) (\w+)/gm;

/** `PoolLinkTools`, `pool_link` and `POOL_LINK` in lower-case words. */
function wordsOf(name: string): string[] {
  const parts = name.replace(/([a-z\d])([A-Z])/g, "$1 $2").replace(/([A-Z])([A-Z][a-z])/g, "$1 $2");
  return parts.toLowerCase().split(/[^a-z]+/);
}

function nameFaults({ path, text }: Source): string[] {
  const file = basename(path).replace(/\..*$/, "");
  const names = [
    file,
    ...[...text.matchAll(path.startsWith("host/") ? DECLARATION : TOP_LEVEL)].map(([, name = ""]) => name),
  ];
  return [...new Set(names)].flatMap((name) =>
    wordsOf(name).flatMap((word) => {
      const better = Object.hasOwn(RETIRED, word) ? RETIRED[word] : undefined;
      return better === undefined ? [] : [`${name}: "${word}" is retired, say ${better} (${path})`];
    }),
  );
}

const sources = ["host", "packages", "scripts", "test"].flatMap((folder) => readSources(folder, ".ts"));

it("no file or declaration has a retired word in its name", () => {
  expect(sources.length).toBeGreaterThan(800);
  expect(sources.flatMap(nameFaults)).toEqual([]);
});

it("a retired word in the name of a file, a type and a constant is found", () => {
  const source = sourceOf("host/x/pool-wish.ts", "interface PoolTools {}\nconst FATE_MS = 1;\nconst judgement = 2;");
  expect(nameFaults(source).map((fault) => fault.split(":")[0])).toEqual(["pool-wish", "PoolTools", "FATE_MS"]);
});
