/**
 * The addresses of pods' NICs, as the runtimes saw them: the witness for "no address twice", independent of Berth. An
 * address is live from the answer to its ADD until its DEL is sent. A fault is recorded as a sentence at once.
 * Effects: none but its own record.
 */
import type { LabPod } from "./objects.ts";
import type { Witness } from "./witness.ts";

export interface Attachment {
  readonly pod: LabPod;
  readonly ifName: string;
  readonly containerId: string;
  /** Without length. */
  readonly addresses: readonly string[];
}

export class Ledger {
  /** Is told the same. */
  witness: Witness | undefined;
  readonly #live = new Map<string, Attachment>();
  readonly #breaches: string[] = [];

  /** Breaches of invariant 1, the oldest first. */
  get breaches(): readonly string[] {
    return this.#breaches;
  }

  live(): readonly Attachment[] {
    return [...new Set(this.#live.values())];
  }

  find(pod: LabPod, ifName: string): Attachment | undefined {
    return this.live().find((each) => each.pod.uid === pod.uid && each.ifName === ifName);
  }

  /** An ADD was answered. */
  hold(attachment: Attachment): void {
    const before = this.find(attachment.pod, attachment.ifName);
    if (before !== undefined)
      this.#breaches.push(`${describe(attachment)} was attached although ${describe(before)} still is`);
    for (const address of attachment.addresses) {
      const other = this.#live.get(address);
      if (other !== undefined && other.pod.uid !== attachment.pod.uid)
        this.#breaches.push(`${address} was given to ${describe(attachment)} while it is live at ${describe(other)}`);
      this.#live.set(address, attachment);
    }
  }

  /** A DEL is about to be sent, or the machine has lost power. */
  drop(attachment: Attachment): void {
    this.witness?.leaving(attachment.pod.uid, attachment.ifName);
    for (const address of attachment.addresses) if (this.#live.get(address) === attachment) this.#live.delete(address);
  }
}

export function describe({ pod, ifName }: Pick<Attachment, "pod" | "ifName">): string {
  return `${pod.namespace}/${pod.name} (${pod.uid.slice(0, 8)}, ${ifName}) on ${pod.node}`;
}
