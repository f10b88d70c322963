/** The changes of the records of a kind, from one read of the source to the next. */
import { AgentError } from "./ask-agent.ts";
import type { Source } from "./source.ts";

export interface Followed<T> {
  /** All records, in the source's order. */
  readonly records: readonly T[];
  readonly added: readonly T[];
  readonly changed: readonly T[];
  /** As they were last. */
  readonly removed: readonly T[];
  /** Whether nothing was known before: then all are in `added`. */
  readonly isFirst: boolean;
}

interface Following<T> {
  readonly kind: "pools" | "allocations";
  readonly nameOf: (record: T) => string;
  readonly read: (source: Source) => Promise<readonly T[]>;
  /** Told why no changes come, for a person. */
  readonly note: (text: string) => void;
}

/** Yields the first read, then each one with changes, until the signal ends. An agent that is away is asked again. */
export async function* followRecords<T>(
  source: Source,
  { kind, nameOf, read, note }: Following<T>,
  signal: AbortSignal,
): AsyncGenerator<Followed<T>> {
  let before: ReadonlyMap<string, { readonly record: T; readonly text: string }> | undefined;
  let told = "";
  for await (const _ of source.changes(kind, signal, note)) {
    let records: readonly T[];
    try {
      records = await read(source);
    } catch (error) {
      if (before === undefined || !(error instanceof AgentError)) throw error;
      if (error.message !== told) note(error.message);
      told = error.message;
      continue;
    }
    told = "";
    const known = before ?? new Map();
    const now = new Map(records.map((record) => [nameOf(record), { record, text: JSON.stringify(record) }]));
    const differing = [...now].filter(([name, { text }]) => known.get(name)?.text !== text);
    const [added, changed] = [false, true].map((wasKnown) =>
      differing.filter(([name]) => known.has(name) === wasKnown).map(([, { record }]) => record),
    ) as [T[], T[]];
    const removed = [...known].filter(([name]) => !now.has(name)).map(([, { record }]) => record);
    const isFirst = before === undefined;
    before = now;
    if (isFirst || differing.length + removed.length > 0) yield { records, added, changed, removed, isFirst };
  }
}
