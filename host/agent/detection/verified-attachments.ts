/**
 * Which addresses of which attachments were found silent before they were on the NIC: the coordinator need not ask again.
 * Written by claim-verified.ts; forgotten with the DEL. Memory only: after a restart of the agent the coordinator asks itself.
 */
import { equalIp, type Ip } from "../../net/ip.ts";
import type { Attachment } from "../../registry/registry.ts";

export class VerifiedAttachments {
  readonly #addresses = new Map<string, readonly Ip[]>();
  readonly #shared = new Map<string, readonly Ip[]>();

  /** A repeated ADD asks only for what is not on the NIC yet: the rest was found silent before. */
  add(attachment: Attachment, addresses: readonly Ip[]): void {
    const before = this.#addresses.get(keyOf(attachment)) ?? [];
    this.#addresses.set(keyOf(attachment), [...before, ...addresses]);
  }

  /** Another pod has them, too: nobody is to be asked for them, and nobody told of them. */
  share(attachment: Attachment, addresses: readonly Ip[]): void {
    this.#shared.set(keyOf(attachment), addresses);
  }

  /** Whether the address need not be asked for: it was found silent on this NIC, or is shared. */
  has(attachment: Attachment, ip: Ip): boolean {
    const found = this.#addresses.get(keyOf(attachment))?.some((each) => equalIp(each, ip)) ?? false;
    return found || this.isShared(attachment, ip);
  }

  isShared(attachment: Attachment, ip: Ip): boolean {
    return this.#shared.get(keyOf(attachment))?.some((each) => equalIp(each, ip)) ?? false;
  }

  delete(attachment: Attachment): void {
    this.#addresses.delete(keyOf(attachment));
    this.#shared.delete(keyOf(attachment));
  }

  get size(): number {
    return this.#addresses.size;
  }
}

function keyOf({ containerId, ifName }: Attachment): string {
  return `${containerId}/${ifName}`;
}
