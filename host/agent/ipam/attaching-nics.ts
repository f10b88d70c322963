/**
 * The NICs whose ADD is under way or was answered a moment ago: their addresses may come up at any time, so that a
 * NIC does not have its address proves nothing yet (retention).
 */
import type { NetnsStatus } from "../../ipam/leak.ts";
import { formatIp, type Ip } from "../../net/ip.ts";
import type { Allocation } from "../../registry/registry.ts";

/** Longest time that a main plugin may take from the answer of an ADD until the NIC has its addresses: milliseconds. */
export const NIC_COMING_UP_MS = 5_000;

/** Reads whether a NIC has its address. */
interface NicReader {
  readonly readNetnsStatus: (nic: Pick<Allocation, "netns" | "netnsCookie" | "ifName" | "ip">) => Promise<NetnsStatus>;
}

/** A NIC by its network namespace: a path. */
interface NicPlace {
  readonly netns?: string | undefined;
  readonly ifName: string;
}

interface NicAddress extends NicPlace {
  readonly ip: Ip;
}

export class AttachingNics {
  readonly #nowMs: () => number;
  /** ADDs under way, by NIC. */
  readonly #running = new Map<string, number>();
  /** When the last ADD was answered, the earliest first: milliseconds. */
  readonly #answeredMs = new Map<string, number>();
  /**
   * By NIC: addresses that it has been seen to have since that answer. They do not come up any more, and it may lose
   * them (fencing).
   */
  readonly #arrived = new Map<string, Set<string>>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Rejects as the ADD does. */
  async run<T>(nic: NicPlace, add: () => Promise<T>): Promise<T> {
    const key = keyOf(nic);
    this.#running.set(key, (this.#running.get(key) ?? 0) + 1);
    try {
      const answer = await add();
      this.#forget(key);
      this.#answeredMs.set(key, this.#nowMs());
      return answer;
    } finally {
      const others = (this.#running.get(key) ?? 1) - 1;
      if (others > 0) this.#running.set(key, others);
      else this.#running.delete(key);
      this.#forgetOld();
    }
  }

  /** Returns whether the address may still come up on the NIC. */
  has(nic: NicAddress): boolean {
    if (nic.netns === undefined || nic.netns === "") return false;
    this.#forgetOld();
    const key = keyOf(nic);
    if (this.#running.has(key)) return true;
    return this.#answeredMs.has(key) && this.#arrived.get(key)?.has(formatIp(nic.ip)) !== true;
  }

  /** The same access, to which such a NIC has its address already, unless its network namespace is gone. */
  guard<T extends NicReader>(nics: T): T {
    return {
      ...nics,
      readNetnsStatus: async (nic) => {
        const status = await nics.readNetnsStatus(nic);
        if (status === "inUse") this.#noteArrived(nic);
        return status !== "gone" && this.has(nic) ? "inUse" : status;
      },
    };
  }

  #noteArrived(nic: NicAddress): void {
    const key = keyOf(nic);
    if (!this.#answeredMs.has(key)) return;
    this.#arrived.getOrInsertComputed(key, () => new Set()).add(formatIp(nic.ip));
  }

  #forgetOld(): void {
    for (const [key, answeredMs] of this.#answeredMs) {
      if (this.#nowMs() - answeredMs < NIC_COMING_UP_MS) return;
      this.#forget(key);
    }
  }

  #forget(key: string): void {
    this.#answeredMs.delete(key);
    this.#arrived.delete(key);
  }
}

function keyOf({ netns = "", ifName }: NicPlace): string {
  return `${netns} ${ifName}`;
}
