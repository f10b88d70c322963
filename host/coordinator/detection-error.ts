/**
 * `aborted`: the caller gave up. `link`: it is down or deleted, never got a carrier, or lost it during the probes. `kernel`: a
 * system call failed; it is the cause.
 */
export type DetectionReason = "aborted" | "link" | "kernel";

export class DetectionError extends Error {
  override readonly name = "DetectionError";
  readonly reason: DetectionReason;
  /** Name of the link. */
  readonly link: string;

  constructor(reason: DetectionReason, link: string, what: string, cause?: unknown) {
    super(`Cannot probe on link "${link}": ${what}`, cause === undefined ? undefined : { cause });
    this.reason = reason;
    this.link = link;
  }
}
