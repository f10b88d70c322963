/**
 * The parts of conflict detection that live as long as the agent, put together.
 * Called by agent.ts; the IPAM plugin, the coordinator and the janitor use them.
 * Effects: none by itself; those of the engine when it is used.
 */
import { detectConflict } from "../../coordinator/detect-conflict.ts";
import { withQuietLink } from "../../coordinator/quiet-link.ts";
import { observeLink } from "../../kernel/observe-link.ts";
import type { DetectionTools } from "../ipam/claim-verified.ts";
import { findAskingLink, findNodeLink, findParentName, withdrawAddress } from "./node-link.ts";
import { findPoolLink } from "./pool-link.ts";
import { probeQuarantined } from "./probe-quarantined.ts";
import { QuarantineProber, type QuarantineTools } from "./quarantine-prober.ts";
import { VerifiedAttachments } from "./verified-attachments.ts";
import type { NicLinks } from "./verify-addresses.ts";

export interface Detection extends Omit<DetectionTools, "settingsFor" | "isCoordinated"> {
  /** Asks for what is in quarantine and due. */
  readonly probeQuarantined: () => Promise<void>;
}

const links: NicLinks = { observe: observeLink, withdraw: withdrawAddress, findParentName, findAskingLink };

export function openDetection(given: Pick<QuarantineTools, "registry" | "pools" | "nowMs" | "log">): Detection {
  const engine = { detect: detectConflict, random: Math.random };
  const { registry } = given;
  const tools: QuarantineTools = {
    ...{ ...given, ...engine, findNodeLink },
    findPoolLink: (allocation) => findPoolLink({ registry, findParentName, findNodeLink }, allocation),
  };
  const keeper = new QuarantineProber(tools);
  const verified = new VerifiedAttachments();
  return { ...engine, links, withQuietLink, keeper, verified, probeQuarantined: () => probeQuarantined(tools, keeper) };
}
