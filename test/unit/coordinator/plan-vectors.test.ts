/**
 * The planners, case by case: test/vectors/coordinator/README.md has the form of a case. `npm run generate` records
 * the current outcomes; review them like code.
 */
import { join } from "node:path";
import { expect } from "vitest";
import { CniError } from "../../../host/cni/error.ts";
import { inverseOfAll } from "../../../host/plan/operation.ts";
import type { Observed } from "../../../host/plan/state.ts";
import { formatOperation } from "../../../host/plan/text.ts";
import { differenceFrom } from "../../world/similar-lines.ts";
import { describeVectors, linesOf, MARGIN } from "../../world/vectors.ts";
import { applyAll, applyStatement, inventory, NOTHING } from "./plan-model.ts";
import { answerRequest, type Request, readRequest } from "./plan-request.ts";
import { readStatement } from "./plan-words.ts";

const FOLDER = join(import.meta.dirname, "../../vectors/coordinator");

interface Outcome {
  readonly lines: readonly string[];
  readonly after: Observed;
}

/** Plans, does it on the values, and sees that this was all that there was to do. */
function outcomeOf(request: Request, before: Observed): Outcome {
  let answer: ReturnType<typeof answerRequest>;
  try {
    answer = answerRequest(request, before);
  } catch (error) {
    if (!(error instanceof CniError)) throw error;
    return { lines: [`refused: ${error.code} ${error.message}`], after: before };
  }
  const { mode, operations, warnings } = answer;
  if (request.verb === "CHECK")
    return { lines: operations.length === 0 ? ["as ADD left it"] : operations.map(formatOperation), after: before };
  const after = applyAll(before, operations);
  expect(answerRequest(request, after).operations.map(formatOperation), "doing it again").toEqual([]);
  const isUndone = operations.every(({ kind }) => kind !== "delete-veth");
  if (isUndone) expect(inventory(applyAll(after, inverseOfAll(operations))), "undone").toEqual(inventory(before));
  const lines = [
    ...(mode === undefined ? [] : [`mode: ${mode.mode}, because ${mode.reason}`]),
    ...warnings.map((warning) => `warning: ${warning}`),
    ...operations.map(formatOperation),
    ...(operations.length === 0 ? ["nothing to do"] : []),
  ];
  return { lines, after };
}

interface Answered {
  readonly request: Request;
  readonly lines: readonly string[];
}

interface Replay {
  readonly text: readonly string[];
  readonly answered: readonly Answered[];
}

const replays = new Map<string, Replay>();

/** The case with its expected lines replaced by the outcome, and its requests. */
function replay(file: string): Replay {
  const known = replays.get(file);
  if (known !== undefined) return known;
  let observed = NOTHING;
  const answered: Answered[] = [];
  const ask = (verb: Request["verb"], similar: string | undefined, facts: string): readonly string[] => {
    const request = readRequest(verb, JSON.parse(facts));
    const { lines, after } = outcomeOf(request, observed);
    observed = after;
    answered.push({ request, lines });
    if (similar === undefined) return lines;
    const other = replay(`${similar}.txt`).answered.find(
      (each) => each.request.verb === verb && each.request.ifName === request.ifName,
    );
    return differenceFrom(other?.lines ?? [], lines);
  };
  const follow = (line: string): string[] => {
    const [, verb, similar, facts = ""] = /^(ADD|CHECK|DEL) (?:like (\S+) )?(.*)$/.exec(line) ?? [];
    const [, state] = /^include (.*)$/.exec(line) ?? [];
    if (verb === "ADD" || verb === "CHECK" || verb === "DEL")
      return ask(verb, similar, facts).map((each) => `${MARGIN}${each}`);
    if (state !== undefined) linesOf(join(FOLDER, `state/${state}.txt`)).forEach(follow);
    else if (line !== "" && !line.startsWith("#")) observed = applyStatement(observed, readStatement(line));
    return [];
  };
  const given = linesOf(join(FOLDER, file)).filter((line) => !line.startsWith(MARGIN));
  const played = { text: given.flatMap((line) => [line, ...follow(line)]), answered };
  replays.set(file, played);
  return played;
}

describeVectors(FOLDER, 41, replay);
