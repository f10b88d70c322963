/** Assembles the parts of conflict detection that live as long as the agent. */
import { setTimeout as sleep } from "node:timers/promises";
import { detectConflict } from "../../coordinator/detect-conflict.ts";
import type { ProbeLink } from "../../coordinator/probe.ts";
import { withQuietLink } from "../../coordinator/quiet-link.ts";
import { observeLink } from "../../kernel/observe-link.ts";
import { AnsweredAttachments } from "./answered-attachments.ts";
import {
  findAskingLink,
  findNodeLink,
  findParentName,
  findPoolLink,
  refuseDefaults,
  withdrawAddress,
} from "./links.ts";
import { QuarantineProber, type QuarantineProberDeps } from "./quarantine-prober.ts";
import type { EarlyStageDeps } from "./verify-addresses.ts";

export interface Detection extends EarlyStageDeps {
  readonly prober: QuarantineProber;
  readonly answered: AnsweredAttachments;
  /** Probes the quarantined addresses that are due. */
  readonly probeQuarantined: () => Promise<void>;
}

/** The links, and the probes on them, as a port. */
export interface DetectionLinks extends EarlyStageDeps {
  /** Returns a link of the node by name; undefined if it cannot probe. */
  readonly findNodeLink: (name: string) => ProbeLink | undefined;
}

/**
 * Time from a conflict to the probe of the pool's gateway, so that the refusal, and ADDs that began with this one,
 * come first: milliseconds.
 */
const GATEWAY_PROBE_DELAY_MS = 100;

const KERNEL_LINKS: DetectionLinks = {
  links: { observe: observeLink, withdraw: withdrawAddress, findParentName, findAskingLink, refuseDefaults },
  detect: detectConflict,
  withQuietLink,
  random: Math.random,
  findNodeLink,
};

export function openDetection(
  given: Pick<QuarantineProberDeps, "registry" | "pools" | "nowMs" | "log" | "metrics" | "audit">,
  { findNodeLink, ...early }: DetectionLinks = KERNEL_LINKS,
): Detection {
  const { registry } = given;
  const { findParentName } = early.links;
  const prober = new QuarantineProber({
    ...given,
    detect: early.detect,
    random: early.random,
    letAnswer: () => sleep(GATEWAY_PROBE_DELAY_MS),
    findNodeLink,
    findPoolLink: (allocation) => findPoolLink({ registry, findParentName, findNodeLink }, allocation),
  });
  const answered = new AnsweredAttachments();
  return { ...early, prober, answered, probeQuarantined: () => prober.probeDue() };
}
