/** Assembles the parts of conflict detection that live as long as the agent. */
import { detectConflict } from "../../coordinator/detect-conflict.ts";
import { withQuietLink } from "../../coordinator/quiet-link.ts";
import { observeLink } from "../../kernel/observe-link.ts";
import { findAskingLink, findNodeLink, findParentName, findPoolLink, withdrawAddress } from "./links.ts";
import { QuarantineProber, type QuarantineProberDeps } from "./quarantine-prober.ts";
import { VerifiedAttachments } from "./verified-attachments.ts";
import type { EarlyStageDeps, NicLinks } from "./verify-addresses.ts";

export interface Detection extends EarlyStageDeps {
  readonly prober: QuarantineProber;
  readonly verified: VerifiedAttachments;
  /** Probes the quarantined addresses that are due. */
  readonly probeQuarantined: () => Promise<void>;
}

const links: NicLinks = { observe: observeLink, withdraw: withdrawAddress, findParentName, findAskingLink };

export function openDetection(
  given: Pick<QuarantineProberDeps, "registry" | "pools" | "nowMs" | "log" | "metrics" | "audit">,
): Detection {
  const engine = { detect: detectConflict, random: Math.random };
  const { registry } = given;
  const prober = new QuarantineProber({
    ...given,
    ...engine,
    findNodeLink,
    findPoolLink: (allocation) => findPoolLink({ registry, findParentName, findNodeLink }, allocation),
  });
  const verified = new VerifiedAttachments();
  return { ...engine, links, withQuietLink, prober, verified, probeQuarantined: () => prober.probeDue() };
}
