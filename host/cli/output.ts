/**
 * Prints records in every format: a table with columns that are described once per kind, names, JSON, YAML. Texts
 * from outside never reach the terminal unescaped.
 */
import { escapeUnprintable, printable, printableLines } from "../lib/printable.ts";
import { paint, type Style } from "./text.ts";

export const FORMATS = ["table", "wide", "name", "json", "yaml"] as const;
export type Format = (typeof FORMATS)[number];

/** One column of a table. */
interface Column<T> {
  readonly title: string;
  /** The cell; undefined and "" are shown as "-". */
  readonly cell: (record: T) => string | undefined;
  /** Numbers are aligned on the right. */
  readonly isNumber?: true;
  /** Only with `-o wide`. */
  readonly isWide?: true;
  /** Only if a record has it. */
  readonly isOptional?: true;
  readonly style?: (record: T) => Style | undefined;
}

/** The display of records of one kind. */
export interface Table<T> {
  /** Names the record on the command line; unique. */
  readonly nameOf: (record: T) => string;
  readonly columns: readonly Column<T>[];
}

/** A line for a person, which a terminal may show in a colour. */
export type Line = string | { readonly text: string; readonly style: Style };

interface OutputOptions {
  readonly format: Format;
  readonly hasHeaders: boolean;
  /** Whether the reader is a terminal that shows colours. */
  readonly isColored: boolean;
  readonly write: (text: string) => void;
}

export class Output {
  readonly #options: OutputOptions;
  /** Widths of the table that was printed, for the lines that follow it. */
  #widths: readonly number[] = [];
  /** Titles of its optional columns that no record has. */
  #hidden: ReadonlySet<string> = new Set();

  constructor(options: OutputOptions) {
    this.#options = options;
  }

  get format(): Format {
    return this.#options.format;
  }

  /** Whether all is printed as one document, for a program. */
  get isDocument(): boolean {
    return this.format === "json" || this.format === "yaml";
  }

  /** Whether lists are tables, for a person. */
  get isTable(): boolean {
    return this.format === "table" || this.format === "wide";
  }

  /** Whether they have titles. */
  get hasTitles(): boolean {
    return this.#options.hasHeaders && this.isTable;
  }

  /**
   * Prints the records of a kind; `heading` is a line above a table, `canGrow` says that {@link more} may follow. JSON
   * and YAML are one list.
   */
  async list<T>(table: Table<T>, records: readonly T[], heading?: string, canGrow = false): Promise<void> {
    const { format, hasHeaders } = this.#options;
    if (this.isDocument) return this.value(records);
    if (format === "name") return this.#lines(records.map((record) => printable(table.nameOf(record))));
    this.#hideUnused(table, records, canGrow);
    const columns = this.#columnsOf(table);
    const rows = rowsOf(columns, records);
    const titles = columns.map(({ title }) => title);
    this.#widths = titles.map((title, at) =>
      rows.reduce((most, row) => Math.max(most, row[at]?.length ?? 0), hasHeaders ? title.length : 0),
    );
    if (hasHeaders && heading !== undefined) this.#lines([this.#paint(printableLines(heading), "dim")]);
    if (hasHeaders) this.#lines([this.#line(columns, titles)]);
    this.#lines(rows.map((row, at) => this.#line(columns, row, records[at])));
  }

  /** Prints more records of a list, as lines of its table, or each as a JSON object on a line or a YAML document. */
  async more<T>(table: Table<T>, records: readonly T[]): Promise<void> {
    const { format } = this.#options;
    if (format === "json") return this.#lines(records.map((record) => escapeUnprintable(JSON.stringify(record))));
    if (format === "yaml") {
      for (const record of records) this.#options.write(`---\n${await formatYaml(record)}`);
      return;
    }
    if (format === "name") return this.#lines(records.map((record) => printable(table.nameOf(record))));
    const columns = this.#columnsOf(table);
    this.#lines(rowsOf(columns, records).map((row, at) => this.#line(columns, row, records[at])));
  }

  /** Prints a value as JSON or YAML. */
  async value(value: unknown): Promise<void> {
    const json = (): string => `${escapeUnprintable(JSON.stringify(value, undefined, 2))}\n`;
    this.#options.write(this.format === "yaml" ? await formatYaml(value) : json());
  }

  /** Prints lines for a person, and instead of them the value with `-o json` and `-o yaml`. */
  async report(lines: readonly Line[], value: unknown): Promise<void> {
    if (this.isDocument) return this.value(value);
    const plain = lines.map((line) => (typeof line === "string" ? { text: line } : line));
    this.#lines(plain.map((line) => this.#styled(line)));
  }

  /** Prints text for a person; it may have several lines. */
  text(text: string, style?: Style): void {
    this.#options.write(`${this.#styled({ text, style })}\n`);
  }

  /** Prints a document unchanged, whose writer has escaped text from outside. */
  document(text: string): void {
    this.#options.write(text);
  }

  #styled({ text, style }: { readonly text: string; readonly style?: Style | undefined }): string {
    const shown = printableLines(text);
    return style === undefined ? shown : this.#paint(shown, style);
  }

  /** Prints rows of cells for a program, with tabs between them. */
  tabbed(rows: readonly (readonly string[])[]): void {
    this.#lines(rows.map((cells) => cells.map(printable).join("\t")));
  }

  #lines(lines: readonly string[]): void {
    // One string of a hundred thousand lines is cheap; a write for each is not.
    if (lines.length > 0) this.#options.write(`${lines.join("\n")}\n`);
  }

  /** An empty list that grows may be followed by records with optional values. */
  #hideUnused<T>({ columns }: Table<T>, records: readonly T[], canGrow: boolean): void {
    const unused = columns.filter(({ isOptional, cell }) => isOptional && records.every((record) => !cell(record)));
    this.#hidden = new Set(canGrow && records.length === 0 ? [] : unused.map(({ title }) => title));
  }

  #columnsOf<T>({ columns }: Table<T>): readonly Column<T>[] {
    const isAll = this.#options.format === "wide";
    return columns.filter(({ title, isWide }) => !this.#hidden.has(title) && (isAll || isWide !== true));
  }

  #line<T>(columns: readonly Column<T>[], cells: readonly string[], record?: T): string {
    const shown = columns.map(({ isNumber, style }, at) => {
      const cell = cells[at] ?? "";
      const blanks = " ".repeat(Math.max(0, (this.#widths[at] ?? 0) - cell.length));
      const wanted = record === undefined ? undefined : style?.(record);
      const painted = wanted === undefined ? cell : this.#paint(cell, wanted);
      return isNumber === true ? `${blanks}${painted}` : `${painted}${blanks}`;
    });
    return shown.join("  ").trimEnd();
  }

  #paint(text: string, style: Style): string {
    return this.#options.isColored ? paint(text, style) : text;
  }
}

function rowsOf<T>(columns: readonly Column<T>[], records: readonly T[]): string[][] {
  return records.map((record) => columns.map(({ cell }) => printable(cell(record) || "-")));
}

/** Texts with unprintable characters are quoted, because only quoted text has escapes. */
async function formatYaml(value: unknown): Promise<string> {
  const { Document, Scalar, visit } = await import("yaml");
  const document = new Document(value, { aliasDuplicateObjects: false });
  visit(document, {
    Scalar: (_, node) => {
      if (typeof node.value === "string" && escapeUnprintable(node.value.replaceAll("\n", "\0")) !== node.value)
        node.type = Scalar.QUOTE_DOUBLE;
    },
  });
  return escapeUnprintable(document.toString({ lineWidth: 0 }));
}
