/**
 * The record that an ADD of `berth` leaves for the coordinator of the same chain, which comes a moment later: the
 * addresses of the answer, so that the registry need not be asked, those that were probed before they were on the
 * NIC, which need not be probed again, and the MAC of the NIC. In memory only: after a restart of the agent the
 * coordinator asks and probes.
 */
import { BoundedMap } from "../../lib/bounded-map.ts";
import { equalIp, type Ip } from "../../net/ip.ts";
import type { Mac } from "../../net/mac.ts";
import type { Allocation, Attachment } from "../../registry/registry.ts";

/** Time for which the coordinator trusts the answer of an ADD of `berth` without asking the registry: milliseconds. */
export const ANSWER_VALID_MS = 2_000;

/** Most answers that wait for a coordinator, which not every chain has. */
export const MAX_REMEMBERED_ANSWERS = 256;

interface Answered {
  readonly allocations: readonly Allocation[];
  readonly untilMs: number;
}

/** The MACs of a NIC that `berth` knows when it answers. */
interface AnsweredMac {
  /** The MAC that the runtime hands to the main plugin. */
  readonly requested: Mac | undefined;
  /**
   * The MAC of the NIC; undefined if the NIC does not exist yet. Another one later was set by a plugin between
   * `berth` and the coordinator.
   */
  readonly found: Mac | undefined;
}

export class AnsweredAttachments {
  readonly #answered = new BoundedMap<string, Answered>(MAX_REMEMBERED_ANSWERS);
  readonly #addresses = new Map<string, readonly Ip[]>();
  readonly #macs = new BoundedMap<string, AnsweredMac>(MAX_REMEMBERED_ANSWERS);
  readonly #shared = new Map<string, readonly Ip[]>();
  readonly #nowMs: () => number;

  /** `nowMs`: a clock that does not jump. */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** The allocations are Bound to the attachment, and are answered now. */
  answer(attachment: Attachment, allocations: readonly Allocation[]): void {
    this.#answered.set(keyOf(attachment), { allocations, untilMs: this.#nowMs() + ANSWER_VALID_MS });
  }

  /** Returns, once, the addresses answered a moment ago; undefined if the registry has to be asked. */
  takeAnswer(attachment: Attachment): readonly Allocation[] | undefined {
    const found = this.#answered.get(keyOf(attachment));
    this.#answered.delete(keyOf(attachment));
    return found !== undefined && this.#nowMs() < found.untilMs ? found.allocations : undefined;
  }

  setMac(attachment: Attachment, mac: AnsweredMac): void {
    this.#macs.set(keyOf(attachment), mac);
  }

  macOf(attachment: Attachment): AnsweredMac | undefined {
    return this.#macs.get(keyOf(attachment));
  }

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
    this.#answered.delete(keyOf(attachment));
    this.#addresses.delete(keyOf(attachment));
    this.#shared.delete(keyOf(attachment));
    this.#macs.delete(keyOf(attachment));
  }

  get size(): number {
    return this.#addresses.size;
  }
}

function keyOf({ containerId, ifName }: Attachment): string {
  return `${containerId}/${ifName}`;
}
