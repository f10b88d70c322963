/** The tables of docs/audit-log.md. */
import { ADDRESS_SOURCES, AUDIT_EVENTS, auditLineSchema } from "../../../host/records/audit-line.ts";
import { referenceTable } from "./reference-table.ts";

function meanings(key: string, texts: Readonly<Record<string, string>>): string[] {
  const rows = Object.entries(texts).map(([value, meaning]) => `| \`${value}\` | ${meaning} |`);
  return ["", `| \`${key}\` | Meaning |`, "|---|---|", ...rows];
}

export function auditLogTables(): string {
  return [
    referenceTable(auditLineSchema),
    ...meanings("audit", AUDIT_EVENTS),
    ...meanings("sources", ADDRESS_SOURCES),
    "",
  ].join("\n");
}
