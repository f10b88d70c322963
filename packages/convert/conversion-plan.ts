/**
 * The result of a conversion: Berth's objects, files for nodes, patches of workloads, and findings. Objects that
 * Berth itself would refuse are left out with a problem.
 */

import { createHash } from "node:crypto";
import { ConfigError } from "../../host/config/config-error.ts";
import { isDnsLabel, isDnsSubdomain, MAX_LABEL_LENGTH } from "../../host/config/fields/names.ts";
import { joinRanges } from "../../host/core/spans.ts";
import { compareText } from "../../host/lib/order.ts";
import { FAMILIES, type Family, formatIp, type Ip } from "../../host/net/ip.ts";
import { formatPrefix, maskPrefix } from "../../host/net/prefix.ts";
import { formatRange, type Range } from "../../host/net/range.ts";
import { checkPools } from "../../host/resources/check-pools.ts";
import { MAX_RANGES } from "../../host/resources/fields/address-spec.ts";
import { API_VERSION } from "../../host/resources/fields/metadata.ts";
import { decodeIpPool, type IpPool } from "../../host/resources/ip-pool.ts";
import { decodeResource } from "../../host/resources/manifest.ts";
import { decodeSubnet } from "../../host/resources/subnet.ts";
import { type Finding, Findings, type Place } from "./findings.ts";

export const PEERS = ["spiderpool", "whereabouts", "host-local", "calico"] as const;
export type Peer = (typeof PEERS)[number];

/** Label of everything that a conversion makes; its value is the peer. */
export const CONVERTED_LABEL = "ipam.vendor.io/converted-from";

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec: Readonly<Record<string, unknown>>;
}

/** Two merge patches (RFC 7396) of one object: there and back. */
export interface WorkloadPatch {
  readonly apiVersion: string;
  readonly kind: string;
  /** "" if the object has none. */
  readonly namespace: string;
  readonly name: string;
  readonly patch: object;
  readonly rollback: object;
}

/** A configuration for a node's /etc/cni/net.d; `path` is relative. */
interface NodeFile {
  readonly path: string;
  readonly text: string;
}

/** An address that the peer or a pod has at the moment. */
interface UsedAddress {
  readonly address: string;
  readonly addressSpace: string;
  readonly holder: string;
  readonly source: string;
}

export interface ConversionPlan {
  readonly peer: Peer;
  /** In the order in which they are applied: reserved addresses before pools. */
  readonly manifests: readonly Manifest[];
  readonly nodeFiles: readonly NodeFile[];
  readonly patches: readonly WorkloadPatch[];
  readonly used: readonly UsedAddress[];
  readonly findings: readonly Finding[];
}

/** The known facts about the cluster that will have the objects. */
export interface Target {
  readonly pools: readonly IpPool[];
  /** Pods, `namespace/name`, by {@link addressKey} of the addresses that Berth has allocated to them. */
  readonly allocated: ReadonlyMap<string, string>;
}

export function addressKey(address: Ip, addressSpace: string): string {
  return `${formatIp(address)} ${addressSpace}`;
}

interface Holder {
  /** `shop/web-0`; undefined if only a container is known. */
  readonly pod?: string | undefined;
  /** Names the holder if no pod is known. */
  readonly text: string;
}

interface Use extends Holder {
  readonly ip: Ip;
  readonly space: string;
  readonly place: Place;
}

/** A pod and a container may be the same. */
function isAnother(one: Holder, other: Holder): boolean {
  if ((one.pod === undefined) !== (other.pod === undefined)) return false;
  return (one.pod ?? one.text) !== (other.pod ?? other.text);
}

type BerthKind = "IPPool" | "Subnet" | "ReservedIP" | "Coordinator";

interface Draft {
  readonly kind: BerthKind;
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly spec: Readonly<Record<string, unknown>>;
}

interface Added {
  readonly place: Place;
  readonly manifest: Manifest;
}

export interface PlanOptions {
  readonly peer: Peer;
  /** Appended to the names of network definitions, so that both IPAMs have theirs while workloads move. */
  readonly suffix: string;
  readonly target: Target;
  /** The only addresses that Berth may allocate while the peer goes on. Default: all that the peer allocates. */
  readonly ips?: readonly Range[] | undefined;
}

export class PlanBuilder {
  readonly findings = new Findings();
  readonly peer: Peer;
  readonly suffix: string;
  readonly ips: readonly Range[] | undefined;
  readonly #target: Target;
  readonly #added = new Map<string, Added>();
  /** Names of pools by their specification. */
  readonly #sameSpec = new Map<string, string>();
  readonly #uses = new Map<string, Use>();
  /** Addresses of pods that count only inside of a converted pool. */
  readonly #podUses: Omit<Use, "space">[] = [];
  readonly #networks = new Map<string, Manifest>();
  readonly #nodeFiles = new Map<string, NodeFile>();
  readonly #patches: WorkloadPatch[] = [];

  constructor({ peer, suffix, target, ips }: PlanOptions) {
    this.peer = peer;
    this.suffix = suffix;
    this.ips = ips;
    this.#target = target;
  }

  /** Adds an object of Berth's. Returns its name; undefined if Berth would refuse it. */
  add(draft: Draft, place: Place): string | undefined {
    const name = this.#nameFor(draft, place);
    const labels = { ...draft.labels, [CONVERTED_LABEL]: this.peer };
    const manifest = { apiVersion: API_VERSION, kind: draft.kind, metadata: { name, labels }, spec: draft.spec };
    try {
      decodeResource(manifest, place.object);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      for (const { path, got, wanted } of error.mismatches)
        place.addPhrase("problem", path, got, `not converted: Berth wants ${wanted}`);
      return undefined;
    }
    this.#added.set(`${draft.kind} ${name}`, { place, manifest });
    return name;
  }

  /** Adds a pool unless there is one with the same specification; returns its name. */
  addPoolOnce(name: string, spec: Readonly<Record<string, unknown>>, place: Place): string | undefined {
    const key = JSON.stringify(spec);
    const earlier = this.#sameSpec.get(key);
    if (earlier !== undefined) return earlier;
    const added = this.add({ kind: "IPPool", name, spec }, place);
    if (added !== undefined) this.#sameSpec.set(key, added);
    return added;
  }

  /** Records that an address is in use. Two pods with one address are a problem. */
  use(ip: Ip, space: string, holder: Holder, place: Place): void {
    const key = addressKey(ip, space);
    const moved = this.#target.allocated.get(key);
    const earlier: Holder | undefined =
      this.#uses.get(key) ?? (moved === undefined ? undefined : { pod: moved, text: moved });
    if (earlier !== undefined && isAnother(earlier, holder)) {
      const [one, other] = [earlier.pod ?? earlier.text, holder.pod ?? holder.text].sort();
      place.problem("", formatIp(ip), `the address is in use twice: by ${one} and ${other}`);
    }
    // Berth itself has the address of a pod that has been moved.
    if (moved !== undefined) return;
    const known = this.#uses.get(key);
    if (known === undefined || known.pod === undefined) this.#uses.set(key, { ...holder, ip, space, place });
  }

  /** The same for an address that a pod reports, which may be of any network. */
  usePodAddress(ip: Ip, pod: string, place: Place): void {
    this.#podUses.push({ ip, pod, text: pod, place });
  }

  addNetwork(manifest: Manifest): void {
    const { namespace = "", name } = manifest.metadata;
    this.#networks.set(`${namespace}/${name}`, manifest);
  }

  addNodeFile(file: NodeFile): void {
    this.#nodeFiles.set(file.path, file);
  }

  addPatch(patch: WorkloadPatch): void {
    this.#patches.push(patch);
  }

  finish(): ConversionPlan {
    this.#dropOverlapping();
    this.#countPodUses();
    const uses = [...this.#uses.values()].sort(
      (a, b) => compareText(a.space, b.space) || a.ip.family - b.ip.family || (a.ip.value < b.ip.value ? -1 : 1),
    );
    this.#reserve(uses);
    const ofKind = (kind: BerthKind) =>
      [...this.#added.values()].map(({ manifest }) => manifest).filter((manifest) => manifest.kind === kind);
    const byName = (a: Manifest, b: Manifest) => compareText(identityOf(a), identityOf(b));
    return {
      peer: this.peer,
      manifests: [
        ...ofKind("ReservedIP").sort(byName),
        ...ofKind("Subnet").sort(byName),
        ...ofKind("IPPool").sort(byName),
        ...ofKind("Coordinator").sort(byName),
        ...[...this.#networks.values()].sort(byName),
      ],
      nodeFiles: [...this.#nodeFiles.values()].sort((a, b) => compareText(a.path, b.path)),
      patches: this.#patches.toSorted((a, b) => compareText(patchName(a), patchName(b))),
      used: uses.map(({ ip, space, pod, text, place }) => ({
        address: formatIp(ip),
        addressSpace: space,
        holder: pod ?? text,
        source: place.object,
      })),
      findings: this.findings.sorted(),
    };
  }

  /** Returns a name that Kubernetes accepts and no other object of the kind has. */
  #nameFor({ kind, name: wanted, spec }: Draft, place: Place): string {
    const digest = digestOf(`${wanted} ${JSON.stringify(spec)}`);
    const valid = toName(wanted, digest);
    if (valid !== wanted) place.changed("metadata.name", wanted, `named ${valid}`);
    if (!this.#added.has(`${kind} ${valid}`)) return valid;
    const numbered = toName(`${valid.slice(0, MAX_LABEL_LENGTH - 9)}-${digest}`, digest);
    place.changed("metadata.name", wanted, `named ${numbered}: another ${kind} is named ${valid}`);
    return numbered;
  }

  /** Berth refuses a pool whose subnet partly overlaps that of another one. */
  #dropOverlapping(): void {
    const own = [...this.#added.values()].filter(({ manifest }) => manifest.kind === "IPPool");
    const pools = own.map(({ manifest, place }) => decodeIpPool(manifest, place.object));
    const names = new Set<string>(pools.map(({ name }) => name));
    const existing = this.#target.pools
      .filter(({ name }) => !names.has(name))
      .map((pool): IpPool => ({ ...pool, created: undefined }));
    const { refused } = checkPools([...existing, ...pools]);
    for (const { manifest, place } of own) {
      const reason = refused.get(manifest.metadata.name);
      if (reason === undefined) continue;
      const text = `pool "${manifest.metadata.name}" ${reason}`;
      place.problem("", manifest.spec.subnet, `not converted: ${text}`);
      this.#added.delete(`IPPool ${manifest.metadata.name}`);
    }
  }

  #countPodUses(): void {
    const spaces = new Map<string, Set<string>>();
    const lengths: Record<Family, Set<number>> = { 4: new Set(), 6: new Set() };
    for (const { manifest, place } of this.#added.values()) {
      if (manifest.kind !== "IPPool" && manifest.kind !== "Subnet") continue;
      const { subnet, addressSpace } =
        manifest.kind === "IPPool"
          ? decodeIpPool(manifest, place.object).spec
          : decodeSubnet(manifest, place.object).spec;
      lengths[subnet.ip.family].add(subnet.length);
      const key = formatPrefix(subnet);
      spaces.set(key, (spaces.get(key) ?? new Set()).add(addressSpace));
    }
    for (const { ip, place, ...holder } of this.#podUses) {
      const around = [...lengths[ip.family]].flatMap((length) => [
        ...(spaces.get(formatPrefix(maskPrefix({ ip, length }))) ?? []),
      ]);
      for (const space of new Set(around)) {
        const isRecorded = this.#uses.has(addressKey(ip, space)) || this.#target.allocated.has(addressKey(ip, space));
        // In one space a record tells which pool the pod's address is of; the other spaces may have the same address.
        if (isRecorded || around.length === 1) this.use(ip, space, holder, place);
      }
    }
  }

  /** Adds ReservedIPs for addresses in use, so that Berth does not allocate them. */
  #reserve(uses: readonly Use[]): void {
    for (const [space, inSpace] of Map.groupBy(uses, (use) => use.space)) {
      for (const family of FAMILIES) {
        const ranges = joinRanges(rangesOf(inSpace, family), family);
        for (let at = 0, number = 1; at < ranges.length; at += MAX_RANGES, number++) {
          const name = [
            this.peer,
            "in-use",
            `v${family}`,
            ...(space === "" ? [] : [space]),
            ...(number === 1 ? [] : [number]),
          ].join("-");
          const ips = ranges.slice(at, at + MAX_RANGES).map(formatRange);
          const spec = { ips, ...(space === "" ? {} : { addressSpace: space }) };
          const place = this.findings.placeOf("addresses in use", `ReservedIP "${name}"`);
          this.add({ kind: "ReservedIP", name, spec }, place);
        }
      }
    }
  }
}

function rangesOf(uses: readonly Use[], family: Family): Range[] {
  return uses.filter(({ ip }) => ip.family === family).map(({ ip }) => ({ first: ip, last: ip }));
}

/** `IPPool/blue`, `NetworkAttachmentDefinition/shop/lan-berth` */
export function identityOf({ kind, metadata: { namespace, name } }: Manifest): string {
  return [kind, ...(namespace === undefined ? [] : [namespace]), name].join("/");
}

/** `deployment/shop/web`, `namespace/shop`: as `--patch` takes it. */
export function patchName({ kind, namespace, name }: WorkloadPatch): string {
  return [kind.toLowerCase(), ...(namespace === "" ? [] : [namespace]), name].join("/");
}

/** Returns the text as an address space, a DNS label: two texts never give the same one. */
export function toAddressSpace(text: string): string {
  if (text === "" || isDnsLabel(text)) return text;
  const digest = digestOf(text);
  return `${toName(text, digest)
    .replaceAll(".", "-")
    .slice(0, MAX_LABEL_LENGTH - digest.length - 1)
    .replace(/-+$/, "")}-${digest}`;
}

/** Returns eight hexadecimal digits. */
function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}

/** Returns the text as the name of an object; `digest` stands in where nothing is left of it, or too much. */
function toName(text: string, digest: string): string {
  if (isDnsSubdomain(text)) return text;
  const cleaned = text
    .toLowerCase()
    .replace(/[^a-z0-9.-]+/g, "-")
    .replace(/[.-]*\.[.-]*/g, ".")
    .replace(/^[.-]+|[.-]+$/g, "");
  const short = cleaned.slice(0, MAX_LABEL_LENGTH - digest.length - 1).replace(/[.-]+$/, "");
  return cleaned !== "" && cleaned.length <= MAX_LABEL_LENGTH
    ? cleaned
    : [short, digest].filter((part) => part !== "").join("-");
}
