/**
 * A world's whole run before the checker of histories (history/follow.ts): every revision of every address, and the
 * answers to its runtimes and agents.
 *
 *   const followed = await followWorld(world);           // from now on; at its end the world throws the faults
 *   await followed.check();                              // or earlier: throws the faults until now
 *   await followed.restore(copy);                        // in place of world.plane.restore; observed
 */
import { ErrorCode } from "../../../host/cni/error.ts";
import { attachmentOf, followHistory, type History, type HistoryOptions } from "../history/follow.ts";
import type { LabPod } from "./objects.ts";
import type { Witness, WitnessedAdd } from "./witness.ts";
import type { World } from "./world.ts";

/** Shortest reuse under the world's default settings, whose cooldown is shorter than the two seconds of a take-over. */
const MIN_REUSE_MS = 1_000;
/** The first probe of a conflict comes so much later. */
const MIN_CONFLICT_MS = 5_000;
/** A node is taken for lost so long after its pod's end, under the shortest grace of these tests. */
const MIN_LOST_MS = 1_000;

export async function followWorld(world: World, options: HistoryOptions = {}): Promise<FollowedWorld> {
  const times = { minReuseMs: MIN_REUSE_MS, minConflictMs: MIN_CONFLICT_MS, minLostMs: MIN_LOST_MS };
  const history = await followHistory(world.plane.etcdUrl, { ...times, ...options });
  const followed = new FollowedWorld(world, history);
  world.witness = followed;
  world.defer(async () => {
    try {
      await followed.check();
    } finally {
      history.close();
    }
  });
  return followed;
}

export class FollowedWorld implements Witness {
  readonly history: History;
  readonly #world: World;
  /** Questions that the history has not come to yet. */
  readonly #pending = new Set<Promise<void>>();

  constructor(world: World, history: History) {
    this.#world = world;
    this.history = history;
  }

  /** Throws all breaches of the run until now. */
  async check(): Promise<void> {
    await Promise.all(this.#pending);
    await this.history.caughtUp();
    const { breaches } = this.history.checker;
    if (breaches.length > 0) throw new Error(`The history of addresses is not legal:\n${breaches.join("\n")}`);
  }

  restore(...how: Parameters<World["plane"]["restore"]>): Promise<void> {
    const { plane, wire } = this.#world;
    return wire.observer.holding(() => this.history.restoring(() => plane.restore(...how)));
  }

  adding(pod: LabPod, ifName: string): WitnessedAdd {
    const { checker, pools } = this.history;
    const { version } = pools;
    const calls = [...pools.givable()].map(([name, givable]) => ({ name, call: checker.asked(givable) }));
    const end = (wasFull: (pool: string) => boolean): void => {
      this.#follow(async () => {
        await this.history.caughtUp();
        for (const { name, call } of calls)
          if (wasFull(name) && pools.version === version) checker.exhausted(call, `${pod.name} in pool ${name}`);
          else checker.ended(call);
      });
    };
    return {
      answered: (ips) => {
        end(() => false);
        const attachments = ips.map((ip) => attachmentOf(ip, pod.uid, ifName));
        // The sandbox before, which has another address, is gone with this answer.
        for (const before of this.#attachmentsOf(pod.uid, ifName))
          if (!attachments.some(({ name }) => name === before.name)) this.history.leaving(before);
        for (const attachment of attachments) this.#follow(() => this.history.attached(attachment));
      },
      refused: (code, text) =>
        end((pool) => code === ErrorCode.PoolExhausted && text.includes(`"${pool}" has no free`)),
    };
  }

  leaving(podUid: string, ifName?: string): void {
    for (const attachment of this.#attachmentsOf(podUid, ifName)) this.history.leaving(attachment);
  }

  excuse(address: string): void {
    this.history.checker.excuse(attachmentOf(address, "").name);
  }

  #attachmentsOf(podUid: string, ifName?: string) {
    const { attachments } = this.history.checker;
    return attachments.filter((each) => each.podUid === podUid && (ifName === undefined || each.ifName === ifName));
  }

  #follow(work: () => Promise<void>): void {
    const pending = work()
      .catch((error: unknown) => this.history.checker.report(String(error)))
      .finally(() => this.#pending.delete(pending));
    this.#pending.add(pending);
  }
}
