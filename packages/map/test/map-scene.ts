/**
 * A data centre's pools as the port of the address map shows them: tenants with blocks of their own, rollouts that
 * leave addresses cooling, databases that retain theirs, a few conflicts, and much that is free. The same seed makes
 * the same picture.
 *
 *   await using scene = await openMapScene();
 *   scene.change("10.20.3.4", undefined);        // every page that is open sees it
 */

import { VERSION } from "../../../host/bin/version.ts";
import { openLog } from "../../../host/lib/log.ts";
import { type Ip, parseIp } from "../../../host/net/ip.ts";
import { parsePrefix } from "../../../host/net/prefix.ts";
import { parseRange } from "../../../host/net/range.ts";
import type { AllocationState } from "../../../host/resources/ip-allocation.ts";
import { listenForViewers } from "../server/map-server.ts";
import type { MapAllocation, MapChange, MapPool, MapSource } from "../server/map-source.ts";
import { SAMPLE_MS, UsageSamples } from "../server/usage-samples.ts";

const POOL = "servers";
const SUBNET = "10.20.0.0/16";

/**
 * Blocks of /22, one after the other: whose they are, how full, and which states their addresses are in besides Bound.
 */
const TENANTS: readonly {
  readonly name: string;
  readonly blocks: number;
  readonly fill: number;
  /** Addresses follow one another, as with `selection: ascending`. */
  readonly isAscending?: true;
  readonly others?: Partial<Record<AllocationState, number>>;
}[] = [
  { name: "shop", blocks: 4, fill: 0.82, others: { Cooling: 0.06 } },
  { name: "search", blocks: 5, fill: 0.55 },
  { name: "batch", blocks: 3, fill: 0.35, others: { Cooling: 0.4 } },
  { name: "db", blocks: 4, fill: 0.7, isAscending: true, others: { Kept: 0.3 } },
  { name: "mail", blocks: 2, fill: 0.9, isAscending: true },
  { name: "video", blocks: 8, fill: 0.62, others: { Cooling: 0.02 } },
  { name: "queue", blocks: 3, fill: 0.5, isAscending: true, others: { Kept: 0.15 } },
  { name: "lab", blocks: 4, fill: 0.08 },
  { name: "web", blocks: 9, fill: 0.74, others: { Cooling: 0.03 } },
];

/** Addresses that another machine answers for. */
const CONFLICTS = ["10.20.9.77", "10.20.71.4", "10.20.71.5", "10.20.150.200"];

const CONDITIONS: readonly MapPool["conditions"][number][] = [
  { type: "Ready", status: "True", reason: "Ready", message: "" },
  {
    type: "ProxyArpSuspected",
    status: "True",
    reason: "SameMachineAnswers",
    message: "02:00:5e:00:00:66 answers for 4 addresses of the pool that are in quarantine",
  },
];

/** Answers of agents. */
const questions: MapSource["questions"] = {
  explain: async ({ name }) => ({ succeeds: false, lines: [`Pod ${name}: none of 16 addresses is free`], nics: [] }),
  history: async () => ({ lines: [], problems: [] }),
};

export interface MapScene extends AsyncDisposable {
  readonly url: string;
  /** Undefined: the address is free now. */
  change(address: string, state: AllocationState | undefined): void;
}

export async function openMapScene(): Promise<MapScene> {
  const allocations = new Map(allocationsOf().map((each) => [each.ip.value, each]));
  const listeners = new Set<(change: MapChange) => void>();
  const samples = new UsageSamples();
  takeDay(samples, allocations.size);
  const source: MapSource = {
    mode: "cluster",
    refresh: async () => {},
    pools: () => [poolOf(POOL, SUBNET, ["10.20.4.0-10.20.239.255"], CONDITIONS), small(), few(), six(), leasing()],
    reserved: () => [
      { name: "routers", addressSpace: "", ranges: ranges(["10.20.4.0-10.20.4.63", "10.20.176.0-10.20.179.255"]) },
    ],
    allocations: () => allocations.values(),
    problems: () => [],
    questions,
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  const address = { kind: "loopback", host: "127.0.0.1", port: 0 } as const;
  const log = openLog("map-scene", "silent");
  const nowMs = () => performance.now();
  const server = await listenForViewers({
    ...{ address, tls: undefined, isInsecure: false, version: VERSION, source, samples, api: undefined, nowMs, log },
  });
  return {
    url: server.url,
    change: (text, state) => {
      const ip = requireIp(text);
      const allocation = state && allocationOf(ip, state, "late", 0);
      if (allocation === undefined) allocations.delete(ip.value);
      else allocations.set(ip.value, allocation);
      for (const tell of listeners) tell({ ip, addressSpace: "", allocation });
    },
    [Symbol.asyncDispose]: () => server.close(),
  };
}

function requireIp(text: string): Ip {
  const ip = parseIp(text);
  if (ip === undefined) throw new Error(text);
  return ip;
}

function ranges(texts: readonly string[]) {
  return texts.flatMap((text) => parseRange(text) ?? []);
}

function poolOf(
  name: string,
  text: string,
  own: readonly string[],
  conditions: readonly MapPool["conditions"][number][] = [],
): MapPool {
  const subnet = parsePrefix(text);
  if (subnet === undefined) throw new Error(text);
  const common = {
    addressSpace: "",
    excluded: [],
    gateway: undefined,
    exceptions: [],
    isDisabled: false,
    generated: undefined,
  };
  return { ...common, name, subnet, ranges: ranges(own), isDefault: name === POOL, conditions };
}

/** It has two blocks, another cluster three. */
const leasing = (): MapPool => ({
  ...poolOf("lan", "10.6.0.0/24", ["10.6.0.0-10.6.0.15", "10.6.0.64-10.6.0.79"]),
  elsewhere: [{ member: "west", blocks: 3, ranges: ranges(["10.6.0.16-10.6.0.47", "10.6.0.240-10.6.0.255"]) }],
});

/** All but one of its addresses are in use. */
const small = () => poolOf("edge", "192.0.2.0/27", ["192.0.2.10-192.0.2.25"]);
/** A few addresses in the midst of a large subnet. */
const few = () => poolOf("dmz", "10.30.0.0/16", ["10.30.127.250-10.30.128.5"]);
const six = () => poolOf("servers-v6", "fd00:20::/64", ["fd00:20::1000-fd00:20::ffff:ffff"]);

function allocationOf(ip: Ip, state: AllocationState, tenant: string, member: number): MapAllocation {
  const node = `node-${String((member * 7) % 40).padStart(2, "0")}`;
  const name = `${tenant}-${member}`;
  const isSet = state === "Kept" || tenant === "db" || tenant === "queue";
  const holder = { namespace: tenant, pod: name, ifName: "eth0", node };
  return {
    ip,
    addressSpace: "",
    pool: ip.family === 6 ? "servers-v6" : ip.value >> 8n === 0xc00002n ? "edge" : POOL,
    state,
    holders: state === "Bound" ? [holder] : [],
    workload: isSet
      ? { kind: "StatefulSet", namespace: tenant, name: tenant, uid: `u-${tenant}`, member: name }
      : undefined,
    mac: state === "Quarantined" ? "02:00:5e:00:00:66" : `0a:58:${macOf(ip)}`,
    since: "2026-11-20T04:00:00Z",
  };
}

function macOf({ value }: Ip): string {
  return [24n, 16n, 8n, 0n].map((shift) => ((value >> shift) & 255n).toString(16).padStart(2, "0")).join(":");
}

function allocationsOf(): MapAllocation[] {
  const random = seeded(7);
  const found: MapAllocation[] = [];
  let block = requireIp("10.20.8.0").value;
  for (const { name, blocks, fill, isAscending, others = {} } of TENANTS) {
    const size = 1_024 * blocks;
    for (let at = 0; at < size; at++) {
      const isUsed = isAscending ? at < size * fill : random() < fill;
      if (!isUsed) continue;
      const state = stateFor(others, random());
      const ip = { family: 4, value: block + BigInt(at) } as const;
      found.push(allocationOf(ip, state, name, at));
    }
    block += BigInt(size);
  }
  const conflicts = CONFLICTS.map((text) => allocationOf(requireIp(text), "Quarantined", "", 0));
  const edge = Array.from({ length: 15 }, (_, at) =>
    allocationOf({ family: 4, value: requireIp("192.0.2.10").value + BigInt(at) }, "Bound", "edge", at),
  );
  const six = [0x1000n, 0x1001n, 0x4_0010n, 0x4_0011n, 0xffff_fff0n].map((low, at) =>
    allocationOf({ family: 6, value: (0xfd00_0020n << 96n) + low }, at === 2 ? "Cooling" : "Bound", "shop", 9_000 + at),
  );
  return [
    ...found.filter(({ ip }) => !conflicts.some((each) => each.ip.value === ip.value)),
    ...conflicts,
    ...edge,
    ...six,
  ];
}

/** `dice` is from 0 to 1. */
function stateFor(others: Partial<Record<AllocationState, number>>, dice: number): AllocationState {
  let sum = 0;
  for (const state of ["Cooling", "Kept"] as const) {
    sum += others[state] ?? 0;
    if (dice < sum) return state;
  }
  return "Bound";
}

/** A day of the pool, until three in the afternoon: fewer at night, a rollout at noon. */
function takeDay(samples: UsageSamples, used: number): void {
  const now = Date.now();
  const shareAt = (hour: number) => 0.9 + 0.1 * Math.sin(((hour - 9) / 24) * 2 * Math.PI) + rolloutAt(hour);
  for (let minute = 1_439; minute >= 0; minute--) {
    const share = shareAt((39 - minute / 60) % 24) / shareAt(15);
    samples.take(new Map([[POOL, Math.round(used * share)]]), now - minute * SAMPLE_MS);
  }
}

/** Old and new pods beside each other, for an hour. */
const rolloutAt = (hour: number): number => Math.max(0, 0.05 - 0.1 * Math.abs(hour - 12));

/** Returns a function whose numbers from 0 to 1 are the same in each run. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return ((state ^ (state >>> 15)) >>> 0) / 2 ** 32;
  };
}
