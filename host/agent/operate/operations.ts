/**
 * Releases and quarantines that an administrator orders with berthctl. They go through the registry's own
 * transitions, and each names the version of the row that was judged: an ADD or a DEL in between makes it fail.
 */
import { randomUUID } from "node:crypto";
import { formatDuration } from "../../config/fields/duration.ts";
import {
  type OperationFacts,
  type OperationRefusal,
  refuseQuarantine,
  refuseRelease,
  refuseReported,
} from "../../ipam/plan-operation.ts";
import { formatIp, type Ip } from "../../net/ip.ts";
import { formatAddressName } from "../../records/allocation-record.ts";
import type { OperationRecord } from "../../records/operation-record.ts";
import { listRows } from "../../registry/list-rows.ts";
import type { Allocation, Quarantine } from "../../registry/registry.ts";
import type { IpPool } from "../../resources/ip-pool.ts";
import type { Backend } from "../backend.ts";
import type { Audit } from "../log/audit.ts";
import { readNetnsStatus } from "../netns/pod-netns.ts";

interface AddressName {
  readonly ip: Ip;
  readonly space: string;
}

interface OperationOptions {
  readonly isDryRun: boolean;
  readonly isForced: boolean;
}

/** A report's facts about an address: a record that has changed since is not released. */
export interface ReportedRecord {
  readonly owner: string;
  readonly containerId: string;
}

interface OperationsDeps {
  readonly backend: Pick<Backend, "ipam" | "readPodsOf">;
  readonly audit: Audit;
  readonly nowMs: () => number;
}

type Step = OperationRecord["steps"][number];

export class Operations {
  readonly #deps: OperationsDeps;

  constructor(deps: OperationsDeps) {
    this.#deps = deps;
  }

  /** Bound → Cooling, of one address or of all that a pod has. Rejects with RegistryError. */
  async release(
    target: AddressName | { namespace: string; pod: string },
    options: OperationOptions,
    reported?: ReportedRecord,
  ): Promise<OperationRecord> {
    const rows = "ip" in target ? await this.#rowOf(target) : await this.#rowsOf(target);
    const steps = await Promise.all(
      rows.map(async (row) => {
        const refusal = refuseReported(row, reported) ?? refuseRelease(await this.#factsOf(row));
        return stepOf(row, `${row.state}${ownerOf(row)} → Cooling`, refusal, options);
      }),
    );
    if ("ip" in target && rows.length === 0) {
      const isOver = reported !== undefined;
      const refusal = { why: "this node has no record of it", isForceable: false, isOver };
      steps.push(stepOf({ ...target }, "released", refusal, options));
    }
    if (!mayAct(steps, options)) return { steps, isDone: false };
    const { registry } = this.#deps.backend.ipam.inventory;
    const release = async (row: Allocation): Promise<boolean> => {
      const isReleased = (await registry.collect(row)) !== undefined;
      if (isReleased) this.#record("RELEASE", [row], options);
      return isReleased;
    };
    const done = await Promise.all(rows.map(release));
    const left = steps.map((step, index) => (done[index] === true ? step : { ...step, ...LOST_RACE }));
    return { steps: left, isDone: done.every(Boolean) };
  }

  /** Anything but a retained address → Quarantined, to be probed after `forMs`. Rejects with RegistryError. */
  async quarantine(address: AddressName, forMs: number, options: OperationOptions): Promise<OperationRecord> {
    const { ip, space } = address;
    const { registry, poolCache } = this.#deps.backend.ipam.inventory;
    const { pools } = await this.#deps.backend.ipam.inventory.loaded();
    const [row] = await this.#rowOf(address);
    const pool = [...pools.values()].find(
      ({ name, spec }) => spec.addressSpace === space && poolCache.contains(name, ip),
    );
    const refusal =
      row === undefined && pool === undefined
        ? { why: "no pool allocates it", isForceable: false }
        : refuseQuarantine(row && (await this.#factsOf(row)));
    const before = row === undefined ? "free" : `${row.state}${ownerOf(row)}`;
    const what = `${before} → Quarantined, first probed after ${formatDuration(forMs)}`;
    const steps = [stepOf(address, what, refusal, options)];
    if (!mayAct(steps, options)) return { steps, isDone: false };
    const bound = row?.state === "Bound" ? row : await this.#claim(address, row, pool);
    if (bound === undefined) return lostRace(steps);
    const nextProbeAtMs = this.#deps.nowMs() + forMs;
    const quarantine: Quarantine = { reason: "Conflict", mac: undefined, parent: "", nextProbeAtMs };
    const found = await registry.quarantine(bound, quarantine);
    if (found === undefined) return lostRace(steps);
    poolCache.mark(space, ip);
    this.#record("QUARANTINE", [found], options);
    return { steps, isDone: true };
  }

  /** Quarantined → free, although a machine may answer for the address. Rejects with RegistryError. */
  async endQuarantine(address: AddressName, options: OperationOptions): Promise<OperationRecord> {
    const [row] = await this.#rowOf(address);
    const refusal =
      row?.state === "Quarantined" ? undefined : { why: "this node has it in no quarantine", isForceable: false };
    const machine = row?.quarantine?.mac === undefined ? "" : `, for which ${row.quarantine.mac} answered`;
    const steps = [stepOf(address, `Quarantined${machine} → free`, refusal, options)];
    if (row === undefined || !mayAct(steps, options)) return { steps, isDone: false };
    await this.#deps.backend.ipam.inventory.registry.endQuarantine(row);
    const [left] = await this.#rowOf(address);
    if (left !== undefined && left.state !== "Cooling") return lostRace(steps);
    this.#record("RELEASE", [row], options);
    return { steps, isDone: true };
  }

  async #rowOf({ ip, space }: AddressName): Promise<Allocation[]> {
    const row = await this.#deps.backend.ipam.inventory.registry.findAddress(space, ip);
    return row === undefined ? [] : [row];
  }

  /** Returns the rows that are not released yet. */
  async #rowsOf({ namespace, pod }: { namespace: string; pod: string }): Promise<Allocation[]> {
    const rows: Allocation[] = [];
    for await (const row of listRows(this.#deps.backend.ipam.inventory.registry))
      if (row.namespace === namespace && row.pod === pod && row.state === "Bound") rows.push(row);
    return rows;
  }

  async #factsOf(row: Allocation): Promise<OperationFacts> {
    const unknown = () => ({ kind: "unknown" as const });
    const statusOf = await this.#deps.backend.readPodsOf?.([row]).catch(() => unknown);
    return { row, pod: statusOf?.(row), netns: await readNetnsStatus(row) };
  }

  /** Returns the address as Bound to this order; undefined if another owner has it by now. */
  async #claim(
    { ip, space }: AddressName,
    row: Allocation | undefined,
    pool: IpPool | undefined,
  ): Promise<Allocation | undefined> {
    const { registry } = this.#deps.backend.ipam.inventory;
    const prefixLength = row?.prefixLength ?? pool?.spec.subnet.length ?? 0;
    // No pod has such a NIC, and no other order such an owner. The claim ends after two minutes if the agent does.
    const nic = { ifName: "quarantine", containerId: "", network: "" };
    const place = { space, ip, prefixLength, pool: row?.pool ?? pool?.name ?? "", ifName: nic.ifName };
    const proposal = row === undefined ? place : { ...place, replaces: row.version };
    const claim = { ...nic, owner: `berthctl-${randomUUID()}`, namespace: "", pod: "", proposals: [proposal] };
    const outcome = await registry.claim(claim, AbortSignal.timeout(10_000));
    return outcome.kind === "bound" ? outcome.created[0] : undefined;
  }

  #record(audit: "RELEASE" | "QUARANTINE", allocations: readonly Allocation[], { isForced }: OperationOptions): void {
    this.#deps.audit.record({ audit, allocations, rule: `ordered with berthctl${isForced ? " --force" : ""}` });
  }
}

function stepOf(
  { ip, space }: AddressName,
  what: string,
  refusal: OperationRefusal | undefined,
  { isForced }: OperationOptions,
): Step {
  const step = { address: formatAddressName(formatIp(ip), space), what };
  if (refusal === undefined || (refusal.isForceable && isForced)) return step;
  const { why, isForceable, isOver } = refusal;
  return { ...step, refusal: why, isForceable, ...(isOver === true ? { isOver } : {}) };
}

/** All or nothing. */
function mayAct(steps: readonly Step[], { isDryRun }: OperationOptions): boolean {
  return !isDryRun && steps.every(({ refusal }) => refusal === undefined);
}

function ownerOf({ namespace, pod, ifName, state }: Allocation): string {
  if (state !== "Bound") return "";
  return pod === "" ? ` to ${ifName}` : ` to ${ifName} of pod ${namespace}/${pod}`;
}

const LOST_RACE = { refusal: "another owner has it, or it has changed meanwhile", isForceable: false };

function lostRace(steps: readonly Step[]): OperationRecord {
  return { steps: steps.map((step) => ({ ...step, ...LOST_RACE })), isDone: false };
}
