/** What the programs of the contestants print: a JSON line for each figure, and for each thing to know. */
import type { Contestant } from "./contestants.ts";

/**
 * `call`: a call that does nothing. `one`, `one-value`, `raw`, `ordinal`: an address taken and given back, by the
 * language's own type (in JavaScript: text), by family and number, by the bytes in the exchange buffer, by ordinals.
 * `batch`: the same for many at once, per address.
 */
export const FORMS = ["call", "one", "one-value", "raw", "ordinal", "batch"] as const;

export type Form = (typeof FORMS)[number];

const WORDS = ["version", "refusal", "remark"] as const;

export interface Figure {
  readonly runtime: string;
  /** Empty for `call`. */
  readonly shape: string;
  readonly form: Form;
  /** The median of the samples: nanoseconds. */
  readonly ns: number;
  /** How many samples, when the program says so. */
  readonly samples?: number;
}

/** Versions, what a contestant refuses to do, and what a reader must know beside a figure. */
export interface Word {
  readonly runtime: string;
  readonly shape: string;
  readonly form: (typeof WORDS)[number];
  readonly text: string;
}

export interface Contest {
  /** In the order of their columns. */
  readonly shapes: readonly string[];
  readonly contestants: readonly Contestant[];
  readonly figures: readonly Figure[];
  readonly words: readonly Word[];
}

/** Throws on a line that is neither. */
export function decodeLine(line: string): Figure | Word {
  const { runtime, shape, form, ns, samples, text } = JSON.parse(line) as Record<string, unknown>;
  if (typeof runtime === "string" && typeof shape === "string") {
    const isFigure = FORMS.some((name) => name === form) && typeof ns === "number" && ns > 0;
    if (isFigure)
      return { runtime, shape, form: form as Form, ns, ...(typeof samples === "number" ? { samples } : {}) };
    const isWord = WORDS.some((name) => name === form) && typeof text === "string";
    if (isWord) return { runtime, shape, form: form as Word["form"], text };
  }
  throw new Error(`Neither a figure nor a word: ${line}`);
}

export function isFigure(said: Figure | Word): said is Figure {
  return "ns" in said;
}

/** What a program takes unless a pair takes too long. */
const USUAL_SAMPLES = 9;

export function hasFewSamples({ samples = USUAL_SAMPLES }: Figure): boolean {
  return samples < USUAL_SAMPLES;
}

/** Nanoseconds; undefined when there is no such figure. */
export function findNs(contest: Contest, runtime: string, form: Form, shape: string): number | undefined {
  return contest.figures.find((figure) => figure.runtime === runtime && figure.form === form && figure.shape === shape)
    ?.ns;
}

/** One figure for all turns of a program, their median, the lower of two; each word once. */
export function mergeTurns(said: readonly (Figure | Word)[]): (Figure | Word)[] {
  const turns = Map.groupBy(said, (each) =>
    [each.runtime, each.shape, each.form, isFigure(each) ? "" : each.text].join("\n"),
  );
  return [...turns.values()].flatMap((group) => {
    const sorted = group.filter(isFigure).sort((a, b) => a.ns - b.ns);
    return sorted[Math.floor((sorted.length - 1) / 2)] ?? group.slice(0, 1);
  });
}
