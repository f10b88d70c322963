/** The tables of docs/audit-log.md. */
import { ADDRESS_SOURCES, AUDIT_EVENTS, auditLineSchema } from "../../../host/records/audit-line.ts";

function meanings(key: string, texts: Readonly<Record<string, string>>): string[] {
  const rows = Object.entries(texts).map(([value, meaning]) => `| \`${value}\` | ${meaning} |`);
  return ["", `| \`${key}\` | Meaning |`, "|---|---|", ...rows];
}

export function auditLogTables(): string {
  const keys = Object.entries(auditLineSchema.shape);
  const described = Object.fromEntries(keys.map(([key, field]) => [key, field.meta()?.description ?? ""]));
  return [
    ...meanings("key", described).slice(1),
    ...meanings("audit", AUDIT_EVENTS),
    ...meanings("sources", ADDRESS_SOURCES),
    "",
  ].join("\n");
}
