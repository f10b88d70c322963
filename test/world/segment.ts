/** Detection of a {@link TestNode} on a segment that is a table: which machine answers for which address. */
import { AnsweredAttachments } from "../../host/agent/detection/answered-attachments.ts";
import type { Detection } from "../../host/agent/detection/open-detection.ts";
import { QuarantineProber } from "../../host/agent/detection/quarantine-prober.ts";
import type { NicLinks } from "../../host/agent/detection/verify-addresses.ts";
import type { Claimed } from "../../host/agent/ipam/allocate.ts";
import { claimVerified } from "../../host/agent/ipam/claim-verified.ts";
import type { AddressDemand } from "../../host/agent/ipam/sources/source.ts";
import { DEFAULT_COORDINATOR_CONF } from "../../host/config/coordinator-settings.ts";
import type { ConflictProbe } from "../../host/coordinator/detect-conflict.ts";
import { DetectionError } from "../../host/coordinator/detection-error.ts";
import type { ProbeLink } from "../../host/coordinator/probe.ts";
import { formatIp, type Ip } from "../../host/net/ip.ts";
import type { Mac } from "../../host/net/mac.ts";
import type { FirstClaims } from "../../host/registry/epoch/registry-epoch.ts";
import type { Allocation } from "../../host/registry/registry.ts";
import type { IpPool } from "../../host/resources/ip-pool.ts";
import { TestClock } from "./clock.ts";
import { clusterIpam } from "./cluster-ipam.ts";
import { NO_AUDIT } from "./no-audit.ts";
import { type DemandOptions, openNode, type TestNode } from "./node.ts";
import { snapshotOf } from "./subjects.ts";
import { mac, RIVAL } from "./values.ts";

export const OWN = mac("0a:00:00:00:00:01");
export const ANY = "any address";

/** An epoch that is settled, in which first claims are probed. */
const PROBED: FirstClaims = {
  ...{ isOpen: false, isProbed: true, inForce: "e1", waitsFor: "" },
  ...{ hasUnverified: false, isUnverified: () => false, verified: () => {} },
  line: { isUp: () => true, silence: () => "", up: async () => {} },
  claiming: () => ({ isOutdated: () => false, settled: async () => {}, end: () => {} }),
};

export interface DetectOptions {
  readonly detect?: boolean;
  readonly mode?: "auto" | "disable";
  readonly onConflict?: "fail" | "next";
  /** Default: no coordinator follows in the chain. */
  readonly isCoordinated?: boolean;
}

export class Segment {
  readonly node: TestNode;
  /** By address as text, or ANY. */
  readonly answering: Map<string, Mac>;
  /** Addresses that another pod has, too, because a machine migrates. */
  readonly shared = new Set<string>();
  /** Whether the registry's epoch is one in which first claims are probed. */
  isProbed = false;
  /** Addresses of each question, the link's name in front. */
  readonly questions: string[][] = [];
  readonly withdrawn: string[] = [];
  /** Returns the addresses on a pod's NIC; undefined: there is no NIC. */
  onNic: (netns: string, ifName: string) => readonly Ip[] | undefined = () => [];
  /** Error that ends each question instead of an answer. */
  broken: Error | undefined;
  /** Called while a question is under way. */
  meanwhile: () => Promise<unknown> | unknown = () => {};
  /** Called with the link on which a rival has answered. */
  answered: (link: ProbeLink) => void = () => {};
  /** Resolves when the ADD that met a conflict counts as answered. */
  answer: () => Promise<unknown> = async () => {};
  /** The node's links. */
  nodeLinks = ["uplink"];
  options: DetectOptions = {};
  readonly verified = new AnsweredAttachments();
  readonly prober: QuarantineProber;
  readonly #detection: Omit<Detection, "probeQuarantined">;

  constructor(node: TestNode, answering = new Map<string, Mac>()) {
    this.node = node;
    this.answering = answering;
    const { registry, clock, log } = node;
    const letAnswer = () => this.answer();
    const engine = { detect: this.#detect, random: () => 0.5, letAnswer, log, audit: NO_AUDIT };
    this.prober = new QuarantineProber({
      ...{ ...engine, registry, nowMs: clock.nowMs, pools: () => node.snapshot.pools },
      findNodeLink: (name) => (this.nodeLinks.includes(name) ? linkOf("", name) : undefined),
    });
    this.#detection = {
      ...{ ...engine, prober: this.prober, answered: this.verified, links: this.#links },
      withQuietLink: ({ netnsPath, ifName }, work) => work(linkOf(netnsPath, ifName)),
    };
  }

  /** A machine has the address, or each. */
  conflictOn(address: string, by: Mac = RIVAL): void {
    this.answering.set(address, by);
  }

  /** ADD of a pod whose NIC may have addresses of these pools, one list for each family. */
  add(pod: string, pools: readonly (readonly string[])[], options: DemandOptions = {}): Promise<Claimed> {
    const demand = this.node.demand(pod, [{ ifName: "eth0", pools }], { netns: `/run/${pod}`, ...options });
    return this.claim(demand, this.options);
  }

  claim(demand: AddressDemand, options: DetectOptions): Promise<Claimed> {
    const { detect = true, mode = "auto", onConflict = "fail", isCoordinated = false } = options;
    const { registry, poolCache } = this.node;
    const detectOptions = { ...DEFAULT_COORDINATOR_CONF.detectOptions, onConflict };
    const settings = { ...DEFAULT_COORDINATOR_CONF, detectIPConflict: detect, mode, detectOptions };
    // Only where addresses are shared: other nodes would be waited for.
    const isShared = async ({ ip }: { ip: Ip }) => this.shared.has(formatIp(ip));
    const isInCluster = this.shared.size > 0 || this.isProbed;
    const cluster = isInCluster ? clusterIpam({ isShared, ...(this.isProbed && { epoch: PROBED }) }) : undefined;
    // As in prepareDemand.
    const seedText = `${demand.seedText}${this.prober.salt}`;
    const randomize = (pool: string) => this.prober.hasSuspect(pool);
    const spread = { ...demand, seedText, randomize, definition: { settings, isCoordinated } };
    return claimVerified({ registry, poolCache, detection: this.#detection, cluster }, spread);
  }

  async close(): Promise<void> {
    await this.prober.close();
    await this.node.close();
  }

  readonly #detect = async ({ link, addresses, ownMacs = new Set(), signal }: ConflictProbe) => {
    this.questions.push([link.name, ...addresses.map(formatIp)]);
    await this.meanwhile();
    if (signal.aborted) throw new DetectionError("aborted", link.name, "given up");
    if (this.broken !== undefined) throw this.broken;
    const own = new Set([link.mac, ...ownMacs]);
    for (const ip of addresses) {
      const found = this.answering.get(formatIp(ip)) ?? this.answering.get(ANY);
      if (found === undefined || own.has(found)) continue;
      this.answered(link);
      return { ip, mac: found };
    }
    return undefined;
  };

  readonly #links: NicLinks = {
    observe: (netns, ifName) => {
      const addresses = this.onNic(netns, ifName)?.map((ip) => ({ ip, length: 24 }));
      return addresses && { index: 1, mac: OWN, flags: 0, up: false, addresses };
    },
    withdraw: ({ netns, ip }: Allocation) => {
      this.withdrawn.push(`${formatIp(ip)} in ${netns}`);
      return undefined;
    },
    findParentName: () => "uplink",
    findAskingLink: (nic) => nic,
  };
}

function linkOf(netnsPath: string, name: string): ProbeLink {
  return { netnsPath, index: 1, name, mac: OWN };
}

export async function openSegment(pools: readonly IpPool[]): Promise<Segment> {
  const clock = new TestClock({ ms: 10_000_000, isHasty: true });
  return new Segment(await openNode({ clock, snapshot: snapshotOf(...pools) }));
}
