/** Rows as CSV (RFC 4180) and JSON. */
import { escapeUnprintable, printable } from "../../../../host/lib/printable.ts";
import { type AddressRow, type Change, FIELDS, FORM_VERSION } from "./address-row.ts";

/** Spreadsheets take a cell that begins with one of these for a formula. */
const FORMULA = /^[=+\-@]/;

function csvCell(text: string): string {
  const shown = printable(FORMULA.test(text) ? `'${text}` : text);
  return /[",]/.test(shown) ? `"${shown.replaceAll('"', '""')}"` : shown;
}

function csvLine(cells: readonly string[]): string {
  return `${cells.map(csvCell).join(",")}\r\n`;
}

/** `isWatched`: with a first column `change`. */
export function csvHeader(isWatched: boolean): string {
  return csvLine(isWatched ? ["change", ...FIELDS] : FIELDS);
}

export function csvRow(row: AddressRow, change?: Change): string {
  const cells = FIELDS.map((field) => row[field]);
  return csvLine(change === undefined ? cells : [change, ...cells]);
}

/** Without unknown fields. */
function jsonObject(row: AddressRow): Record<string, string | number> {
  const known = FIELDS.filter((field) => row[field] !== "");
  return Object.fromEntries(known.map((field) => [field, field === "prefixLength" ? Number(row[field]) : row[field]]));
}

/** Returns one document, with a line for each address. */
export function jsonDocument(rows: readonly AddressRow[]): string {
  const lines = rows.map((row) => escapeUnprintable(JSON.stringify(jsonObject(row))));
  return `{"version":${FORM_VERSION},"addresses":[\n${lines.join(",\n")}${lines.length === 0 ? "" : "\n"}]}\n`;
}

/** Returns a document of its own on one line. */
export function jsonLine(row: AddressRow, change: Change): string {
  return `${escapeUnprintable(JSON.stringify({ version: FORM_VERSION, change, ...jsonObject(row) }))}\n`;
}
