/**
 * Which address owners were seen: read from the API server once, by UID in their namespace, when an address is claimed
 * for one of their members. Other statements about an owner, such as a pod's owner reference, are no proof of it.
 */
import { BoundedMap } from "../../lib/bounded-map.ts";
import type { Log } from "../../lib/log.ts";
import type { Workload } from "../../resources/member.ts";
import type { Journal } from "../journal.ts";
import type { LiveStatus } from "./decide.ts";

/** Most owners that are remembered. One that is claimed for again is read again. */
const MAX_OWNERS = 4_096;

interface SeenOwnersOptions {
  readonly journal: Pick<Journal, "noteOwner" | "readOwners">;
  readonly live: Pick<LiveStatus, "readOwner">;
  readonly log: Log;
}

export class SeenOwners {
  readonly #options: SeenOwnersOptions;
  readonly #known = new BoundedMap<string, boolean>(MAX_OWNERS);
  readonly #reading = new Map<string, Promise<void>>();

  constructor(options: SeenOwnersOptions) {
    this.#options = options;
  }

  /** Takes in the journal's owners. */
  async open(): Promise<void> {
    for (const { key, isSeen } of await this.#options.journal.readOwners()) this.#known.set(key, isSeen);
  }

  /** The API server's history is another one: it may have those again that were not there. */
  forgetMissing(): void {
    for (const [key, isSeen] of this.#known) if (!isSeen) this.#known.delete(key);
  }

  /** Returns undefined if it has not been read yet. */
  isSeen(owner: Workload): boolean | undefined {
    return this.#options.live.readOwner === undefined ? true : this.#known.get(keyOf(owner));
  }

  /** Reads the owner unless it was seen: its kind may be listed again. Resolves when that has ended, in any way. */
  read(owner: Workload): Promise<void> {
    const { readOwner } = this.#options.live;
    const key = keyOf(owner);
    if (readOwner === undefined || this.#known.get(key) === true) return Promise.resolve();
    return this.#reading.getOrInsertComputed(key, () => this.#read(key, readOwner(owner)));
  }

  async #read(key: string, answer: Promise<boolean>): Promise<void> {
    const { journal, log } = this.#options;
    try {
      const isSeen = await answer;
      this.#known.set(key, isSeen);
      await journal.noteOwner(key, isSeen);
    } catch (error) {
      log.debug({ err: error, owner: key }, "Reading the owner of retained addresses failed; retrying");
    } finally {
      this.#reading.delete(key);
    }
  }
}

/** A pod may name a wrong owner with the UID of another one. */
function keyOf({ kind, namespace, name, uid }: Workload): string {
  return `${kind}/${namespace}/${name}/${uid}`;
}
