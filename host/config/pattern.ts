/** Patterns of pool names: `*` matches any text, `?` one character, `[a-c]` one of these, `[!a-c]` one other. */

/** Returns whether the text is a pattern rather than a plain name. */
export function isPattern(text: string): boolean {
  return /[*?[\]]/.test(text);
}

/** One step of a pattern: any text, or one character that the function accepts. */
type Step = "*" | ((character: string) => boolean);

const CLASS = /^\[(!?)([^[\]]+)\]/;

/** Returns the step for the inside of `[..]`: characters and ranges. A `-` at an end stands for itself. Undefined for a reversed range. */
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

/** Returns a function that says whether a whole name matches. A malformed pattern matches nothing. Takes at most pattern length times name length steps. */
export function compilePattern(pattern: string): (name: string) => boolean {
  const steps = parsePattern(pattern);
  if (steps === undefined) return () => false;
  return (name) => matchSteps(steps, name);
}

/** Backtracks to the latest `*` only: an earlier one could not match more. */
function matchSteps(steps: readonly Step[], name: string): boolean {
  let step = 0;
  let star = -1;
  let starAt = 0;
  for (let at = 0; at < name.length; ) {
    const current = steps[step];
    if (current === "*") {
      star = step++;
      starAt = at;
    } else if (current?.(name.charAt(at))) {
      step++;
      at++;
    } else if (star >= 0) {
      step = star + 1;
      at = ++starAt;
    } else {
      return false;
    }
  }
  return steps.slice(step).every((remaining) => remaining === "*");
}
