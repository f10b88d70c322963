/**
 * `aborted`: the caller gave up. `link`: it is down or deleted, never got a carrier, or lost it during the probes.
 * `kind`: no link of this kind can be probed, so that trying again is in vain. `kernel`: a system call failed; it is
 * the cause.
 */
export type DetectionReason = "aborted" | "link" | "kind" | "kernel";

/** The remedy for a link whose kind cannot be probed. */
export const UNPROBED_KIND_REMEDY =
  'set "detectIPConflict" and "detectGateway" to false in the coordinator\'s entry of this network';

export class DetectionError extends Error {
  override readonly name = "DetectionError";
  readonly reason: DetectionReason;
  readonly link: string;

  constructor(reason: DetectionReason, link: string, what: string, cause?: unknown) {
    super(`Cannot probe on link "${link}": ${what}`, cause === undefined ? undefined : { cause });
    this.reason = reason;
    this.link = link;
  }
}
