/**
 * A segment that is a table: which machine answers for which address. With it, what claims need for detection, and what must hold
 * of quarantine while nothing is in flight.
 */

import type { Detection } from "../../../host/agent/detection/open-detection.ts";
import { QuarantineProber, type QuarantineProberDeps } from "../../../host/agent/detection/quarantine-prober.ts";
import { VerifiedAttachments } from "../../../host/agent/detection/verified-attachments.ts";
import type { NicLinks } from "../../../host/agent/detection/verify-addresses.ts";
import type { ConflictProbe } from "../../../host/coordinator/detect-conflict.ts";
import type { ProbeLink } from "../../../host/coordinator/probe.ts";
import { formatIp, type Ip } from "../../../host/net/ip.ts";
import type { Mac } from "../../../host/net/mac.ts";
import type { Allocation } from "../../../host/registry/registry.ts";
import { recordLog } from "../../unit/agent/recorded-log.ts";
import { mac } from "../../unit/registry/registry-quarantine-suite.ts";

const OWN_MAC = mac("0a:00:00:00:00:01");

export type SegmentDeps = QuarantineProberDeps & Omit<Detection, "probeQuarantined">;

export class ScriptedSegment {
  readonly #rivals = new Map<string, Mac>();

  /** Some machine takes the address, or leaves it. */
  rival(address: string, holder: Mac | undefined): void {
    if (holder === undefined) this.#rivals.delete(address);
    else this.#rivals.set(address, holder);
  }

  isTaken(ip: Ip): boolean {
    return this.#rivals.has(formatIp(ip));
  }

  /** Every NIC is there, and has what `addressesOn` says. */
  deps(
    base: Pick<QuarantineProberDeps, "registry" | "pools" | "nowMs">,
    addressesOn: (netns: string, ifName: string) => readonly Ip[],
  ): SegmentDeps {
    const link = (netnsPath: string, name: string): ProbeLink => ({ netnsPath, index: 1, name, mac: OWN_MAC });
    const links: NicLinks = {
      observe: (netns, ifName) => {
        const addresses = addressesOn(netns, ifName).map((ip) => ({ ip, length: 29 }));
        return { index: 1, mac: OWN_MAC, flags: 0, up: false, addresses };
      },
      withdraw: () => undefined,
      findParentName: () => "uplink",
      findAskingLink: (nic) => nic,
    };
    const deps = {
      ...{ ...base, detect: this.detect, random: () => 0.5, log: recordLog().log, links },
      findNodeLink: (name: string) => link("", name),
    };
    return {
      ...{ ...deps, prober: new QuarantineProber(deps), verified: new VerifiedAttachments() },
      withQuietLink: ({ netnsPath, ifName }, work) => work(link(netnsPath, ifName)),
    };
  }

  /** Takes some turns of the event loop: others write meanwhile. */
  readonly detect = async ({ addresses, signal }: ConflictProbe) => {
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
    signal.throwIfAborted();
    const ip = addresses.find((each) => this.isTaken(each));
    return ip && { ip, mac: this.#rivals.get(formatIp(ip)) };
  };
}

/** Conflict: nobody has what is in quarantine, and nobody keeps what came out of it without having asked. */
export function faultsOfQuarantine(records: readonly Allocation[]): string[] {
  return records.flatMap(({ space, ip, state, owner, containerId, quarantine }) => {
    const place = `${formatIp(ip)}/${space}`;
    const isQuarantined = state === "Quarantined";
    if (isQuarantined !== (quarantine !== undefined)) return [`${place} is ${state}, quarantine ${quarantine?.reason}`];
    return isQuarantined && `${owner}${containerId}` !== "" ? [`${place} is in quarantine, and ${owner}'s`] : [];
  });
}
