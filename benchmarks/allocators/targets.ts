/** What the core promises beside other allocators, and what a contest says of it. */

import { formatFigure } from "../../scripts/lab/statistics.ts";
import type { Target } from "../harness/report.ts";
import { type Contest, type Form, findNs } from "./contest.ts";
import { formatNs } from "./tabulate.ts";

interface Claim {
  readonly runtime: string;
  readonly label: string;
  readonly forms: readonly Form[];
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
    ...BY_EVERY_FORM.map(({ runtime, label, forms }) => ({
      what: `from ${label}: faster than the fastest peer, every pool by every form`,
      wanted: `≥ ${MARGIN} ×`,
      ...all(
        forms.flatMap((form) => ratiosOf(contest, runtime, form, peersOf(contest), contest.shapes)),
        (r) => r >= MARGIN,
      ),
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
  readonly figures: string;
}

function ratiosOf(contest: Contest, runtime: string, form: Form, rivals: readonly string[], shapes: readonly string[]) {
  return shapes.map((shape): Ratio => {
    const own = findNs(contest, runtime, form, shape);
    const [fastest] = rivals
      .flatMap((name) => ({ name, ns: findNs(contest, name, "one", shape) ?? Number.NaN }))
      .filter(({ ns }) => Number.isFinite(ns))
      .sort((a, b) => a.ns - b.ns);
    if (own === undefined || fastest === undefined) return { shape, form, ratio: Number.NaN, figures: "no figure" };
    const figures = `${formatNs(own)} against ${formatNs(fastest.ns)} of ${fastest.name}`;
    return { shape, form, ratio: fastest.ns / own, figures };
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

/** How many cells hold, and those that do not, or else the lowest. A cell without a figure does not hold. */
function all(ratios: readonly Ratio[], holds: (ratio: number) => boolean): Pick<Target, "measured" | "isMet"> {
  if (ratios.every(({ ratio }) => Number.isNaN(ratio))) return { measured: "not measured", isMet: false };
  const misses = ratios.filter(({ ratio }) => !holds(ratio));
  const [lowest] = [...ratios].sort((a, b) => a.ratio - b.ratio);
  const shown = misses.length === 0 && lowest !== undefined ? [lowest] : misses;
  const cells = shown.map((ratio) => `${ratio.form}, ${describe(ratio)}`).join("; ");
  const count = `${ratios.length - misses.length} of ${ratios.length} cells`;
  return { measured: `${count}: ${misses.length === 0 ? "at least " : ""}${cells}`, isMet: misses.length === 0 };
}

function describe({ shape, ratio, figures }: Ratio): string {
  return Number.isNaN(ratio) ? `${shape}: ${figures}` : `${shape}: ${formatFigure(ratio)} × (${figures})`;
}
