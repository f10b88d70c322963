/**
 * The one error of detection: the link cannot be asked, so nobody knows whether an address is free or a gateway there.
 */

/**
 * `aborted`: whoever asked has lost interest. `link`: switched off, deleted, or never got a carrier, or lost it while silence counted.
 * `kernel`: a system call failed; it is the cause.
 */
export type DetectionReason = "aborted" | "link" | "kernel";

export class DetectionError extends Error {
  override readonly name = "DetectionError";
  readonly reason: DetectionReason;
  /** Name of the link. */
  readonly link: string;

  constructor(reason: DetectionReason, link: string, what: string, cause?: unknown) {
    super(`Cannot ask on link "${link}": ${what}`, cause === undefined ? undefined : { cause });
    this.reason = reason;
    this.link = link;
  }
}
