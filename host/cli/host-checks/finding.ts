/** Findings about a host. */
import type { HostFinding } from "../../records/check-record.ts";

export function hostError(check: string, text: string, remedy: string): HostFinding {
  return { check, level: "error", text, remedy };
}

export function hostWarning(check: string, text: string, remedy: string): HostFinding {
  return { check, level: "warning", text, remedy };
}
