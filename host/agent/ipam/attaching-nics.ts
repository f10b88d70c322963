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

interface Answered {
  /** When: milliseconds. */
  readonly atMs: number;
  /** Addresses that were seen on the NIC since. They do not come up any more, and it may lose them (fencing). */
  readonly arrived: Set<string>;
}

export class AttachingNics {
  readonly #nowMs: () => number;
  /** ADDs under way, by NIC. */
  readonly #running = new Map<string, number>();
  /** NICs whose last ADD was answered, the earliest first. */
  readonly #answered = new Map<string, Answered>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Rejects as the ADD does. */
  async run<T>(nic: NicPlace, add: () => Promise<T>): Promise<T> {
    const key = keyOf(nic);
    this.#running.set(key, (this.#running.get(key) ?? 0) + 1);
    try {
      const answer = await add();
      this.#answered.delete(key);
      this.#answered.set(key, { atMs: this.#nowMs(), arrived: new Set() });
      return answer;
    } finally {
      const others = (this.#running.get(key) ?? 1) - 1;
      if (others > 0) this.#running.set(key, others);
      else this.#running.delete(key);
      this.#forgetOld();
    }
  }

  /** Returns whether the address may still come up on the NIC. */
  has(nic: NicPlace & { readonly ip: Ip }): boolean {
    if (nic.netns === undefined || nic.netns === "") return false;
    this.#forgetOld();
    const key = keyOf(nic);
    return this.#running.has(key) || this.#answered.get(key)?.arrived.has(formatIp(nic.ip)) === false;
  }

  /** The same access, to which such a NIC has its address already, unless its network namespace is gone. */
  guard<T extends NicReader>(nics: T): T {
    return {
      ...nics,
      readNetnsStatus: async (nic) => {
        const status = await nics.readNetnsStatus(nic);
        if (status === "inUse") this.#answered.get(keyOf(nic))?.arrived.add(formatIp(nic.ip));
        return status !== "gone" && this.has(nic) ? "inUse" : status;
      },
    };
  }

  #forgetOld(): void {
    for (const [key, { atMs }] of this.#answered) {
      if (this.#nowMs() - atMs < NIC_COMING_UP_MS) return;
      this.#answered.delete(key);
    }
  }
}

function keyOf({ netns = "", ifName }: NicPlace): string {
  return `${netns} ${ifName}`;
}
