/** Patterns of pool names: `*` matches any text, `?` one character, `[a-c]` one of these, `[!a-c]` one other. */

/** Returns whether the text is a pattern rather than a plain name. */
export function isPattern(text: string): boolean {
  return /[*?[\]]/.test(text);
}

/** One step of a pattern: any text, or one character that the function accepts. */
type Step = "*" | ((character: string) => boolean);

const CLASS = /^\[(!?)([^[\]]+)\]/;

/** Returns the step for the inside of `[..]`, with `-` at an end as itself. Undefined for a reversed range. */
function classOf(inside: string, negated: boolean): Step | undefined {
  const ranges: [first: string, last: string][] = [];
  for (let at = 0; at < inside.length; ) {
    const first = inside.charAt(at);
    const isRange = inside.charAt(at + 1) === "-" && at + 2 < inside.length;
    const last = isRange ? inside.charAt(at + 2) : first;
    if (last < first) return undefined;
    ranges.push([first, last]);
    at += isRange ? 3 : 1;
  }
  return (character) => ranges.some(([first, last]) => first <= character && character <= last) !== negated;
}

/** Returns the steps of a pattern; undefined if a bracket is unmatched or empty, or has a reversed range. */
function parsePattern(pattern: string): Step[] | undefined {
  const steps: Step[] = [];
  for (let rest = pattern; rest !== ""; ) {
    const [text, not, inside] = CLASS.exec(rest) ?? [rest.charAt(0)];
    const step = inside === undefined ? stepOf(text) : classOf(inside, not === "!");
    if (step === undefined) return undefined;
    steps.push(step);
    rest = rest.slice(text.length);
  }
  return steps;
}

function stepOf(text: string): Step | undefined {
  if (text === "*") return "*";
  if (text === "?") return () => true;
  return text === "[" || text === "]" ? undefined : (character) => character === text;
}

/** Returns whether the text is a well-formed pattern. A plain name is one. */
export function isWellFormedPattern(text: string): boolean {
  return parsePattern(text) !== undefined;
}

/** Returns a function that says whether a whole name matches. A malformed pattern matches nothing. */
export function compilePattern(pattern: string): (name: string) => boolean {
  const steps = parsePattern(pattern);
  if (steps === undefined) return () => false;
  const automaton = new Automaton(steps);
  return (name) => automaton.accepts(name);
}

/**
 * The steps as an automaton whose states are bits, all followed at once (Navarro, Raffinot: Flexible Pattern Matching
 * in Strings, §4.2): state n is reached when the first n steps that take a character have taken one each.
 *
 *   pattern  p*1     state 0 --p--> 1 --1--> 2     stays: 1, where the star is
 *
 * A character of the name costs one step for 32 of the pattern, whatever that is: tenants write patterns, and an
 * agent compares each with the names of all pools.
 */
class Automaton {
  readonly #takers: readonly Exclude<Step, "*">[];
  readonly #words: number;
  /** States that any character leaves as they are. */
  readonly #stays: Int32Array;
  /** By UTF-16 unit: the states to which the character leads. */
  readonly #entered: Int32Array[] = [];

  constructor(steps: readonly Step[]) {
    this.#takers = steps.filter((step) => step !== "*");
    this.#words = (this.#takers.length >> 5) + 1;
    this.#stays = new Int32Array(this.#words);
    let taken = 0;
    for (const step of steps) {
      if (step === "*") setBit(this.#stays, taken);
      else taken++;
    }
  }

  accepts(name: string): boolean {
    const last = this.#takers.length;
    if (name.length < last) return false;
    const stays = this.#stays;
    const states = new Int32Array(this.#words);
    states[0] = 1;
    for (let at = 0; at < name.length; at++) {
      const entered = this.#enteredBy(name.charCodeAt(at));
      let carried = 0;
      for (let word = 0; word < states.length; word++) {
        const before = states[word] as number;
        states[word] = (((before << 1) | carried) & (entered[word] as number)) | (before & (stays[word] as number));
        carried = before >>> 31;
      }
    }
    return ((states[last >> 5] as number) & (1 << (last & 31))) !== 0;
  }

  #enteredBy(unit: number): Int32Array {
    const known = this.#entered[unit];
    if (known !== undefined) return known;
    const bits = new Int32Array(this.#words);
    const character = String.fromCharCode(unit);
    for (const [at, takes] of this.#takers.entries()) if (takes(character)) setBit(bits, at + 1);
    this.#entered[unit] = bits;
    return bits;
  }
}

function setBit(bits: Int32Array, at: number): void {
  bits[at >> 5] = (bits[at >> 5] as number) | (1 << (at & 31));
}
