/**
 * The ADD without effects: the code of the ADD on copies of the registry and of the pool cache, on a clock that does
 * not wait, and on a NIC that finds every address silent. The API server is read, and checks the writes without
 * storing them.
 */

import type { AttachRequest } from "../../cni/request.ts";
import { invariant } from "../../lib/invariant.ts";
import type { Mac } from "../../net/mac.ts";
import type { Registry } from "../../registry/registry.ts";
import { AnsweredAttachments } from "../detection/answered-attachments.ts";
import type { Detection } from "../detection/open-detection.ts";
import type { AddDeps } from "../ipam/add.ts";
import { IpamPlugin, type ReadinessSource } from "../ipam/plugin.ts";
import { cooldownsOf, PoolInventory } from "../ipam/pool-inventory.ts";
import type { Clock } from "../request/add-deadline.ts";
import type { Assigned } from "../request/plugin.ts";

/** Main plugins that create the NIC only after its addresses are known: nothing can be probed before. */
const LATE_PLUGINS: readonly string[] = ["ptp"];

const NIC = { index: 1, mac: "02:00:00:00:00:01" as Mac, flags: 0, up: true, addresses: [] };

export class DryRun implements AsyncDisposable {
  /** The dependencies of the ADD. */
  readonly ipam: AddDeps;
  readonly #clock: SkippingClock;
  readonly #detection: DryRunDetection;
  readonly #readiness: ReadinessSource;

  static async open(ipam: AddDeps, readiness: Pick<ReadinessSource, "readiness">): Promise<DryRun> {
    const { inventory } = ipam;
    const clock = new SkippingClock(ipam.clock);
    const cooldowns = cooldownsOf(await inventory.loaded());
    const onFreed: Parameters<Registry["copy"]>[0]["onFreed"] = (space, ip) => poolCache.unmark(space, ip);
    const registry = await inventory.registry.copy({ nowMs: () => clock.nowMs(), cooldowns, onFreed });
    const snapshot = await inventory.loaded();
    const poolCache = inventory.poolCache.copy();
    const detection = new DryRunDetection(ipam.detection);
    const copied: AddDeps = {
      ...ipam,
      inventory: new PoolInventory(
        poolCache,
        registry,
        { ...snapshot, pools: new Map(snapshot.pools) },
        { refused: inventory.refused },
      ),
      detection,
      clock,
      log: ipam.log.child({}, { level: "silent" }),
      cluster: ipam.cluster?.forDryRun(registry),
      attaching: undefined,
      netns: undefined,
    };
    return new DryRun(copied, clock, detection, readiness);
  }

  private constructor(
    ipam: AddDeps,
    clock: SkippingClock,
    detection: DryRunDetection,
    source: Pick<ReadinessSource, "readiness">,
  ) {
    this.ipam = ipam;
    this.#clock = clock;
    this.#detection = detection;
    this.#readiness = { synced: async () => {}, readiness: () => source.readiness() };
  }

  /** Time that the ADDs so far would have waited: milliseconds. */
  get waitedMs(): number {
    return this.#clock.skippedMs;
  }

  /**
   * Returns what the ADD would assign, and rejects as it would be refused. The next ADD finds what this one has
   * claimed.
   */
  async add(request: AttachRequest, signal: AbortSignal): Promise<Assigned> {
    this.#detection.hasNic = !LATE_PLUGINS.includes(request.netConf.type);
    const { assigned } = await new IpamPlugin(this.ipam, this.#readiness).add(request, signal);
    invariant(assigned !== undefined, "Berth's plugin says what it assigns");
    return assigned;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.ipam.inventory.registry.close();
  }
}

/** Goes on instead of waiting. */
class SkippingClock implements Clock {
  skippedMs = 0;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  nowMs(): number {
    return this.#clock.nowMs() + this.skippedMs;
  }

  async sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.skippedMs += Math.max(0, milliseconds);
  }
}

/** No machine answers for an address, and no NIC is read or changed. */
class DryRunDetection implements Detection {
  readonly prober: Detection["prober"];
  readonly answered = new AnsweredAttachments();
  readonly links: Detection["links"];
  readonly random: Detection["random"];
  hasNic = true;

  constructor({ prober, random }: Detection) {
    this.prober = prober;
    this.random = random;
    this.links = {
      observe: () => (this.hasNic ? NIC : undefined),
      withdraw: () => undefined,
      findParentName: () => "",
      findAskingLink: (nic) => nic,
    };
  }

  readonly detect: Detection["detect"] = async () => undefined;

  readonly withQuietLink: Detection["withQuietLink"] = ({ netnsPath, ifName }, work) =>
    work({ netnsPath, index: NIC.index, name: ifName, mac: NIC.mac });

  readonly probeQuarantined = async (): Promise<void> => {};
}
