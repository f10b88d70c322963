/**
 * The early stage of conflict detection for one NIC: probes the addresses that it is about to get. The main plugins
 * macvlan, ipvlan, vlan and bridge have created the NIC by then; with ptp it does not exist yet, and the coordinator
 * probes later.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import type { CoordinatorConf } from "../../config/coordinator-settings.ts";
import { DetectionError, UNPROBED_KIND_REMEDY } from "../../coordinator/detection-error.ts";
import { conflictTiming, type ProbeLink, requireShortDetection } from "../../coordinator/probe.ts";
import type { QuietLinkOptions } from "../../coordinator/quiet-link.ts";
import type { LinkObservation } from "../../kernel/observe-link.ts";
import { equalIp, formatIp, type Ip } from "../../net/ip.ts";
import type { Mac } from "../../net/mac.ts";
import type { Allocation } from "../../registry/registry.ts";
import type { DetectConflict } from "./quarantine-prober.ts";

/** Access to links besides probing: links.ts. */
export interface NicLinks {
  /** Returns undefined if there is no such link. */
  observe(netns: string, ifName: string): LinkObservation | undefined;
  /** Takes the address of an earlier attachment off its NIC, if it still has it; returns that NIC's MAC. */
  withdraw(previous: Allocation, current: { readonly netns: string; readonly ifName: string }): Mac | undefined;
  /** Returns the name of the node's link under the NIC; "" if unknown. */
  findParentName(netns: string, ifName: string): string;
  /** Returns the link on which the NIC's segment is probed. Throws DetectionError when there is none. */
  findAskingLink(nic: ProbeLink): ProbeLink;
  /** From now on no advertisement gives the NIC a default route. Absent where no NIC is to be changed. */
  refuseDefaults?(netns: string, ifName: string): void;
}

export interface EarlyStageDeps {
  readonly links: NicLinks;
  readonly detect: DetectConflict;
  /** host/coordinator/quiet-link.ts */
  readonly withQuietLink: <T>(
    options: QuietLinkOptions,
    work: (link: ProbeLink) => Promise<T>,
    signal: AbortSignal,
  ) => Promise<T>;
  readonly random: () => number;
}

interface EarlyStageOptions {
  readonly netns: string;
  readonly ifName: string;
  readonly settings: CoordinatorConf;
  /** Whether the settings ask for a probe of every address. */
  readonly isWanted: boolean;
  /** Whether a coordinator follows in the chain; it announces the addresses. */
  readonly isCoordinated: boolean;
}

interface AddressesToProbe {
  /** Addresses of the NIC, at least one. */
  readonly wanted: readonly Allocation[];
  /** Those of `wanted` that must be probed whatever the settings say. */
  readonly needed: readonly Allocation[];
  /** Addresses of the NIC as they were on another NIC before, of an older sandbox. */
  readonly previous: readonly Allocation[];
}

type EarlyDetection =
  /** Not probed: that is impossible, or the NIC has the addresses already. */
  | { readonly kind: "unasked" }
  | { readonly kind: "silent"; readonly addresses: readonly Allocation[] }
  | { readonly kind: "conflict"; readonly allocation: Allocation; readonly mac: Mac | undefined };

type Nic = LinkObservation & { readonly mac: Mac };

export class EarlyStage {
  readonly #deps: EarlyStageDeps;
  readonly #options: EarlyStageOptions;
  #nic: Nic | undefined | "unseen" = "unseen";

  constructor(deps: EarlyStageDeps, options: EarlyStageOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  /** The NIC before its addresses; undefined if it does not exist or cannot probe. Read once, at the first use. */
  get nic(): Nic | undefined {
    if (this.#nic === "unseen") {
      const { netns, ifName } = this.#options;
      const found = this.#deps.links.observe(netns, ifName);
      this.#nic = found?.mac === undefined ? undefined : { ...found, mac: found.mac };
    }
    return this.#nic;
  }

  /**
   * Probes both families at once. Throws CniError 11 when the NIC cannot probe, 106 when its kind never can; rejects
   * with the signal's reason.
   */
  async verify({ wanted, needed, previous }: AddressesToProbe, signal: AbortSignal): Promise<EarlyDetection> {
    const { nic } = this;
    if (nic === undefined) {
      // The coordinator probes later, and must not receive an answer from an old sandbox of the same pod.
      this.#withdraw(previous);
      return this.#refuseUnasked(needed);
    }
    // A repeated ADD: addresses on the NIC were probed before, and would answer the probe themselves.
    const isNew = ({ ip }: Allocation): boolean => !nic.addresses.some((each) => equalIp(each.ip, ip));
    const addresses = wanted.filter(isNew);
    if (addresses.length === 0) return { kind: "unasked" };
    const ips = addresses.map(({ ip }) => ip);
    const mustAnswer = this.#options.isWanted || addresses.some((each) => needed.includes(each));
    const conflict = await this.#probe(ips, this.#withdraw(previous), signal).catch((error: unknown) => {
      signal.throwIfAborted();
      if (mustAnswer || !(error instanceof CniError)) throw error;
    });
    if (conflict === undefined) return { kind: "silent", addresses };
    const allocation = addresses.find(({ ip }) => equalIp(ip, conflict.ip));
    return allocation === undefined ? { kind: "unasked" } : { kind: "conflict", allocation, mac: conflict.mac };
  }

  /**
   * Probes addresses that the NIC may get, whatever the settings, without those that it has. Returns the machine that
   * answers. Rejects as {@link verify} does.
   */
  async ask(ips: readonly Ip[], signal: AbortSignal) {
    const own = this.nic?.addresses ?? [];
    const unset = ips.filter((ip) => !own.some((each) => equalIp(each.ip, ip)));
    return unset.length === 0 ? undefined : this.#probe(unset, new Set(), signal);
  }

  #refuseUnasked(needed: readonly Allocation[]): EarlyDetection {
    const { netns, ifName, isWanted, isCoordinated } = this.#options;
    const quarantined = needed.find(({ quarantine }) => quarantine !== undefined);
    // The coordinator probes later where the settings ask for it.
    const suspect = quarantined ?? (isWanted && isCoordinated ? undefined : needed[0]);
    if (suspect === undefined) return { kind: "unasked" };
    const what = quarantined === undefined ? "address of a new block" : "quarantined address";
    const why = `interface "${ifName}" in ${netns} is missing, and its ${what} ${formatIp(suspect.ip)} must be probed before it is used`;
    throw new CniError(ErrorCode.TryAgainLater, `Conflict detection cannot run: ${why}`);
  }

  /** An address that an older attachment of this node left on its NIC is no conflict, and must not answer any more. */
  #withdraw(previous: readonly Allocation[]): ReadonlySet<Mac> {
    const known = previous.map(({ mac }) => mac);
    const found = previous.map((each) => this.#deps.links.withdraw(each, this.#options));
    return new Set([...known, ...found].filter((mac) => mac !== undefined));
  }

  async #probe(ips: readonly Ip[], ownMacs: ReadonlySet<Mac>, signal: AbortSignal) {
    const { detect, withQuietLink, links, random } = this.#deps;
    const { netns, ifName, settings, isWanted, isCoordinated } = this.#options;
    const timing = conflictTiming(settings.detectOptions);
    requireShortDetection(timing);
    const question = { addresses: ips, ownMacs, ...timing, random, signal };
    try {
      const quiet = { netnsPath: netns, ifName, staysUp: isCoordinated };
      return await withQuietLink(quiet, (nic) => detect({ link: links.findAskingLink(nic), ...question }), signal);
    } catch (error) {
      if (!(error instanceof DetectionError)) throw error;
      signal.throwIfAborted();
      const isInVain = error.reason === "kind" && isWanted;
      const remedy = isInVain ? UNPROBED_KIND_REMEDY : "try again";
      const text = `Conflict detection failed for ${ips.map(formatIp).join(", ")}: ${error.message}; ${remedy}`;
      throw new CniError(isInVain ? ErrorCode.InterfaceRefused : ErrorCode.TryAgainLater, text, { cause: error });
    }
  }
}
