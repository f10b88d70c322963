/**
 * The early stage of conflict detection for one NIC: are the addresses that it is about to get silent on its segment?
 * Called by claim-verified.ts. The main plugins macvlan, ipvlan, vlan and bridge have made the NIC by then; where it is not there yet
 * (ptp) nothing is asked, and the coordinator asks later.
 * Effects: raises the NIC for the time of a question; frames on it; takes addresses off an old sandbox's NIC.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import type { CoordinatorConf } from "../../config/coordinator-settings.ts";
import { DetectionError } from "../../coordinator/detection-error.ts";
import { conflictTiming, type ProbeLink, requireShortDetection } from "../../coordinator/probe.ts";
import type { QuietLinkOptions } from "../../coordinator/quiet-link.ts";
import type { LinkObservation } from "../../kernel/observe-link.ts";
import { equalIp, formatIp } from "../../net/ip.ts";
import type { Mac } from "../../net/mac.ts";
import type { Allocation } from "../../registry/registry.ts";
import type { Claimed } from "../ipam/allocate.ts";
import type { DetectConflict } from "./quarantine-prober.ts";

/** What is read from and done to links besides asking: node-link.ts. */
export interface NicLinks {
  /** Undefined when there is no such link. */
  observe(netns: string, ifName: string): LinkObservation | undefined;
  /** Takes the address of an earlier attachment off its NIC, if it still has it; gives that NIC's MAC. */
  withdraw(previous: Allocation, current: { readonly netns: string; readonly ifName: string }): Mac | undefined;
  /** The node's link under the NIC, "" when none is known. */
  findParentName(netns: string, ifName: string): string;
  /** The link on which the NIC's segment is asked. Throws DetectionError when there is none. */
  findAskingLink(nic: ProbeLink): ProbeLink;
}

export interface EarlyStageTools {
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

export interface EarlyStageOptions {
  readonly netns: string;
  readonly ifName: string;
  readonly settings: CoordinatorConf;
  /** A coordinator follows in the chain; it announces the addresses. */
  readonly isCoordinated: boolean;
}

export type Verdict =
  /** Nobody was asked: it is not wanted, not possible, or the NIC has the addresses already. */
  | { readonly kind: "unasked" }
  | { readonly kind: "silent"; readonly addresses: readonly Allocation[] }
  | { readonly kind: "conflict"; readonly allocation: Allocation; readonly mac: Mac | undefined };

type Nic = LinkObservation & { readonly mac: Mac };

export class EarlyStage {
  readonly #tools: EarlyStageTools;
  readonly #options: EarlyStageOptions;
  #nic: Nic | undefined | "unseen" = "unseen";

  constructor(tools: EarlyStageTools, options: EarlyStageOptions) {
    this.#tools = tools;
    this.#options = options;
  }

  /** Whether the settings want every address to be asked for. */
  get isWanted(): boolean {
    const { detectIPConflict, mode } = this.#options.settings;
    return detectIPConflict && mode !== "disable";
  }

  /** As it was before its addresses; undefined while there is none that could ask. Looked for once, and only when somebody wants to know. */
  get nic(): Nic | undefined {
    if (this.#nic === "unseen") {
      const { netns, ifName } = this.#options;
      const found = this.#tools.links.observe(netns, ifName);
      this.#nic = found?.mac === undefined ? undefined : { ...found, mac: found.mac };
    }
    return this.#nic;
  }

  findParentName(): string {
    return this.#tools.links.findParentName(this.#options.netns, this.#options.ifName);
  }

  /**
   * Asks for the addresses of the NIC, both families at once; only for those out of quarantine when no more is wanted.
   * Throws CniError 11 when the NIC cannot be asked, and what the signal says when it is aborted.
   */
  async verify({ held, previous }: Claimed, signal: AbortSignal): Promise<Verdict> {
    const { isWanted } = this;
    const wanted = isWanted ? held : held.filter(({ quarantine }) => quarantine !== undefined);
    if (wanted.length === 0) return { kind: "unasked" };
    const { nic } = this;
    if (nic === undefined) {
      this.#withdraw(previous); // the coordinator asks later, and must not hear an old sandbox of the same pod
      return this.#refuseUnasked(wanted);
    }
    // A repeated ADD: what is on the NIC was asked for before, and answers itself.
    const isNew = ({ ip }: Allocation): boolean => !nic.addresses.some((each) => equalIp(each.ip, ip));
    const addresses = wanted.filter(isNew);
    if (addresses.length === 0) return { kind: "unasked" };
    const conflict = await this.#ask(addresses, this.#withdraw(previous), signal);
    if (conflict === undefined) return { kind: "silent", addresses };
    const allocation = addresses.find(({ ip }) => equalIp(ip, conflict.ip));
    return allocation === undefined ? { kind: "unasked" } : { kind: "conflict", allocation, mac: conflict.mac };
  }

  #refuseUnasked(wanted: readonly Allocation[]): Verdict {
    const suspect = wanted.find(({ quarantine }) => quarantine !== undefined);
    if (suspect === undefined) return { kind: "unasked" };
    const { netns, ifName } = this.#options;
    const why = `interface "${ifName}" in ${netns} is missing, and its address ${formatIp(suspect.ip)} must be asked for before it is used`;
    throw new CniError(ErrorCode.TryAgainLater, `Detection cannot run: ${why}`);
  }

  /** What an older attachment of ours left on its NIC is no conflict, and must not answer any more. */
  #withdraw(previous: readonly Allocation[]): ReadonlySet<Mac> {
    const known = previous.map(({ mac }) => mac);
    const found = previous.map((each) => this.#tools.links.withdraw(each, this.#options));
    return new Set([...known, ...found].filter((mac) => mac !== undefined));
  }

  async #ask(addresses: readonly Allocation[], ownMacs: ReadonlySet<Mac>, signal: AbortSignal) {
    const { detect, withQuietLink, links, random } = this.#tools;
    const { netns, ifName, settings, isCoordinated } = this.#options;
    const ips = addresses.map(({ ip }) => ip);
    const timing = conflictTiming(settings.detectOptions);
    requireShortDetection(timing);
    const question = { addresses: ips, ownMacs, ...timing, random, signal };
    try {
      const quiet = { netnsPath: netns, ifName, staysUp: isCoordinated };
      return await withQuietLink(quiet, (nic) => detect({ link: links.findAskingLink(nic), ...question }), signal);
    } catch (error) {
      if (!(error instanceof DetectionError)) throw error;
      signal.throwIfAborted();
      const text = `Conflict detection cannot judge ${ips.map(formatIp).join(", ")}: ${error.message}; try again`;
      throw new CniError(ErrorCode.TryAgainLater, text, { cause: error });
    }
  }
}
