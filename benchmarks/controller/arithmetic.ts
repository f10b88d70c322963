/**
 * The controller's arithmetic: counting what is in use in pools, and dividing Subnets into pools. Two checkouts take turns, so that a change is
 * compared with what was before it on the same machine at the same time.
 *
 *   node benchmarks/controller/arithmetic.ts ../before        # this checkout against another one; both with dist/
 *   node benchmarks/controller/arithmetic.ts                  # this one alone
 *
 * Times are CPU times of the thread, so that other load falls on none of them: each case runs some times per turn, of which the shortest counts.
 * Effects: child processes; prints the medians of the turns.
 */
import { execFileSync } from "node:child_process";
import { cpus, release } from "node:os";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type * as Objects from "../../host/controller/objects.ts";
import type * as Plan from "../../host/controller/subnets/plan/plan-subnets.ts";
import type * as View from "../../host/controller/subnets/view.ts";
import type * as Usage from "../../host/controller/usage/usage-counter.ts";
import type * as Allocations from "../../host/resources/ip-allocation.ts";
import { formatFigure, percentile } from "../../test/lab/statistics.ts";

const TURNS = 7;
/** How often each case runs in one turn; the shortest counts. */
const RUNS = 7;
const MEASURE = "--measure";
const here = resolve(import.meta.dirname, "../..");

/** Pools, Subnets and demands of one case of division. */
interface Division {
  readonly subnets: readonly string[];
  readonly poolsPerSubnet: number;
  /** The first address of a pool, which has 64. */
  readonly first: (subnet: number, pool: number) => string;
  readonly last: (subnet: number, pool: number) => string;
}

const hex = (value: number): string => value.toString(16);

const DIVISIONS: Readonly<Record<string, Division>> = {
  "10,000 pools in five Subnets": {
    subnets: [0, 1, 2, 3, 4].map((at) => `10.${at * 16}.0.0/12`),
    poolsPerSubnet: 2_000,
    first: (subnet, pool) => `10.${subnet * 16 + (pool >> 8)}.${pool & 255}.64`,
    last: (subnet, pool) => `10.${subnet * 16 + (pool >> 8)}.${pool & 255}.127`,
  },
  "2,000 pools in a /8": {
    subnets: ["10.0.0.0/8"],
    poolsPerSubnet: 2_000,
    first: (_, pool) => `10.${pool >> 4}.${(pool & 15) * 16}.64`,
    last: (_, pool) => `10.${pool >> 4}.${(pool & 15) * 16}.127`,
  },
  "2,000 pools in an IPv6 /48": {
    subnets: ["fd00:0:1::/48"],
    poolsPerSubnet: 2_000,
    first: (_, pool) => `fd00:0:1:${hex(pool + 1)}::40`,
    last: (_, pool) => `fd00:0:1:${hex(pool + 1)}::7f`,
  },
};

const poolName = (subnet: number, pool: number): string => `p${subnet}-${pool}`;

function applicationOf(subnet: number, pool: number) {
  const name = poolName(subnet, pool);
  return { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name, uid: `uid-${name}` };
}

/** Returns the CPU time of one plan, milliseconds; `count` addresses are wanted in each pool. */
function measureDivision(modules: Modules, division: Division, count: number): number {
  const { decodeControlledPool, decodeControlledSubnet } = modules.objects;
  const api = { apiVersion: "ipam.vendor.io/v1" };
  const at = Array.from({ length: division.poolsPerSubnet }, (_, index) => index);
  const family = division.subnets[0]?.includes(":") === true ? 6 : 4;
  const subnets = division.subnets.map((subnet, index) => {
    const pools = at.map((pool) => {
      const application = applicationOf(index, pool);
      const ips = [`${division.first(index, pool)}-${division.last(index, pool)}`];
      return { name: poolName(index, pool), ips, application, interface: "eth0" };
    });
    const metadata = { name: `s${index}`, uid: `s${index}`, resourceVersion: "1" };
    return decodeControlledSubnet({ ...api, kind: "Subnet", metadata, spec: { subnet }, status: { pools } });
  });
  const pools = division.subnets.flatMap((subnet, index) =>
    at.map((pool) => {
      const name = poolName(index, pool);
      const application = applicationOf(index, pool);
      const generated = {
        subnet: `s${index}`,
        application,
        interface: "eth0",
        reclaim: true,
        wanted: 64,
        reason: "bench",
      };
      const ips = [`${division.first(index, pool)}-${division.last(index, pool)}`];
      const metadata = { name, uid: name, resourceVersion: "1" };
      return decodeControlledPool({ ...api, kind: "IPPool", metadata, spec: { subnet, ips, generated } });
    }),
  );
  const demands = pools.map(({ value }, index) => {
    const { application, subnet } = value?.spec.generated ?? { application: undefined, subnet: "" };
    if (application === undefined) throw new Error(`Pool ${index} has no owner`);
    return {
      application,
      ifName: "eth0",
      family,
      subnets: [subnet],
      count,
      reason: "bench",
      reclaim: true,
      isCurrent: true,
    };
  });
  const view = {
    demands,
    subnets: subnets.flatMap((object) => modules.view.readSubnet(object) ?? []),
    pools: pools.map((object) => ({ object, spec: object.value?.spec, generated: object.value?.spec.generated })),
    others: [],
    poolNames: new Set(pools.map(({ name }) => name)),
    livenessOf: () => undefined,
    strays: [],
    isHeld: () => false,
    excessMs: () => 0,
    labelsOf: () => ({}),
    maxPoolSize: 1_024,
    maxPerNamespace: 0,
  };
  const startMs = cpuMs();
  const plan = modules.plan.planSubnets(view as unknown as Parameters<typeof modules.plan.planSubnets>[0]);
  const tookMs = cpuMs() - startMs;
  const changed = plan.networks.flatMap(({ targets }) => targets).filter(({ isChanged }) => isChanged).length;
  if (changed !== (count > 64 ? pools.length : 0)) throw new Error(`${changed} pools change, wanted ${count}`);
  return tookMs;
}

/** Returns the CPU time that this thread has used, milliseconds. */
function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/** Pools to count in, with a pool's index to its addresses. */
interface Counting {
  readonly subnets: readonly string[];
  /** Allocations of each pool. */
  readonly used: number;
  readonly ip: (pool: number, address: number) => { readonly family: 4 | 6; readonly value: bigint };
}

const COUNTINGS: Readonly<Record<string, Counting>> = {
  "10,000 pools of /24, 10 in use each": {
    subnets: Array.from({ length: 10_000 }, (_, at) => `10.${at >> 8}.${at & 255}.0/24`),
    used: 10,
    ip: (pool, address) => ({ family: 4, value: (10n << 24n) + BigInt(pool * 256 + 1 + address * 20) }),
  },
  "one /8, 100,000 in use": {
    subnets: ["10.0.0.0/8"],
    used: 100_000,
    ip: (_, address) => ({ family: 4, value: (10n << 24n) + BigInt(1 + address * 151) }),
  },
  "one IPv6 /48, 100,000 in use": {
    subnets: ["fd00:0:1::/48"],
    used: 100_000,
    ip: (_, address) => ({ family: 6, value: (0xfd00_0000_0001n << 80n) + BigInt(1 + address * 151) }),
  },
};

/** Returns the CPU time of following the pools, counting all allocations one by one and giving each pool's usage: milliseconds. */
function measureCounting(modules: Modules, { subnets, used, ip }: Counting): number {
  const pools = subnets.map((subnet, at) => {
    const object = {
      apiVersion: "ipam.vendor.io/v1",
      kind: "IPPool",
      metadata: { name: `p${at}`, uid: `p${at}`, resourceVersion: "1" },
      spec: { subnet },
    };
    const { value } = modules.objects.decodeControlledPool(object);
    if (value === undefined) throw new Error(subnet);
    return value;
  });
  const counter = new modules.usage.UsageCounter();
  const startMs = cpuMs();
  counter.follow(pools, [], []);
  for (const [pool, { name }] of pools.entries()) {
    for (let address = 0; address < used; address++) {
      const spec = { pool: name, state: "Bound", addressSpace: "", ip: ip(pool, address) };
      const value = { spec } as unknown as Allocations.IpAllocation;
      counter.apply({ kind: "set", key: "", value, before: undefined });
    }
  }
  let bound = 0;
  for (const { name } of pools) bound += counter.usageOf(name)?.bound ?? 0;
  if (bound !== subnets.length * used) throw new Error(`Counted ${bound}, wanted ${subnets.length * used}`);
  return cpuMs() - startMs;
}

interface Modules {
  readonly objects: typeof Objects;
  readonly plan: typeof Plan;
  readonly view: typeof View;
  readonly usage: typeof Usage;
}

async function load(checkout: string): Promise<Modules> {
  const open = (path: string) => import(pathToFileURL(resolve(checkout, "host/controller", path)).href);
  return {
    objects: await open("objects.ts"),
    plan: await open("subnets/plan/plan-subnets.ts"),
    view: await open("subnets/view.ts"),
    usage: await open("usage/usage-counter.ts"),
  };
}

type Figures = Record<string, number>;

/** In the child. */
async function measure(checkout: string): Promise<Figures> {
  const modules = await load(checkout);
  const shortest = (run: () => number): number => Math.min(...Array.from({ length: RUNS }, run));
  const figures: Figures = {};
  for (const [name, counting] of Object.entries(COUNTINGS))
    figures[`count ${name}`] = shortest(() => measureCounting(modules, counting));
  for (const [name, division] of Object.entries(DIVISIONS)) {
    figures[`divide ${name}: nothing to do`] = shortest(() => measureDivision(modules, division, 64));
    figures[`divide ${name}: each gets 6 more`] = shortest(() => measureDivision(modules, division, 70));
  }
  return figures;
}

function median(samples: readonly Figures[], name: string): number {
  return percentile(
    samples.map((figures) => figures[name] ?? Number.NaN),
    0.5,
  );
}

const [first, second] = process.argv.slice(2);
if (first === MEASURE) {
  console.log(JSON.stringify(await measure(second ?? here)));
} else {
  const checkouts = [here, ...(first === undefined ? [] : [resolve(first)])];
  const samples = checkouts.map((): Figures[] => []);
  for (let turn = 0; turn < TURNS; turn++) {
    for (const [index, checkout] of checkouts.entries()) {
      const text = execFileSync(process.execPath, [import.meta.filename, MEASURE, checkout], { encoding: "utf8" });
      samples[index]?.push(JSON.parse(text));
    }
  }
  console.log(
    `CPU time in ms, medians of ${TURNS} turns; ${cpus()[0]?.model}, Linux ${release()}, Node.js ${process.versions.node}`,
  );
  for (const name of Object.keys(samples[0]?.[0] ?? {})) {
    const [own = Number.NaN, other] = samples.map((each) => median(each, name));
    const compared =
      other === undefined ? "" : `, the other ${formatFigure(other)}, ratio ${formatFigure(own / other)}`;
    console.log(`${name}: ${formatFigure(own)}${compared}`);
  }
}
