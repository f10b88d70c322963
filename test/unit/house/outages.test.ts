/** The words of README.md about outages are shown by tests, each by its name. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root } from "../../../scripts/setup/paths.mjs";

const read = (path: string): string => readFileSync(join(root, path), "utf8");

/** Words that say that something is not there, or ends. */
const OUTAGE =
  /\b(?:outages?|away|killed|crash\w*|dead|dies|lost|unreachable|goes down|without (?:an? |the )?(?:agent|controller|API server))\b/gi;

const DEMO = "test/e2e/demo.test.ts";
const DEMOS = "test/long/demo.test.ts";
const SERVER = "test/cluster/faults-server.test.ts";
const AWAY =
  "while the API server is away, recorded addresses are given at once, and a new one is refused for want of it";
const BACK =
  "an agent comes back while the API server is away: a DEL is answered, an ADD waits, and both are made good";
const ELSEWHERE =
  "node-lost: of a node that is out of service a pod has its address elsewhere at once, and the node that is back lets go";
const SILENCE = "conflict: after nodeLost another node asks: silence frees an address, an answer does not";

/** The words of README.md; the tests' files with their names. */
const SHOWN: readonly [words: string, ...tests: (readonly [file: string, name: string])[]][] = [
  ["the agent is killed", [DEMO, "the demo comes to its end, and all its claims are true"]],
  [
    "with an outage of the API server",
    [DEMOS, "the demo with --cluster comes to its end, and all its claims are true"],
    [SERVER, AWAY],
    [SERVER, BACK],
  ],
  [
    "addresses of lost nodes [collected]",
    ["test/cluster/workloads.test.ts", ELSEWHERE],
    ["test/cluster/garbage.test.ts", SILENCE],
  ],
  ["dead gateways [found]", ["test/e2e/link-local-router.test.ts", "is refused when the router does not answer"]],
];

it("every outage that README.md speaks of is in the table", () => {
  let rest = read("README.md");
  for (const [words] of SHOWN) {
    expect(rest, `README.md does not say "${words}" any more: remove its row`).toContain(words);
    rest = rest.replace(words, "");
  }
  expect([...rest.matchAll(OUTAGE)].map(({ index }) => rest.slice(index - 40, index + 40))).toEqual([]);
});

it.each(SHOWN.flatMap(([words, ...tests]) => tests.map(([file, name]) => [words, file, name] as const)))(
  '"%s" is shown by %s: %s',
  (_words, file, name) => expect(read(file)).toMatch(new RegExp(`\\(\\s*"${RegExp.escape(name)}",`)),
);
