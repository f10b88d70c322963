/**
 * The coordinator's decisions for the attachments of this node, for `berthctl explain` and for their DELs, and their
 * requests, for `berthctl check`. Lost when the agent restarts; the rest is in the kernel.
 */
import type { AttachRequest } from "../../cni/request.ts";
import { nameVeth } from "../../coordinator/plan/names.ts";
import type { Attachment } from "../../registry/registry.ts";

/** The decisions of one ADD. */
export interface AttachmentFacts {
  readonly namespace: string;
  readonly pod: string;
  readonly ifName: string;
  readonly mode: string;
  readonly reason: string;
  /** Sentences about the origin of the networks behind the node. */
  readonly networks: readonly string[];
  readonly warnings: readonly string[];
  /** No plugin needs the NIC in its DEL. */
  readonly isNicDispensable: boolean;
}

export class CoordinatedAttachments {
  readonly #facts = new Map<string, AttachmentFacts>();
  readonly #requests = new Map<string, AttachRequest>();

  /** The ADDs that were served, also by an earlier agent if they were {@link adopt}ed, and not deleted since. */
  get requests(): readonly AttachRequest[] {
    return [...this.#requests.values()];
  }

  /** Whether its ADD was served, and it was not deleted since. */
  has(attachment: Attachment): boolean {
    return this.#requests.has(keyOf(attachment));
  }

  /** Whether the name is that of the pair's end on the node of one of {@link requests}. */
  hasPair(name: string): boolean {
    return this.requests.some(({ containerId }) => nameVeth(containerId).host.name === name);
  }

  setRequest(request: AttachRequest): void {
    this.#requests.set(keyOf(request), request);
  }

  /** Takes in an attachment of an earlier agent, unless this one has served it meanwhile. */
  adopt(request: AttachRequest): void {
    if (!this.#requests.has(keyOf(request))) this.setRequest(request);
  }

  set(attachment: Attachment, facts: AttachmentFacts): void {
    this.#facts.set(keyOf(attachment), facts);
  }

  /** False for a NIC that an earlier agent attached. */
  isNicDispensable(attachment: Attachment): boolean {
    return this.#facts.get(keyOf(attachment))?.isNicDispensable ?? false;
  }

  delete(attachment: Attachment): void {
    this.#facts.delete(keyOf(attachment));
    this.#requests.delete(keyOf(attachment));
  }

  /** Returns lines for each NIC of the pod: its mode, the origin of networks, warnings. */
  describe(namespace: string, pod: string): string[] {
    const own = [...this.#facts.values()].filter((each) => each.namespace === namespace && each.pod === pod);
    return own.flatMap(({ ifName, mode, reason, networks, warnings }) => [
      `${ifName} is ${mode} for the coordinator, because ${reason}`,
      ...networks.map((network) => `${ifName}: ${network}`),
      ...warnings.map((warning) => `warning: ${ifName}: ${warning}`),
    ]);
  }
}

export function keyOf({ containerId, ifName }: Attachment): string {
  return `${containerId}/${ifName}`;
}
