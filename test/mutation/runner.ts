/**
 * Runs the tests for StrykerJS in its own process: the modules are loaded once and not for each mutant, the quick tests run first, and the first that
 * fails ends the run. Vitest collects the tests; they and their hooks for each test are executed here, so a file with other hooks fails the dry run.
 */
import { globSync, readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { pathToFileURL } from "node:url";
import type { RunnerTask, RunnerTestCase, RunnerTestFile, RunnerTestSuite } from "vitest";

/**
 * Pure tests take milliseconds; a mutant may make one wait for ever: milliseconds. 0 is no limit: property tests have clocks of their own, which vitest
 * would read, and StrykerJS ends what takes too long.
 */
const TEST_TIMEOUT_MS = process.env.BERTH_MUTATE === "property" ? 0 : 30_000;

/** What instrumented code reads and writes. */
interface Instrumentation {
  activeMutant?: string | undefined;
  currentTestId?: string | undefined;
  hitCount?: number | undefined;
  hitLimit?: number | undefined;
  mutantCoverage?: object;
}

interface DryRunOptions {
  readonly timeout: number;
}

interface MutantRunOptions {
  readonly testFilter?: readonly string[];
  readonly hitLimit?: number;
  readonly activeMutant: { readonly id: string };
  readonly mutantActivation: "runtime" | "static";
}

interface Test {
  readonly id: string;
  readonly name: string;
  readonly fileName: string;
  readonly task: RunnerTestCase;
}

interface Failure {
  readonly test: Test;
  readonly message: string;
}

type Suite = RunnerTestSuite | RunnerTestFile;

const globals = globalThis as { __stryker__?: Instrumentation; __vitest_worker__?: object };
globals.__stryker__ ??= {};
const instrumentation = globals.__stryker__;

globals.__vitest_worker__ = {
  ...{ config: {}, providedContext: {}, environment: { name: "node" }, metaEnv: {}, onCancel: [] },
  ...{ durations: { environment: 0, prepare: 0 }, rpc: new Proxy({}, { get: () => async () => undefined }) },
  ctx: { concurrencyId: 1, workerId: 1, pool: "threads" },
};
const { collectTests } = await import("vitest/internal/browser");
const { expect, TestRunner } = await import("vitest");

expect.setState({ snapshotState: { snapshotUpdateState: "none" } } as never);
expect.extend({
  toMatchFileSnapshot(received: string, path: string) {
    return { pass: readFileSync(path, "utf8") === received, message: () => `${path} differs` };
  },
});

// A test that looks at time counts processor time: other programs run beside this one.
performance.now = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};

/** Each load of the tests has modules of its own. By the end of its address a module knows that it is not in a bundle. */
let generation = 0;
const root = pathToFileURL(`${process.cwd()}/`).href;
registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context);
    const isOwn = found.url.startsWith(root) && !found.url.includes("/node_modules/") && !found.url.includes("?");
    return isOwn ? { ...found, url: `${found.url}?${generation}.ts` } : found;
  },
});

let rejection: unknown;
process.on("unhandledRejection", (error) => {
  rejection = error;
});

async function load(): Promise<ReadonlyMap<string, Test>> {
  generation++;
  const config = {
    ...{ root: process.cwd(), setupFiles: [], passWithNoTests: true, allowOnly: true, retry: 0, tags: [] },
    ...{ sequence: { seed: 1, hooks: "stack", setupFiles: "list", shuffle: false }, maxConcurrency: 1 },
    ...{ testTimeout: TEST_TIMEOUT_MS, hookTimeout: TEST_TIMEOUT_MS },
  };
  const importFile = (path: string): Promise<unknown> => import(pathToFileURL(path).href);
  const files = globSync((process.env.BERTH_MUTATE_TESTS ?? "").split(",")).sort();
  const specifications = files.map((file) => ({ filepath: `${process.cwd()}/${file}` }));
  const collected = await collectTests(specifications as never, { config, importFile } as never);
  const tests = new Map<string, Test>();
  for (const file of collected) {
    const [error] = file.result?.errors ?? [];
    if (error !== undefined) throw new Error(`${file.name}: ${error.stack ?? error.message}`);
    for (const task of testsIn(file)) addTest(tests, file, task);
  }
  return tests;
}

function* testsIn(suite: Suite): Iterable<RunnerTestCase> {
  const { beforeAll = [], afterAll = [], aroundEach = [], aroundAll = [] } = TestRunner.getSuiteHooks(suite);
  if ([beforeAll, afterAll, aroundEach, aroundAll].some((hooks) => hooks.length > 0))
    throw new Error(`${suite.name} has hooks for all its tests`);
  for (const task of suite.tasks as RunnerTask[]) {
    if (task.type === "test") yield task;
    else yield* testsIn(task);
  }
}

function addTest(tests: Map<string, Test>, file: RunnerTestFile, task: RunnerTestCase): void {
  const names = [...suitesOf(task).map(({ name }) => name), task.name].slice(1);
  const plain = `${file.name}#${names.join(" > ")}`;
  let id = plain;
  for (let at = 2; tests.has(id); at++) id = `${plain} (${at})`;
  tests.set(id, { id, name: names.join(" > "), fileName: file.filepath, task });
}

/** The file first. */
function suitesOf(task: RunnerTask): Suite[] {
  const above: Suite | undefined = task.suite ?? (task === task.file ? undefined : task.file);
  return above === undefined ? [] : [...suitesOf(above), above];
}

/** Returns the error of a test that fails. */
async function execute({ task }: Test): Promise<unknown> {
  rejection = undefined;
  const suites = suitesOf(task);
  const { context } = task;
  let failure: unknown;
  const attempt = async (run: () => unknown): Promise<void> => {
    try {
      await run();
    } catch (error) {
      failure ??= error ?? new Error("Undefined was thrown");
    }
  };
  const cleanups: unknown[] = [];
  await attempt(async () => {
    for (const suite of suites)
      for (const hook of TestRunner.getSuiteHooks(suite).beforeEach) cleanups.push(await hook(context, suite));
    await TestRunner.getTestFn(task)();
  });
  for (const suite of suites.toReversed())
    for (const hook of TestRunner.getSuiteHooks(suite).afterEach.toReversed())
      await attempt(() => hook(context, suite));
  for (const cleanup of cleanups.toReversed()) if (typeof cleanup === "function") await attempt(() => cleanup());
  await new Promise(setImmediate);
  return failure ?? rejection;
}

async function findFailure(tests: readonly Test[]): Promise<Failure | undefined> {
  for (const test of tests) {
    const error = await execute(test);
    if (error !== undefined) return { test, message: String(error) };
  }
  return undefined;
}

class InProcessRunner {
  /** Without a mutant. */
  #tests: ReadonlyMap<string, Test> = new Map();
  readonly #timeMs = new Map<string, number>();

  capabilities() {
    return { reloadEnvironment: true };
  }

  async dryRun(_options: DryRunOptions) {
    instrumentation.activeMutant = undefined;
    this.#tests = await load();
    const tests = [];
    for (const test of this.#tests.values()) {
      instrumentation.currentTestId = test.id;
      const began = performance.now();
      const error = await execute(test);
      const timeSpentMs = performance.now() - began;
      instrumentation.currentTestId = undefined;
      this.#timeMs.set(test.id, timeSpentMs);
      const { id, name, fileName } = test;
      const failed = error === undefined ? { status: 0 } : { status: 1, failureMessage: String(error) };
      tests.push({ id, name, fileName, timeSpentMs, ...failed });
    }
    const mutantCoverage = structuredClone(instrumentation.mutantCoverage);
    // A test that fails the second time would kill any mutant.
    const isPassed = tests.every(({ status }) => status === 0);
    const unsteady = isPassed ? await findFailure([...this.#tests.values()]) : undefined;
    if (unsteady !== undefined)
      return { status: "error", errorMessage: `Not repeatable: ${unsteady.test.id}: ${unsteady.message}` };
    return { status: "complete", tests, mutantCoverage };
  }

  async mutantRun({ testFilter, hitLimit, activeMutant, mutantActivation }: MutantRunOptions) {
    instrumentation.hitLimit = hitLimit;
    instrumentation.hitCount = 0;
    if (this.#tests.size === 0) this.#tests = await load();
    const wanted = testFilter ?? [...this.#tests.keys()];
    const ids = wanted.toSorted((a, b) => (this.#timeMs.get(a) ?? 0) - (this.#timeMs.get(b) ?? 0));
    const [first = ""] = ids;
    let failure: { readonly id: string; readonly message: string } | undefined;
    try {
      instrumentation.activeMutant = activeMutant.id;
      const tests = mutantActivation === "static" ? await load() : this.#tests;
      const found = await findFailure(ids.flatMap((id) => tests.get(id) ?? []));
      const isRenamed = ids.some((id) => !tests.has(id));
      if (found !== undefined) failure = { id: found.test.id, message: found.message };
      else if (isRenamed) failure = { id: first, message: "The test is no longer collected" };
      else failure = undefined;
    } catch (error) {
      failure = { id: first, message: String(error) };
    }
    instrumentation.activeMutant = undefined;
    if ((instrumentation.hitCount ?? 0) > (hitLimit ?? Number.POSITIVE_INFINITY))
      return { status: "timeout", reason: "Hit limit reached" };
    if (failure === undefined) return { status: "survived", nrOfTests: ids.length };
    const same = this.#tests.get(failure.id);
    // What the mutant has left behind in a module fails the test without it, too: then neither proves anything.
    if (mutantActivation === "runtime" && same !== undefined && (await execute(same)) !== undefined) {
      this.#tests = await load();
      instrumentation.activeMutant = activeMutant.id;
      instrumentation.hitCount = 0;
      const again = await findFailure(ids.flatMap((id) => this.#tests.get(id) ?? []));
      instrumentation.activeMutant = undefined;
      this.#tests = await load();
      if (again === undefined) return { status: "survived", nrOfTests: ids.length };
    }
    return { status: "killed", killedBy: [failure.id], failureMessage: failure.message, nrOfTests: ids.length };
  }
}

function inProcessRunner() {
  return new InProcessRunner();
}
inProcessRunner.inject = [] as const;

export const strykerPlugins = [{ kind: "TestRunner", name: "in-process", factory: inProcessRunner }];
