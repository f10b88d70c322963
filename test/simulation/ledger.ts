/** What has to be true of addresses, after every step and at the end. It sees NICs and objects, never the product's memory. */
import { formatIp } from "../../host/net/ip.ts";
import { parseAllocationName } from "../../host/resources/ip-allocation.ts";
import type { StoredObject } from "../fakes/memory-api-server.ts";
import type { PodObject } from "./kubelet.ts";
import type { Nic, Segment } from "./machine.ts";

interface Spec {
  readonly state: string;
  readonly node: string;
  readonly holders?: readonly { readonly podUID: string; readonly interface: string; readonly node: string }[];
  readonly workload?: { readonly uid: string; readonly member: string };
}

export class Ledger implements Segment {
  readonly problems: string[] = [];
  readonly #live = new Map<string, Set<Nic>>();
  /** Objects by address. */
  readonly #objects = new Map<string, Spec>();
  /** Deleted by hand while a NIC had them: until the product has made them again. */
  readonly #deletedByHand = new Set<string>();
  /** `db-0 eth0 4`: what the member's pods have shown first. */
  readonly #members = new Map<string, string>();
  /** Writes of allocations by address. */
  readonly writes = new Map<string, number>();
  adds = 0;
  restarts = 0;

  onUp(nic: Nic): void {
    for (const address of nic.addresses) {
      const all = this.#live.get(address) ?? new Set();
      all.add(nic);
      this.#live.set(address, all);
      // Its earlier pod's link goes in a moment.
      const others = [...all].filter((each) => each !== nic && !(each.isReleased && each.pod === nic.pod));
      if (others.length > 0)
        this.problems.push(`${address} is on two NICs: ${[...all].map(describeNic).join(" and ")}`);
      this.#requireRecord(address);
    }
  }

  onDown(nic: Nic, addresses: readonly string[]): void {
    for (const address of addresses) {
      const all = this.#live.get(address);
      all?.delete(nic);
      if (all?.size === 0) this.#live.delete(address);
    }
  }

  answers(address: string): boolean {
    return this.#live.has(address);
  }

  isLive(address: string): boolean {
    return this.#live.has(address);
  }

  /** Of the API server. */
  written(before: StoredObject | undefined, after: StoredObject | undefined, isByHand: boolean): void {
    const address = addressOf((after ?? before)?.metadata.name ?? "");
    if (after === undefined) this.#objects.delete(address);
    else this.#objects.set(address, after.spec as unknown as Spec);
    if (isByHand) {
      if (after === undefined) this.#deletedByHand.add(address);
      for (const [key, had] of [...this.#members]) if (had === address) this.#members.delete(key);
    } else this.writes.set(address, (this.writes.get(address) ?? 0) + 1);
    if (after !== undefined) this.#deletedByHand.delete(address);
    this.#requireRecord(address);
  }

  /** Every address that a pod shows is recorded as its own, or quarantined because its node is lost. */
  #requireRecord(address: string): void {
    if (this.#deletedByHand.has(address)) return;
    const spec = this.#objects.get(address);
    for (const nic of this.#live.get(address) ?? []) {
      if (nic.isReleased) continue;
      const isHolder =
        spec?.holders?.some(({ podUID, interface: name }) => podUID === nic.uid && name === nic.ifName) === true;
      if (spec?.state === "Quarantined" || (spec?.state === "Bound" && isHolder)) continue;
      const found = spec === undefined ? "nothing" : `${spec.state} ${JSON.stringify(spec.holders ?? [])}`;
      this.problems.push(`${address} is on ${describeNic(nic)}, and its record is ${found}`);
    }
  }

  /** A pod has shown the addresses. `member`: those of a workload that retains them. */
  shown({ name, uid }: PodObject, ifName: string, addresses: readonly string[], isMember: boolean): void {
    this.adds++;
    const families = addresses.map((address) => (address.includes(":") ? 6 : 4));
    if (addresses.length !== 2 || new Set(families).size !== 2)
      this.problems.push(`${name} (${uid}) got ${addresses.join(" ")} for ${ifName}: one of each family was due`);
    if (!isMember) return;
    for (const address of addresses) {
      const key = `${name} ${ifName} ${address.includes(":") ? 6 : 4}`;
      const had = this.#members.get(key);
      if (had === undefined) this.#members.set(key, address);
      else {
        this.restarts++;
        if (had !== address) this.problems.push(`${name} (${uid}) had ${had} on ${ifName}, and has ${address} now`);
      }
    }
  }

  /** The set no longer has the member, or somebody deleted what it retains. */
  forgetMember(name: string): void {
    for (const key of [...this.#members.keys()]) if (key.startsWith(`${name} `)) this.#members.delete(key);
  }

  /** What is not as it should be when all is quiet: sentences. */
  unfinished(expected: readonly PodObject[]): string[] {
    const faults: string[] = [];
    const had = new Map<string, number>();
    const uids = new Set(expected.map(({ uid }) => uid));
    for (const [address, nics] of this.#live)
      for (const nic of nics) {
        had.set(`${nic.uid} ${nic.ifName}`, (had.get(`${nic.uid} ${nic.ifName}`) ?? 0) + 1);
        if (!uids.has(nic.uid)) faults.push(`${address} is on ${describeNic(nic)}, whose pod is gone`);
      }
    for (const { name, uid, nics } of expected)
      for (const [ifName] of nics) {
        const count = had.get(`${uid} ${ifName}`) ?? 0;
        if (count !== 2) faults.push(`${name} (${uid}) has ${count} addresses on ${ifName}`);
      }
    for (const [address, { state, holders = [], workload }] of this.#objects) {
      if (state === "Bound" && holders.some(({ podUID }) => uids.has(podUID)) && this.#live.has(address)) continue;
      faults.push(`${address} is still ${state} ${JSON.stringify(holders)} ${workload?.member ?? ""}`);
    }
    for (const address of this.#live.keys()) {
      const spec = this.#objects.get(address);
      if (spec === undefined || spec.state !== "Bound")
        faults.push(`${address} is in use and ${spec?.state ?? "free"}`);
    }
    return faults;
  }
}

function describeNic({ machine, pod, uid, ifName }: Nic): string {
  return `${ifName} of ${pod} (${uid}) on ${machine}`;
}

function addressOf(name: string): string {
  const parsed = parseAllocationName(name);
  return parsed === undefined ? name : formatIp(parsed.ip);
}
