/**
 * `npm run oracles`: asks each oracle about each fault, and writes how soon it has noticed into measured.json and
 * docs/develop/oracles.md. `--only TEXT`, once or more: faults whose name has such a text. `--oracle NAME`, once or
 * more: these oracles. Effects of observer and history: control planes, agents, namespaces; ended at the end.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "../../scripts/setup/paths.mjs";
import { findFaultOnWire } from "../lab/cluster/fault-on-wire.ts";
import { findFaultBySearch } from "../property/registry/search/find-fault.ts";
import { RELIANCES, searchScene } from "../property/registry/search/scenes.ts";
import { FAULTS, type Fault } from "../simulation/faults/faults.ts";
import { findFaultBySimulation } from "../simulation/faults/find-fault.ts";
import { FINDING_NAMES, type FindingName, OPEN_FINDINGS } from "../simulation/open-findings.ts";
import { DEFAULTS, run } from "../simulation/run.ts";
import { NOTICED } from "./known.ts";
import { type Measured, type Notice, type Oracle, oraclesPage } from "./page.ts";

type Notices = Partial<Record<Oracle, Notice | null>>;

const MEASURED = join(root, "test/oracles/measured.json");
const MAX_STATES = 100_000;

/** Undefined: the oracle is not asked. */
interface Questions {
  readonly simulation?: () => Promise<Notices>;
  readonly search?: () => Promise<Notices>;
  readonly wire?: () => Promise<Notices>;
}

/** The questions about a fault that is switched on. */
function questionsAbout(name: string, fault: Fault): Questions {
  return {
    simulation: async () => {
      const { steps, seed, violation } = findFaultBySimulation(name, fault);
      return { simulation: violation === undefined ? null : { after: steps, where: `${fault.profile}, seed ${seed}` } };
    },
    search: async () => {
      const { states, violation } = await findFaultBySearch(name);
      return { search: violation === undefined ? null : { after: states, where: violation.scene } };
    },
    wire: async () => {
      const { observer, history } = await findFaultOnWire(name);
      const noticed = (found: typeof observer): Notice | null =>
        found === undefined ? null : { after: found.seconds, where: "course" };
      return { observer: noticed(observer), history: noticed(history) };
    },
  };
}

/** The questions about a fault of today's product. */
function questionsAboutKnown(name: FindingName): Questions {
  const finding = OPEN_FINDINGS.find(({ shows }) => shows === name);
  const reliance = RELIANCES.find((each) => each.finding === name);
  return {
    ...(finding === undefined ? {} : { simulation: () => simulate(finding) }),
    ...(reliance === undefined ? {} : { search: () => searchFor(reliance) }),
  };
}

async function simulate({ shows, options }: (typeof OPEN_FINDINGS)[number]): Promise<Notices> {
  const { problems, foundAt } = await run({ ...DEFAULTS, ...options, shows });
  return {
    simulation: problems.length === 0 ? null : { after: foundAt, where: `${options.profile}, seed ${options.seed}` },
  };
}

async function searchFor({ scene, dropped }: (typeof RELIANCES)[number]): Promise<Notices> {
  const { states, violations } = await searchScene(scene, { dropped, maxStates: MAX_STATES });
  return { search: violations.length === 0 ? null : { after: states, where: scene } };
}

/** The scenes of observer.test.ts play the known faults with built agents. */
function observeKnown(): ReadonlyMap<string, Notice> {
  const vitest = join(root, "node_modules/.bin/vitest");
  const { stdout } = spawnSync(vitest, ["run", "--project", "cluster", "test/cluster/observer.test.ts"], {
    cwd: root,
    encoding: "utf8",
    env: { ...process.env, BERTH_LONG: "1" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines = stdout.split("\n").flatMap((line) => line.split(NOTICED)[1] ?? []);
  return new Map(
    lines.map((line): [string, Notice] => {
      const { fault, after } = JSON.parse(line);
      return [fault, { after, where: "scene" }];
    }),
  );
}

const { values } = parseArgs({
  options: {
    only: { type: "string", multiple: true, default: [""] },
    oracle: { type: "string", multiple: true, default: ["simulation", "search", "wire"] },
  },
});
const fixed: Measured = JSON.parse(readFileSync(join(root, "test/oracles/fixed.json"), "utf8"));
const isWanted = (name: string): boolean => values.only.some((text) => name.includes(text));
const measured: Record<string, Notices> = JSON.parse(readFileSync(MEASURED, "utf8"));

const NAMES = [...FINDING_NAMES, ...Object.keys(FAULTS)];

/** Each answer is kept at once: all of them take most of an hour. */
function note(name: string, notices: Notices): void {
  measured[name] = { ...measured[name], ...notices };
  const kept: Measured = Object.fromEntries(NAMES.map((each) => [each, measured[each] ?? {}]));
  writeFileSync(MEASURED, `${JSON.stringify(kept, undefined, 2)}\n`);
  writeFileSync(join(root, "docs/develop/oracles.md"), oraclesPage(kept, fixed));
  for (const [oracle, notice] of Object.entries(notices))
    console.log(`${name}: ${oracle}: ${notice === null ? "not noticed" : `${notice.after} (${notice.where})`}`);
}

const known = FINDING_NAMES.filter(isWanted).map((name) => [name, questionsAboutKnown(name)] as const);
const switched = Object.entries(FAULTS).filter(([name]) => isWanted(name));
const all = [...known, ...switched.map(([name, fault]) => [name, questionsAbout(name, fault)] as const)];
for (const [name, questions] of all)
  for (const [oracle, ask] of Object.entries(questions)) if (values.oracle.includes(oracle)) note(name, await ask());
if (known.length > 0 && values.oracle.includes("wire"))
  for (const [name, notice] of observeKnown()) if (isWanted(name)) note(name, { observer: notice });
