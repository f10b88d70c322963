/**
 * Explains the answer that an ADD of a pod's NICs would get now: the ADD on a view, with the candidate pools of its
 * selection and the addresses that are free in the cluster.
 */
import type { CniError } from "../../cni/error.ts";
import { requireBounded } from "../../cni/net-conf.ts";
import { type AttachRequest, decodeRequest } from "../../cni/request.ts";
import type { NicDemand, Selection } from "../../ipam/model.ts";
import { poolsOf, withheldFrom } from "../../ipam/pick.ts";
import { describeDemand } from "../../ipam/refusal.ts";
import { ApiError, ApiUnavailable } from "../../kubernetes/kube-api.ts";
import { formatIp } from "../../net/ip.ts";
import type { SourceName } from "../../records/audit-line.ts";
import {
  type AddressRecord,
  type CandidateRecord,
  describeOutcome,
  type ExplanationRecord,
  type NicRecord,
} from "../../records/explanation-record.ts";
import { type Allocation, RegistryError } from "../../registry/registry.ts";
import type { IpPool } from "../../resources/ip-pool.ts";
import type { AddDeps } from "../ipam/add.ts";
import { LiveUsage } from "../ipam/live-usage.ts";
import { type ReadinessSource, requireReady } from "../ipam/plugin.ts";
import type { PodIdentity } from "../ipam/pod-identity.ts";
import type { NicNetwork } from "../request/nic-definition.ts";
import type { Assigned } from "../request/plugin.ts";
import { AddView } from "./add-view.ts";

/** Most candidate pools of a NIC that are counted in the cluster; others are shown by this node's knowledge. */
const MAX_COUNTED_POOLS = 16;

/** Longest time an explanation of a pod takes: milliseconds. */
const EXPLAIN_LIMIT_MS = 9_000;

/** The container ID of the request, in place of a runtime's. */
const CONTAINER = "explain";
const NETNS = "/run/netns/explain";

/** The network name of a NIC whose network is unknown. */
const UNKNOWN_NETWORK = "unknown";

export interface Question {
  readonly namespace: string;
  readonly pod: string;
  /** If undefined, every NIC that the pod announces. */
  readonly ifName?: string | undefined;
  /** Name of the network's configuration, or of its NetworkAttachmentDefinition; by default the annotations'. */
  readonly network?: string | undefined;
}

interface ExplainDeps {
  readonly ipam: AddDeps;
  readonly backend: Omit<ReadinessSource, "synced">;
  /** Returns the error that the runtime would see. */
  readonly toCniError: (error: unknown) => CniError;
}

/** An input of the answer could not be read: the ADD's answer is unknown. The text names the input and the reason. */
export class UnreadError extends Error {
  override readonly name = "UnreadError";
}

/** Changes nothing, in the cluster or on this node. Rejects with UnreadError, and when the time is over. */
export async function explainPod(deps: ExplainDeps, question: Question): Promise<ExplanationRecord> {
  const signal = AbortSignal.timeout(EXPLAIN_LIMIT_MS);
  const { ipam, backend, toCniError } = deps;
  const { namespace, pod } = question;
  const refusalOf = (error: unknown): CniError => {
    signal.throwIfAborted();
    if (error instanceof UnreadError) throw error;
    // The API server did not answer, or refused to: it may be the agent's question that is wrong.
    for (let cause = error; cause instanceof Error; cause = cause.cause)
      if (cause instanceof ApiError || cause instanceof ApiUnavailable)
        throw new UnreadError(
          `What pod ${namespace}/${pod} would get is unknown; this agent could not read it: ${cause.message}`,
        );
    return toCniError(error);
  };
  try {
    requireReady(backend);
    const identity = await ipam.identifier.find(namespace, pod);
    await ipam.inventory.loaded();
    const view = new AddView(ipam, backend.health.trouble, signal);
    return await new PodExplainer({ ipam, view, question, identity, refusalOf }).explain();
  } catch (error) {
    const { code, message } = refusalOf(error);
    return { succeeds: false, lines: [`an ADD now would be refused with code ${code}: ${message}`], nics: [] };
  }
}

interface PodQuestion {
  readonly ipam: AddDeps;
  readonly view: AddView;
  readonly question: Question;
  readonly identity: PodIdentity;
  /** Returns the error that the runtime would see. Throws UnreadError, and the signal's reason. */
  readonly refusalOf: (error: unknown) => CniError;
}

/** The state before a NIC's ADD, to say where its addresses come from. */
interface Before {
  readonly selection: Selection;
  /** Names of the pools whose usage was counted. */
  readonly counted: ReadonlySet<string>;
}

class PodExplainer {
  readonly #given: PodQuestion;
  /** About the NICs, beside their outcomes. */
  readonly #lines: string[] = [];
  readonly #notes: string[] = [];

  constructor(given: PodQuestion) {
    this.#given = given;
  }

  async explain(): Promise<ExplanationRecord> {
    const at = `${new Date().toISOString().slice(0, 19)}Z`;
    const held = await this.#readHeld();
    const nics = this.#nicsOfQuestion(held);
    this.#notes.push(...this.#notesOfPod());
    const records: NicRecord[] = [];
    for (const nic of nics) records.push(await this.#explainNic(nic, nics.length === 1));
    const { epoch } = this.#given.ipam.cluster ?? {};
    if (epoch?.isOpen === true) this.#notes.push(`the registry is new, and first addresses wait for ${epoch.waitsFor}`);
    this.#notes.push(`seen at ${at}; another pod may be faster`);
    return {
      succeeds: records.every(({ outcome }) => outcome === "allocated"),
      lines: [
        ...records.map(describeOutcome),
        ...this.#lines,
        ...held.map(({ ip, ifName, pool, state }) => `${ifName} has ${formatIp(ip)} of pool "${pool}" (${state})`),
        ...this.#notes.map((note) => `note: ${note}`),
      ],
      nics: records,
    };
  }

  /** Returns the NICs of the question. One without a definition is of the network of the address that it has. */
  #nicsOfQuestion(held: readonly Allocation[]): readonly NicNetwork[] {
    const { networks, inventory } = this.#given.ipam;
    const { ifName, network } = this.#given.question;
    const { subject } = this.#given.identity;
    const announced = subject === undefined ? [] : networks.nicsOf(subject);
    const isMeant = (nic: NicNetwork): boolean =>
      (ifName === undefined || nic.ifName === ifName) && (network === undefined || isNamed(nic, network));
    const found = announced.filter(isMeant);
    if (found.length === 0) found.push({ ifName: ifName ?? inventory.snapshot.firstNic, network: "", plugins: [] });
    return found.map((nic) => {
      if (nic.network !== "") return nic;
      const known = network ?? held.find((row) => row.ifName === nic.ifName)?.network ?? "";
      return { ...nic, network: known, plugins: (known && networks.pluginsOf(known)) || [] };
    });
  }

  #notesOfPod(): string[] {
    const { ipam, identity } = this.#given;
    const { namespace, name, node, subject } = identity;
    if (node !== undefined && node !== ipam.node.name)
      return [`pod ${namespace}/${name} is bound to node "${node}"; this is the answer of node "${ipam.node.name}"`];
    const isKnown = ipam.cluster !== undefined || ipam.inventory.snapshot.pods.has(`${namespace}/${name}`);
    if (isKnown || subject === undefined) return [];
    return [`pod ${namespace}/${name} has no manifest here: only its runtime knows its annotations`];
  }

  /** Returns the addresses that the pod has. */
  async #readHeld(): Promise<readonly Allocation[]> {
    const { owner } = this.#given.identity;
    return owner === "" ? [] : this.#given.ipam.inventory.registry.findOwner(owner);
  }

  async #explainNic(nic: NicNetwork, isOnly: boolean): Promise<NicRecord> {
    const { ifName, network, plugins } = nic;
    const place = { interface: ifName, network: network || undefined };
    const isForeign = plugins.length > 0 && findBerth(plugins) === undefined;
    if (isForeign) return { ...place, outcome: "foreign", addresses: [], pools: [] };
    let before: Before | undefined;
    const startMs = this.#given.view.waitedMs;
    let outcome: Pick<NicRecord, "outcome" | "addresses" | "waitedMs" | "code" | "message" | "details">;
    try {
      const assigned = await this.#given.view.add(requestOf(this.#given.identity, nic), async (selection) => {
        before ??= { selection, counted: await this.#count(selection) };
      });
      const addresses = describeAddresses(assigned, before);
      outcome = { outcome: "allocated", addresses, waitedMs: this.#given.view.waitedMs - startMs };
    } catch (error) {
      const { code, message, details } = this.#given.refusalOf(error);
      outcome = { outcome: "refused", code, message, details, addresses: [] };
    }
    if (before !== undefined) this.#lines.push(...this.#linesOf(ifName, before, isOnly));
    this.#notes.push(...this.#notesOf(nic));
    return { ...place, ...this.#describeBefore(ifName, before), ...outcome };
  }

  /** Reads the usage of the candidate pools in the cluster. Returns the names of those that were read. */
  async #count({ nics }: Selection): Promise<ReadonlySet<string>> {
    const { registry, poolCache } = this.#given.ipam.inventory;
    const { records } = this.#given.ipam.cluster ?? {};
    if (records === undefined) return new Set();
    const pools = new Map(nics.flatMap(({ families }) => families.flatMap(poolsOf)).map((pool) => [pool.name, pool]));
    const counted = new Set<string>();
    for (const pool of [...pools.values()].slice(0, MAX_COUNTED_POOLS)) {
      try {
        await new LiveUsage({ registry, records, poolCache, keepsEstimates: true }).refresh([pool]);
        counted.add(pool.name);
      } catch (error) {
        if (!(error instanceof RegistryError)) throw error;
      }
    }
    return counted;
  }

  #linesOf(ifName: string, { selection, counted }: Before, isOnly: boolean): string[] {
    const { poolCache } = this.#given.ipam.inventory;
    const shown = selection.nics.filter((nic) => isOnly || nic.ifName === ifName);
    const isComplete = this.#given.ipam.cluster === undefined;
    const room = new Map(
      shown
        .flatMap(({ families }) => families.flatMap(poolsOf))
        .map(({ name }) => {
          const { free, total } = poolCache.counts(name) ?? { free: 0n, total: 0n };
          const source = poolCache.isEstimate(name) ? ", at the last count of the controller" : "";
          const isKnown = isComplete || counted.has(name);
          return [name, `${describeRoom(free, total)}${isKnown ? source : ", as far as this node knows"}`];
        }),
    );
    return [
      ...shown.flatMap((nic) => describeDemand(nic, room).split("\n")),
      ...shown.flatMap((nic) => nic.families.flatMap(poolsOf).flatMap((pool) => describeWithheld(nic, pool))),
      ...selection.warnings.map((warning) => `warning: ${warning}`),
    ];
  }

  #describeBefore(ifName: string, before: Before | undefined): Pick<NicRecord, "rule" | "pools"> {
    const nic = before?.selection.nics.find((each) => each.ifName === ifName);
    if (nic === undefined) return { pools: [] };
    const pools = nic.families.flatMap(({ family, candidates }) =>
      candidates.map(({ name, refusal }): CandidateRecord => {
        if (refusal !== undefined) return { name, family, refusal };
        const { free, total } = this.#given.ipam.inventory.poolCache.counts(name) ?? { free: 0n, total: 0n };
        return { name, family, free: String(free), total: String(total) };
      }),
    );
    return { rule: nic.rule, pools };
  }

  /** Returns notes on the facts about the NIC that the view lacks. */
  #notesOf({ ifName, network, plugins, isAsking }: NicNetwork): string[] {
    const { ipam, identity } = this.#given;
    const nic = { ifName, network: network || UNKNOWN_NETWORK, pod: identity.subject };
    const { detectIPConflict, mode } = ipam.networks.definitionOf(nic).settings;
    return [
      ...(plugins.length === 0
        ? [`no definition of the network of ${ifName} is known here: its default pools are not considered`]
        : []),
      ...(isAsking === true ? [`${ifName} requests addresses by name, which are not considered`] : []),
      ...(detectIPConflict && mode !== "disable"
        ? [`addresses of ${ifName} are probed before they are used; a machine that answers changes the result`]
        : []),
    ];
  }
}

function isNamed({ network, attachment }: NicNetwork, name: string): boolean {
  return network === name || attachment === name || attachment?.replace(/^.*\//, "") === name;
}

/** Returns the entry whose IPAM plugin is Berth. */
function findBerth(plugins: NicNetwork["plugins"]): NicNetwork["plugins"][number] | undefined {
  return plugins.find(({ entry: { ipam } }) => Object(ipam).type === "berth");
}

/**
 * Returns the request as a runtime would make it, from the network's definition. Throws the refusal of a malformed
 * definition.
 */
function requestOf(
  { namespace, name, owner, subject }: PodIdentity,
  { ifName, network, plugins }: NicNetwork,
): AttachRequest {
  const uid = owner === "" || subject === undefined ? [] : [`K8S_POD_UID=${owner}`];
  const headers = {
    "cni-command": "ADD",
    "cni-containerid": CONTAINER,
    "cni-netns": NETNS,
    "cni-ifname": ifName,
    "cni-path": "/opt/cni/bin",
    "cni-args": [`K8S_POD_NAMESPACE=${namespace}`, `K8S_POD_NAME=${name}`, ...uid].join(";"),
  };
  const { entry = { type: "", ipam: { type: "berth" } } } = findBerth(plugins) ?? {};
  const conf = { cniVersion: "1.0.0", ...entry, name: network || UNKNOWN_NETWORK };
  const request = decodeRequest("berth", headers, JSON.stringify(conf)) as AttachRequest;
  requireBounded(request.netConf);
  return request;
}

function describeAddresses({ allocations, sources, rule }: Assigned, before: Before | undefined): AddressRecord[] {
  return allocations
    .map((row, index): AddressRecord => {
      const { ip, prefixLength, pool } = row;
      const source = (sources[index] ?? "free") as SourceName;
      const reason = source === "free" ? reasonOfPool(row, rule, before) : reasonOfSource(row, source);
      return { address: formatIp(ip), prefixLength, pool, source, reason };
    })
    .sort((a, b) => Number(a.address.includes(":")) - Number(b.address.includes(":")));
}

const SOURCE_CLAUSES: Readonly<Record<SourceName, string>> = {
  own: "which it has already, or had until just now",
  prefetched: "which was claimed ahead of the ADD",
  requested: "which its annotation, its IPAMClaim, a ReservedIP or the runtime names",
  retained: "which is retained for its workload",
  free: "which is free",
  cooling: "which was released on this node a short while ago, because nothing else is free",
  "others-cooling": "which was released on another node a short while ago, because nothing else is free",
  quarantined: "which leaves quarantine after a probe, because nothing else is free",
};

/** Returns why the NIC would get a free address of just this pool, a clause. */
function reasonOfPool({ ip, pool, ifName }: Allocation, rule: string, before: Before | undefined): string {
  const nic = before?.selection.nics.find((each) => each.ifName === ifName);
  const candidates = nic?.families.find(({ family }) => family === ip.family)?.candidates ?? [];
  const isFirst = candidates.length === 0 || candidates[0]?.name === pool;
  return `which is free, by ${rule}${isFirst ? "" : "; no pool named before it can serve"}`;
}

function reasonOfSource({ workload }: Allocation, source: SourceName): string {
  if (source === "retained" && workload !== undefined)
    return `which is retained for ${workload.kind} "${workload.namespace}/${workload.name}"`;
  return SOURCE_CLAUSES[source];
}

function describeWithheld(nic: NicDemand, pool: IpPool): string[] {
  return withheldFrom(nic, pool).map(
    ({ ip, why }) => `${nic.ifName} is not given ${formatIp(ip)} of pool "${pool.name}": ${why}`,
  );
}

/** Whether the pool has room, of a pool that fits: one without may still have an address for this very pod. */
function describeRoom(free: bigint, total: bigint): string {
  if (total === 0n) return "fits, but has no addresses";
  if (free > 0n) return `fits, ${free} of ${total} addresses are free`;
  return total === 1n ? "fits, but its only address is not free" : `fits, but none of its ${total} addresses is free`;
}
