/** What the core promises beside other allocators, and what a contest says of it. */

import { formatFigure, type Table } from "../../test/lab/statistics.ts";
import type { Target } from "../harness/report.ts";
import { type Contest, type Form, findNs } from "./contest.ts";
import { CALLS_PER_PAIR, FORM_NAMES, formatNs } from "./tabulate.ts";

interface Claim {
  readonly runtime: string;
  readonly label: string;
  readonly forms: readonly Exclude<Form, "call">[];
}

/** By which forms a language competes; the best of them counts. */
const CLAIMS: readonly Claim[] = [
  { runtime: "javascript", label: "JavaScript (Node.js)", forms: ["one", "one-value", "raw"] },
  { runtime: "rust", label: "Rust", forms: ["one", "raw"] },
  { runtime: "c", label: "C", forms: ["one", "raw"] },
  { runtime: "go", label: "Go", forms: ["one", "raw"] },
];

/** Whether a target tells of the runtime. */
export function isClaimed(runtime: string): boolean {
  return CLAIMS.some((claim) => claim.runtime === runtime);
}

/** The languages that compete by all of their forms: the peers are written in one of the two, and the other compiles as well. */
const BY_EVERY_FORM: readonly Claim[] = CLAIMS.filter(({ runtime }) => runtime === "rust" || runtime === "go");

/** How many times as fast as the fastest peer a language has to be. */
const MARGIN = 1.3;

const BITMAPS = ["cilium", "kubernetes"];
const BITMAP_FACTOR = 1000;

export function decideTargets(contest: Contest): Target[] {
  const packed = contest.shapes.filter((shape) => shape.endsWith(" packed"));
  return [
    ...CLAIMS.map(({ runtime, label, forms }) => ({
      what: `from ${label}: faster than the fastest peer, every pool`,
      wanted: `≥ ${MARGIN} ×`,
      ...best(
        forms.map((form) => ratiosOf(contest, runtime, form, peersOf(contest), contest.shapes)),
        (r) => r >= MARGIN,
      ),
    })),
    ...CLAIMS.map(({ runtime, label, forms }) => ({
      what: `from ${label}: against the bitmaps of Cilium and Kubernetes, packed pools`,
      wanted: `≥ ${BITMAP_FACTOR.toLocaleString("en-US")} ×`,
      ...best(
        forms.map((form) => ratiosOf(contest, runtime, form, BITMAPS, packed)),
        (r) => r >= BITMAP_FACTOR,
      ),
    })),
    ...BY_EVERY_FORM.map((claim) => ({
      what: `from ${claim.label}: faster than the fastest peer, every pool by every form`,
      wanted: `≥ ${MARGIN} ×, unless two empty calls alone are not`,
      ...everyCell(judgeCells(contest, claim)),
    })),
  ];
}

function peersOf({ contestants }: Contest): string[] {
  return contestants.filter(({ kind }) => kind === "peer").map(({ name }) => name);
}

/** How many times as long the fastest of `rivals` takes, for each pool. */
interface Ratio {
  readonly shape: string;
  readonly form: Form;
  readonly ratio: number;
  /** What the fastest of them takes; not a number without a figure. */
  readonly fastestNs: number;
  readonly figures: string;
}

function ratiosOf(contest: Contest, runtime: string, form: Form, rivals: readonly string[], shapes: readonly string[]) {
  return shapes.map((shape): Ratio => {
    const own = findNs(contest, runtime, form, shape);
    const [fastest] = rivals
      .flatMap((name) => ({ name, ns: findNs(contest, name, "one", shape) ?? Number.NaN }))
      .filter(({ ns }) => Number.isFinite(ns))
      .sort((a, b) => a.ns - b.ns);
    if (own === undefined || fastest === undefined)
      return { shape, form, ratio: Number.NaN, fastestNs: Number.NaN, figures: "no figure" };
    const figures = `${formatNs(own)} against ${formatNs(fastest.ns)} of ${fastest.name}`;
    return { shape, form, ratio: fastest.ns / own, fastestNs: fastest.ns, figures };
  });
}

/** The form that holds on most pools, the first of equals, and how many of the others hold. A pool without figures does not. */
function best(
  forms: readonly (readonly Ratio[])[],
  holds: (ratio: number) => boolean,
): Pick<Target, "measured" | "isMet"> {
  const measured = forms.filter((ratios) => ratios.some(({ ratio }) => !Number.isNaN(ratio)));
  const missesOf = (ratios: readonly Ratio[]): readonly Ratio[] => ratios.filter(({ ratio }) => !holds(ratio));
  const [chosen, ...others] = [...measured].sort((a, b) => missesOf(a).length - missesOf(b).length);
  if (chosen === undefined) return { measured: "not measured", isMet: false };
  const misses = missesOf(chosen);
  const [lowest] = [...chosen].sort((a, b) => a.ratio - b.ratio);
  const shown =
    misses.length === 0 && lowest !== undefined ? `at least ${describe(lowest)}` : misses.map(describe).join(", ");
  const count = (ratios: readonly Ratio[]): string =>
    `${ratios[0]?.form} ${ratios.length - missesOf(ratios).length} of ${ratios.length} pools`;
  return { measured: [`${count(chosen)}: ${shown}`, ...others.map(count)].join("; "), isMet: misses.length === 0 };
}

/** `bound`: the pair's two calls would not leave the margin if the core did nothing. */
interface Cell extends Ratio {
  readonly verdict: "met" | "bound" | "missed";
}

/** A cell for each form and pool of a language. One without a figure is missed. */
function judgeCells(contest: Contest, { runtime, forms }: Claim): Cell[] {
  const floorNs = CALLS_PER_PAIR * (findNs(contest, runtime, "call", "") ?? 0);
  return forms.flatMap((form) =>
    ratiosOf(contest, runtime, form, peersOf(contest), contest.shapes).map((cell): Cell => {
      if (cell.ratio >= MARGIN) return { ...cell, verdict: "met" };
      return { ...cell, verdict: floorNs * MARGIN > cell.fastestNs ? "bound" : "missed" };
    }),
  );
}

/** How many cells are met, and those that are not, or else the lowest. */
function everyCell(cells: readonly Cell[]): Pick<Target, "measured" | "isMet"> {
  if (cells.every(({ ratio }) => Number.isNaN(ratio))) return { measured: "not measured", isMet: false };
  const others = cells.filter(({ verdict }) => verdict !== "met");
  const [lowest] = [...cells].sort((a, b) => a.ratio - b.ratio);
  const shown = others.length === 0 && lowest !== undefined ? [lowest] : others;
  const texts = shown.map((cell) => `${VERDICTS[cell.verdict]}${cell.form}, ${describe(cell)}`).join("; ");
  return {
    measured: `${cells.length - others.length} of ${cells.length} cells: ${texts}`,
    isMet: cells.every(({ verdict }) => verdict !== "missed"),
  };
}

const VERDICTS: Readonly<Record<Cell["verdict"], string>> = {
  met: "at least ",
  bound: "bound by the border: ",
  missed: "",
};

/** How many times as fast as the fastest peer each form of the languages is that compete by all of them, pool by pool. */
export function tabulateMargins(contest: Contest): Table {
  const rows = BY_EVERY_FORM.flatMap((claim) =>
    claim.forms.map((form) => {
      const cells = judgeCells(contest, { ...claim, forms: [form] });
      return [`${claim.label}: ${FORM_NAMES[form]}`, ...cells.map(describeCell)];
    }),
  );
  return {
    title: `Times as fast as the fastest peer; less than ${MARGIN} is missed, or bound by the border if two empty calls alone take too long`,
    columns: ["", ...contest.shapes],
    rows: rows.filter((cells) => cells.slice(1).some((cell) => cell !== "-")),
  };
}

function describeCell({ ratio, verdict }: Cell): string {
  if (Number.isNaN(ratio)) return "-";
  return `${formatFigure(ratio)} ×${{ met: "", bound: ", bound by the border", missed: ", MISSED" }[verdict]}`;
}

function describe({ shape, ratio, figures }: Ratio): string {
  return Number.isNaN(ratio) ? `${shape}: ${figures}` : `${shape}: ${formatFigure(ratio)} × (${figures})`;
}
