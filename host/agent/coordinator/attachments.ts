/**
 * What the coordinator decided for the attachments of this node, for `berthctl explain`. Of this agent's life only: the kernel has the rest.
 */
import type { Attachment } from "../../registry/registry.ts";

/** One ADD, as a person would ask about it. */
export interface AttachmentFacts {
  readonly namespace: string;
  readonly pod: string;
  readonly ifName: string;
  readonly mode: string;
  readonly reason: string;
  /** Where the networks behind the node come from; sentences. */
  readonly networks: readonly string[];
  readonly warnings: readonly string[];
}

export class CoordinatedAttachments {
  readonly #facts = new Map<string, AttachmentFacts>();

  set(attachment: Attachment, facts: AttachmentFacts): void {
    this.#facts.set(keyOf(attachment), facts);
  }

  delete(attachment: Attachment): void {
    this.#facts.delete(keyOf(attachment));
  }

  /** Lines for a person, some for each NIC of the pod: how it was taken, where networks come from, warnings. */
  describe(namespace: string, pod: string): string[] {
    const own = [...this.#facts.values()].filter((each) => each.namespace === namespace && each.pod === pod);
    return own.flatMap(({ ifName, mode, reason, networks, warnings }) => [
      `${ifName} is ${mode} for the coordinator, because ${reason}`,
      ...networks.map((network) => `${ifName}: ${network}`),
      ...warnings.map((warning) => `warning: ${ifName}: ${warning}`),
    ]);
  }
}

function keyOf({ containerId, ifName }: Attachment): string {
  return `${containerId}/${ifName}`;
}
