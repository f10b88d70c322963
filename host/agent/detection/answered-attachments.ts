/**
 * The addresses of attachments that were probed before they were on the NIC: the coordinator need not probe them again. In memory only: after a restart
 * of the agent the coordinator probes.
 */
import { equalIp, type Ip } from "../../net/ip.ts";
import type { Attachment } from "../../registry/registry.ts";

export class VerifiedAttachments {
  readonly #addresses = new Map<string, readonly Ip[]>();
  readonly #shared = new Map<string, readonly Ip[]>();

  /** Adds to the addresses of earlier calls: a repeated ADD probes only addresses that are not on the NIC yet. */
  add(attachment: Attachment, addresses: readonly Ip[]): void {
    const before = this.#addresses.get(keyOf(attachment)) ?? [];
    this.#addresses.set(keyOf(attachment), [...before, ...addresses]);
  }

  /** Another pod has the addresses, too: they are neither probed nor announced. */
  share(attachment: Attachment, addresses: readonly Ip[]): void {
    this.#shared.set(keyOf(attachment), addresses);
  }

  /** Returns whether the address need not be probed: it was silent before, or is shared. */
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
