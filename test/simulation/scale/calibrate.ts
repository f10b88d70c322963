/**
 * `npm run calibrate`: what the lab's real etcd and kube-apiserver cost, for the simulated one of the scale runs.
 * Writes calibration.json beside this file, and calibration.md from it. `npm run calibrate -- --only names` measures
 * watches of one object by its name beside watches by a field alone, and `--only lists` lists among many allocations;
 * they replace these rows.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { formatIp } from "../../../host/net/ip.ts";
import { allocationName, type IpAllocationSpec } from "../../../host/resources/ip-allocation.ts";
import { startControllerProcess } from "../../lab/cluster/controller-process.ts";
import * as objects from "../../lab/cluster/objects.ts";
import { startPlane } from "../../lab/cluster/plane.ts";
import { requestNodeToken } from "../../lab/cluster/rights.ts";
import type { ControlPlane } from "../../lab/control-plane.ts";
import { openEtcd } from "../../lab/history/etcd.ts";
import { inParallel } from "../../lab/parallel.ts";
import { daemonCpuMs, daemonRssMib, percentile } from "../../lab/statistics.ts";
import { until } from "../../lab/waiting.ts";
import { type Calibration, describeCalibration, type FanOut, type RequestCost } from "./calibration.ts";
import { Watchers } from "./watchers.ts";

const PODS = "/api/v1/namespaces/scale/pods";
const CONCURRENCIES = [1, 8, 32];
const COUNT = Number(process.env.CALIBRATE_COUNT ?? 1_200);
const ALLOCATIONS = Number(process.env.CALIBRATE_ALLOCATIONS ?? 150_000);
const NODES = 5_000;
const WATCHERS = (process.env.CALIBRATE_WATCHERS ?? "0,500,1000,2000,4000").split(",").map(Number);
const NAME_WATCHERS = [0, 2_000];
const PLAIN_WATCHERS = [0, 250, 500, 1000];
const CALM_MS = 1_500;
const LISTS = 8;
const HEARD_MS = 10_000;

function specOf(number: number): IpAllocationSpec {
  const node = `n${number % NODES}`;
  const podUid = `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
  const holder = { namespace: "scale", pod: `web-${number % 3_000}-5d9c7f6b8-${number}`, podUid, ifName: "eth0", node };
  const address = formatIp({ family: 4, value: 0x0a_00_00_00n + BigInt(number) });
  return objects.allocationSpec(address, {
    ...{ prefixLength: 8, pool: `scale-${number % 10_000}`, node, holders: [holder] },
    since: "2026-01-01T00:00:00.000Z",
  });
}

const nameOf = (number: number): string => allocationName(specOf(number).ip, "");

class Bench {
  readonly plane: ControlPlane;
  readonly requests: RequestCost[] = [];
  constructor(plane: ControlPlane) {
    this.plane = plane;
  }

  get cpuMs(): number {
    return this.plane.pids.reduce((sum, pid) => sum + daemonCpuMs(pid), 0);
  }

  async measure(kind: string, atOnce: number, count: number, work: (index: number) => Promise<unknown>) {
    const numbers = Array.from({ length: count }, (_, index) => index);
    const cpuMs = this.cpuMs;
    const startMs = performance.now();
    const times = await inParallel(numbers, atOnce, async (index) => {
      const beganMs = performance.now();
      await work(index);
      return performance.now() - beganMs;
    });
    const wallMs = performance.now() - startMs;
    const cost: RequestCost = {
      kind,
      atOnce,
      count,
      p50Ms: percentile(times, 0.5),
      p99Ms: percentile(times, 0.99),
      perSecond: (count * 1_000) / wallMs,
      serverCpuMs: (this.cpuMs - cpuMs) / count,
    };
    this.requests.push(cost);
    console.log(JSON.stringify(cost));
    return cost;
  }
}

/** With the rights of node n1's agent for its addresses: an agent's requests meet the policies. */
async function measureRequests(bench: Bench): Promise<void> {
  const { client } = bench.plane;
  const agent = await bench.plane.openClient({ token: await requestNodeToken(client, "n1") });
  for (const [round, atOnce] of CONCURRENCIES.entries()) {
    const count = atOnce === 1 ? Math.ceil(COUNT / 3) : COUNT;
    const number = (index: number): number => 1_000_000 + round * COUNT + index;
    const ownSpec = (index: number): IpAllocationSpec => {
      const spec = specOf(number(index));
      return { ...spec, node: "n1", holders: spec.holders.map((holder) => ({ ...holder, node: "n1" })) };
    };
    const body = (index: number) => objects.allocationObject(ownSpec(index));
    const path = (index: number) => `${objects.ALLOCATIONS}/${nameOf(number(index))}`;
    const made: { metadata: { resourceVersion: string } }[] = [];
    await bench.measure("create ipallocations", atOnce, count, async (index) => {
      made[index] = await agent.create(objects.ALLOCATIONS, body(index));
    });
    await bench.measure("get ipallocations", atOnce, count, (index) => agent.get(path(index)));
    await bench.measure("update ipallocations", atOnce, count, (index) => {
      const { resourceVersion } = made[index]?.metadata ?? {};
      const spec = { ...ownSpec(index), since: "2026-01-02T00:00:00.000Z" };
      return agent.put(path(index), objects.allocationObject(spec, { resourceVersion }));
    });
    await bench.measure("list page of 500 ipallocations", Math.min(atOnce, 8), Math.ceil(count / 20), () =>
      client.get(`${objects.ALLOCATIONS}?limit=500`),
    );
    await bench.measure("delete ipallocations", atOnce, count, (index) => agent.delete(path(index)));
    const pod = (index: number) => ({ name: `p-${round}-${index}`, namespace: "scale", node: `n${index % NODES}` });
    await bench.measure("create pods", atOnce, count, (index) => client.create(PODS, objects.podObject(pod(index))));
    await bench.measure("get pods", atOnce, count, (index) => client.get(`${PODS}/${pod(index).name}`));
    await bench.measure("delete pods", atOnce, count, (index) =>
      client.delete(`${PODS}/${pod(index).name}`, { gracePeriodSeconds: 0 }),
    );
    if (round === CONCURRENCIES.length - 1) agent.close();
    await bench.measure("update ippools", atOnce, Math.ceil(count / 4), (index) =>
      client.patch(`${objects.POOLS}/scale-${index % 64}/status`, {
        status: { total: 16, used: round * 50_000 + index },
      }),
    );
  }
}

interface FanOutOptions {
  readonly kind: string;
  readonly watchers: readonly number[];
  readonly pathOf: (index: number) => string;
  /** Watches of its own, which sees every write. */
  readonly ownPath: string;
  readonly writes: number;
  readonly write: (number: number) => Promise<unknown>;
}

/**
 * Writes one after the other with ever more watches: how late one watch hears of them, and what each costs the server.
 */
async function measureFanOut(bench: Bench, options: FanOutOptions): Promise<FanOut[]> {
  const { kind, watchers: counts, pathOf, ownPath, writes, write } = options;
  const results: FanOut[] = [];
  await using watchers = await Watchers.open(bench.plane);
  let heard = 0;
  let waiting: (() => void) | undefined;
  /** One watch that sees every write from now on. */
  const openOwn = async (): Promise<Watchers> => {
    const { metadata } = await bench.plane.client.get(`${ownPath}?limit=1`);
    const own = await Watchers.open(bench.plane);
    await own.add(
      1,
      () => `${ownPath}?resourceVersion=${metadata.resourceVersion}`,
      (_, piece) => {
        for (const byte of piece) if (byte === 10) heard++;
        waiting?.();
      },
    );
    return own;
  };
  const hear = async (wanted: number): Promise<void> => {
    const untilMs = performance.now() + HEARD_MS;
    while (heard < wanted) {
      if (performance.now() > untilMs) {
        // An overloaded server ends watches that it cannot serve in time.
        console.log(`Of ${kind}: ${heard} of ${wanted} events came`);
        heard = wanted;
        return;
      }
      const timer = setTimeout(() => waiting?.(), HEARD_MS);
      await new Promise<void>((resolve) => {
        waiting = resolve;
      });
      clearTimeout(timer);
    }
  };
  let number = 0;
  const idle = async (forMs: number): Promise<number> => {
    const before = bench.cpuMs;
    await sleep(forMs);
    return (bench.cpuMs - before) / forMs;
  };
  for (const count of counts) {
    await watchers.add(count - watchers.count, pathOf);
    heard = 0;
    await using _ = await openOwn();
    await sleep(CALM_MS);
    const idleShare = await idle(2_000);
    const bytes = watchers.bytes;
    const delays: number[] = [];
    const cpuMs = bench.cpuMs;
    const startMs = performance.now();
    for (let index = 0; index < writes; index++) {
      const wanted = heard + 1;
      await write(number++);
      const beganMs = performance.now();
      await hear(wanted);
      delays.push(performance.now() - beganMs);
    }
    const aloneMs = performance.now() - startMs;
    const aloneCpuMs = (bench.cpuMs - cpuMs - idleShare * aloneMs) / writes;
    // All at once: how fast the server gets through them.
    const burst = writes * 4;
    const wanted = heard + burst;
    const [burstStartMs, burstCpuMs] = [performance.now(), bench.cpuMs];
    const writing = inParallel(Array.from({ length: burst }), 16, () => write(number++)).then(
      () => performance.now() - burstStartMs,
    );
    await hear(wanted);
    const allMs = performance.now() - burstStartMs;
    const writtenMs = await writing;
    await sleep(CALM_MS);
    const found: FanOut = {
      kind,
      watchers: count,
      delayP50Ms: percentile(delays, 0.5),
      delayP99Ms: percentile(delays, 0.99),
      cpuMsPerWrite: aloneCpuMs,
      burstCpuMsPerWrite: (bench.cpuMs - burstCpuMs - idleShare * (performance.now() - burstStartMs)) / burst,
      burstWritesPerSecond: (burst * 1_000) / writtenMs,
      burstEventsPerSecond: (burst * 1_000) / allMs,
      bytesPerWatcherAndWrite: count === 0 ? 0 : (watchers.bytes - bytes) / count / (writes + burst),
      idleCpuShare: idleShare,
      serverRssMib: daemonRssMib(bench.plane.server.pid),
    };
    results.push(found);
    console.log(JSON.stringify(found));
  }
  return results;
}

/** Objects as the API server stores them, straight into etcd: no request is served for them. */
async function fill(plane: ControlPlane, count: number): Promise<void> {
  const etcd = openEtcd(plane.etcdUrl);
  const stored = { generation: 1, creationTimestamp: "2026-01-01T00:00:00Z" };
  try {
    for (let first = 0; first < count; first += 100) {
      const entries = Array.from({ length: Math.min(100, count - first) }, (_, index) => {
        const number = first + index;
        const uid = `10000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
        const object = objects.allocationObject(specOf(number), { ...stored, uid });
        return [`/registry/ipam.vendor.io/ipallocations/${nameOf(number)}`, JSON.stringify(object)] as const;
      });
      await etcd.putAll(entries);
    }
  } finally {
    etcd.close();
  }
}

async function measureController(plane: ControlPlane): Promise<Calibration["controller"]> {
  const startMs = performance.now();
  const controller = await startControllerProcess({ kubeconfig: plane.kubeconfig, name: "calibrate" });
  try {
    await until("the controller leads", async () => (await controller.status()).isLeading, 120_000);
    const leadingMs = performance.now() - startMs;
    const startCpuMs = daemonCpuMs(controller.pid);
    await sleep(20_000);
    const rssMib = daemonRssMib(controller.pid);
    const { caches } = await controller.status();
    return { allocations: caches.allocations?.objects ?? 0, rssMib, leadingMs, startCpuMs };
  } finally {
    await controller.kill();
  }
}

const { values: flags } = parseArgs({ options: { only: { type: "string", default: "" } } });
/**
 * As many watches of allocations and of Nodes, each of one object by its name, and of allocations by their node, in
 * one run.
 */
async function measureNames(bench: Bench, write: () => Promise<unknown>): Promise<FanOut[]> {
  const common = { watchers: NAME_WATCHERS, ownPath: objects.ALLOCATIONS, writes: 100, write };
  const one = (index: number): string => `fieldSelector=metadata.name%3Dother-${index}`;
  const byField = (index: number): string => `${objects.ALLOCATIONS}?fieldSelector=spec.node%3Dother-${index}`;
  const byName = (index: number): string => `${objects.ALLOCATIONS}?${one(index)}`;
  const ofNode = (index: number): string => `${objects.NODES}?${one(index)}`;
  const writeNode = async (number: number): Promise<void> => {
    const annotations = { "ipam.vendor.io/read-allocations": `${number} *` };
    await bench.plane.client.patch(`${objects.NODES}/noticed`, { metadata: { annotations } });
  };
  await bench.plane.client.apply(`${objects.NODES}/noticed`, objects.nodeObject("noticed"));
  return [
    ...(await measureFanOut(bench, { ...common, kind: "by field, ipallocations", pathOf: byField })),
    ...(await measureFanOut(bench, { ...common, kind: "by name, ipallocations", pathOf: byName })),
    ...(await measureFanOut(bench, {
      ...{ ...common, kind: "by name, nodes", pathOf: ofNode },
      ...{ ownPath: objects.NODES, write: writeNode },
    })),
  ];
}

/** Into the figures of the last whole run. */
function replace(found: Pick<Calibration, "fanOut" | "requests">): void {
  const path = join(import.meta.dirname, "calibration.json");
  const before: Calibration = JSON.parse(readFileSync(path, "utf8"));
  const merge = <T extends { readonly kind: string }>(old: readonly T[], now: readonly T[]): readonly T[] => {
    const kinds = new Set(now.map(({ kind }) => kind));
    return [...old.filter(({ kind }) => !kinds.has(kind)), ...now];
  };
  const requests = merge(before.requests, found.requests);
  save({ ...before, requests, fanOut: merge(before.fanOut, found.fanOut) });
}

/** Measures the lists of a server that has very many allocations, as soon as it has read them. */
async function measureLists(bench: Bench): Promise<void> {
  const { plane } = bench;
  // The server reads them all when it starts.
  await plane.server.stop();
  await fill(plane, ALLOCATIONS);
  await plane.server.start();
  const isRead = () =>
    plane.client.get(`${objects.ALLOCATIONS}?resourceVersion=0&fieldSelector=spec.node%3Dn7`).then(
      () => true,
      () => sleep(CALM_MS, false),
    );
  await until("the server has read them", isRead, 240_000);
  for (const [kind, query] of [
    ["one node's", "limit=500&fieldSelector=spec.node%3Dn7"],
    ["one node's, any version,", "limit=500&resourceVersion=0&fieldSelector=spec.node%3Dn7"],
    ["page of 500", "limit=500"],
  ])
    await bench
      .measure(`list ${kind} among ${ALLOCATIONS} ipallocations`, 1, LISTS, () =>
        plane.client.get(`${objects.ALLOCATIONS}?${query}`),
      )
      .catch((error: unknown) => console.log(String(error)));
}

await using stack = new AsyncDisposableStack();
const plane = await startPlane();
stack.defer(() => plane.stop());
const bench = new Bench(plane);
await plane.client.create(objects.NAMESPACES, objects.namespaceObject("scale"));
await plane.client.apply(objects.SETTINGS, objects.settingsObject({ enableIPv6: false }));
const poolOf = (index: number) =>
  objects.poolObject({
    name: `scale-${index}`,
    subnet: "10.0.0.0/8",
    ips: [`10.${index >> 8}.${index & 255}.0-10.${index >> 8}.${index & 255}.15`],
    default: false,
  });
for (let index = 0; index < 64; index++) await plane.client.create(objects.POOLS, poolOf(index));
let last = 3_000_000;
const writeAllocation = () => plane.client.create(objects.ALLOCATIONS, objects.allocationObject(specOf(last++)));

if (flags.only === "names") replace({ fanOut: await measureNames(bench, writeAllocation), requests: [] });
else if (flags.only === "lists") {
  await measureLists(bench);
  replace({ fanOut: [], requests: bench.requests });
} else await measureAll();

async function measureAll(): Promise<void> {
  await measureRequests(bench);
  const bytes = {
    ipallocations: JSON.stringify(
      await plane.client.create(objects.ALLOCATIONS, objects.allocationObject(specOf(2_000_000))),
    ).length,
    ippools: JSON.stringify(await plane.client.get(`${objects.POOLS}/scale-1`)).length,
  };
  const fanOut: FanOut[] = [];
  fanOut.push(
    ...(await measureFanOut(bench, {
      kind: "ipallocations, of each node its own",
      watchers: WATCHERS,
      pathOf: (index) => `${objects.ALLOCATIONS}?fieldSelector=spec.node%3Dother-${index}`,
      ownPath: objects.ALLOCATIONS,
      writes: 100,
      write: writeAllocation,
    })),
    ...(await measureNames(bench, writeAllocation)),
  );
  fanOut.push(
    ...(await measureFanOut(bench, {
      kind: "pods, of each node its own",
      watchers: [0, 2_000],
      pathOf: (index) => `/api/v1/pods?fieldSelector=spec.nodeName%3Dother-${index}`,
      ownPath: "/api/v1/pods",
      writes: 100,
      write: (number) =>
        plane.client.create(PODS, objects.podObject({ name: `w-${number}`, namespace: "scale", node: "n1" })),
    })),
  );
  fanOut.push(
    ...(await measureFanOut(bench, {
      kind: "ippools, all by each node",
      watchers: PLAIN_WATCHERS,
      // The server keeps few events: a version from before the last burst would be too old.
      pathOf: () => `${objects.POOLS}?resourceVersion=0`,
      ownPath: objects.POOLS,
      writes: 25,
      write: (number) =>
        plane.client.patch(`${objects.POOLS}/scale-${number % 64}/status`, { status: { used: 1_000_000 + number } }),
    })),
  );
  await write({ fanOut, bytes, controller: undefined });
  await measureLists(bench);
  const controller = await measureController(plane);
  console.log(JSON.stringify(controller));
  await write({ fanOut, bytes, controller });
}

async function write({
  fanOut,
  bytes,
  controller,
}: Pick<Calibration, "fanOut" | "bytes" | "controller">): Promise<void> {
  const calibration: Calibration = {
    machine: `${cpus().length} × ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB, Linux ${readFileSync("/proc/sys/kernel/osrelease", "utf8").trim()}`,
    versions: {
      kubernetes: (await plane.client.get("/version")).gitVersion,
      etcd: Object(await (await fetch(`${plane.etcdUrl}/version`)).json()).etcdserver,
      node: process.version,
    },
    loadAverage: readFileSync("/proc/loadavg", "utf8").split(" ").slice(0, 3).join(" "),
    requests: bench.requests,
    fanOut,
    bytes,
    serverRssMib: daemonRssMib(plane.server.pid),
    controller,
  };
  save(calibration);
}

function save(calibration: Calibration): void {
  const here = join(import.meta.dirname, "calibration");
  writeFileSync(
    `${here}.json`,
    `${JSON.stringify(calibration, (_, value) => (typeof value === "number" ? Number(value.toPrecision(4)) : value), 2)}\n`,
  );
  writeFileSync(`${here}.md`, describeCalibration(calibration));
}
