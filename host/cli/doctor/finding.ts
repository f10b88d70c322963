/** What `berthctl doctor` finds. */

export interface DoctorFinding {
  readonly check: string;
  /** `error`: pods get no network. */
  readonly level: "error" | "warning";
  readonly text: string;
  readonly remedy: string;
}

export function error(check: string, text: string, remedy: string): DoctorFinding {
  return { check, level: "error", text, remedy };
}

export function warning(check: string, text: string, remedy: string): DoctorFinding {
  return { check, level: "warning", text, remedy };
}
