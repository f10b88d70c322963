/** Findings: settings that a conversion does not carry over unchanged, each with its place. */
import { describeValue } from "../../host/lib/describe.ts";
import { compareText } from "../../host/lib/order.ts";

/**
 * `problem`: the input is invalid or contradicts itself. `lost`: it has a meaning for the peer and no counterpart in
 * Berth. `changed`: the counterpart differs. `unneeded`: it has no counterpart, and Berth does without.
 */
export const LEVELS = ["problem", "lost", "changed", "unneeded"] as const;
type Level = (typeof LEVELS)[number];

export interface Finding {
  readonly source: string;
  readonly object: string;
  readonly level: Level;
  /** `spec.routes[0].gw`; "" is the whole object. */
  readonly field: string;
  /** The value as a phrase. */
  readonly found: string;
  /** The outcome, or the setting that is wanted instead. */
  readonly text: string;
}

/** Fields whose values do not belong into a report. */
const SECRET = /password|passwd|secret|token|credential/i;

/** An object, and the file and line or the cluster that it is from; takes the findings about it. */
export class Place {
  readonly source: string;
  /** `SpiderIPPool "blue"` */
  readonly object: string;
  readonly #list: Finding[];

  constructor(list: Finding[], source: string, object: string) {
    this.#list = list;
    this.source = source;
    this.object = object;
  }

  problem(field: string, value: unknown, text: string): void {
    this.add("problem", field, value, text);
  }

  lost(field: string, value: unknown, text: string): void {
    this.add("lost", field, value, text);
  }

  changed(field: string, value: unknown, text: string): void {
    this.add("changed", field, value, text);
  }

  unneeded(field: string, value: unknown, text: string): void {
    this.add("unneeded", field, value, text);
  }

  /** Adds a finding about a value. */
  add(level: Level, field: string, value: unknown, text: string): void {
    const found = typeof value === "object" && value !== null ? describeJson(value) : describeValue(value);
    this.addPhrase(level, field, SECRET.test(field) ? "a value that is not shown" : found, text);
  }

  /** The same if `found` is a phrase already. */
  addPhrase(level: Level, field: string, found: string, text: string): void {
    const { source, object } = this;
    this.#list.push({ level, source, object, field, found, text });
  }
}

/** A field of an object, such as `spec.ips[0]`. */
export interface PlacedField {
  readonly place: Place;
  readonly field: string;
}

export class Findings {
  readonly #list: Finding[] = [];

  placeOf(source: string, object: string): Place {
    return new Place(this.#list, source, object);
  }

  /** Returns the findings, the worst first, in an order that does not depend on that of the input. */
  sorted(): Finding[] {
    const keyOf = ({ object, field, source, found, text }: Finding) => [object, field, source, found, text].join("\0");
    const ordered = this.#list.toSorted(
      (a, b) => LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level) || compareText(keyOf(a), keyOf(b)),
    );
    return ordered.filter((finding, at) => {
      const before = ordered[at - 1];
      return before === undefined || before.level !== finding.level || keyOf(before) !== keyOf(finding);
    });
  }
}

/** Longest list or object that a finding shows: characters of JSON. */
const MAX_SHOWN_OBJECT = 120;

function describeJson(value: object): string {
  const text = JSON.stringify(value);
  return text.length <= MAX_SHOWN_OBJECT
    ? describeValue(text).slice(1, -1).replaceAll('\\"', '"')
    : describeValue(value);
}
