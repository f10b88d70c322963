/** Prints a list once, or with `--watch` again and again: first all of it, then the changes. */
import type { Call, OutputFlags } from "./command-line.ts";
import { ExitCode, ProblemError } from "./exit-code.ts";
import { followRecords } from "./follow-records.ts";
import type { Table } from "./output.ts";
import type { Source } from "./source.ts";

interface List<T> {
  readonly kind: "pools" | "allocations";
  readonly table: Table<T>;
  /** Names that the user wrote; each must have a record. */
  readonly names: readonly string[];
  readonly read: (source: Source) => Promise<readonly T[]>;
  /** Returns the record as it is shown when it has gone. */
  readonly gone: (record: T) => T;
  /** Says why there is no record, or rejects with ProblemError if a word of the user's is wrong. */
  readonly explainEmpty?: (source: Source) => Promise<string>;
}

/** Rejects with ProblemError if a name has no record. */
export async function showList<T>(call: Call, { watch = false }: OutputFlags, list: List<T>): Promise<ExitCode> {
  const { table, read, explainEmpty } = list;
  const source = await call.source();
  if (watch) return watchList(call, source, list);
  const [records, scope] = await Promise.all([read(source), call.out.hasTitles ? source.scope(list.kind) : undefined]);
  await call.out.list(table, records, scope);
  const reason = records.length === 0 ? await explainEmpty?.(source) : undefined;
  if (reason !== undefined && call.out.hasTitles) call.note(reason);
  requireNames(list, records);
  return ExitCode.Success;
}

function requireNames<T>({ kind, table, names }: List<T>, records: readonly T[]): void {
  const missing = names.filter((name) => !records.some((record) => table.nameOf(record) === name));
  const quoted = missing.map((name) => JSON.stringify(name)).join(", ");
  if (missing.length > 0) throw new ProblemError(`There is no ${kind.replace(/s$/, "")} ${quoted}`);
}

async function watchList<T>({ out, note, signal }: Call, source: Source, list: List<T>): Promise<ExitCode> {
  const { kind, table, gone } = list;
  const following = { ...list, nameOf: table.nameOf, note };
  for await (const { records, added, changed, removed, isFirst } of followRecords(source, following, signal)) {
    if (!isFirst) await out.more(table, [...changed, ...added, ...removed.map(gone)]);
    else if (out.isDocument) await out.more(table, records);
    else await out.list(table, records, out.hasTitles ? await source.scope(kind) : undefined, true);
    if (isFirst) requireNames(list, records);
  }
  return ExitCode.Success;
}
