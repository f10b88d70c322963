/**
 * The benchmark `hub`: clusters that lease blocks of one AddressRange, with the product's own code, from a real API
 * server: one alone, and fifty at once until they have a thousand; then what their questions cost it.
 * Effects: etcd and an API server on loopback.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { chooseBlocks } from "../../host/blocks/blocks-of-range.ts";
import { Hub } from "../../host/blocks/hub.ts";
import { OwnRanges } from "../../host/blocks/own-ranges.ts";
import type { KubeClient } from "../../host/kubernetes/client.ts";
import { isConflict, type KubeCall, type KubeObject } from "../../host/kubernetes/kube-api.ts";
import { decodeAddressRange } from "../../host/resources/address-range.ts";
import { referenceTool } from "../../scripts/setup/paths.mjs";
import { runSetup } from "../../scripts/setup/run-setup.ts";
import { addMember, RANGES, rangeObject } from "../../test/lab/cluster/hub.ts";
import { connectClient } from "../../test/lab/cluster/in-process.ts";
import { startPlane } from "../../test/lab/cluster/plane.ts";
import type { ControlPlane } from "../../test/lab/control-plane.ts";
import { daemonCpuMs, type Table } from "../../test/lab/statistics.ts";
import { requireUninterrupted } from "../harness/interruption.ts";
import { sayProgress } from "../harness/progress.ts";
import type { Bench, BenchOptions, BenchReport, Target } from "../harness/report.ts";
import { percentiles, tableOf } from "../harness/table.ts";

export const hubBench: Bench = { name: "hub", run: runHub };

const CLUSTERS = 50;
/** In the end; all but the last two of each are there from the start. */
const BLOCKS_OF_CLUSTER = 20;
/** Leases of a cluster that is alone. */
const ALONE = 20;
const RANGE = "lan";
const PATH = `${RANGES}/${RANGE}`;
/** As many blocks as a range may have. */
const SPEC = { subnet: "10.64.0.0/17", blockSize: 28, gateway: "10.64.0.1" };
/** As the controller's: how long one question may take, and how often the hub is asked. */
const HUB_PATIENCE_MS = 10_000;
const HUB_CHECK_MS = 15_000;

/** What the clusters asked of the hub. */
interface Tally {
  reads: number;
  writes: number;
  conflicts: number;
  bytes: number;
}

/** A cluster; what it remembers is in this process, as it would be in an API server of its own. */
class Member {
  readonly #hub: Hub;
  readonly #client: KubeClient;
  readonly name: string;
  readonly pool = "lan";
  leased = 0;

  constructor(name: string, client: KubeClient, tally: Tally) {
    this.name = name;
    this.#client = client;
    const cluster = randomUUID();
    const own = new OwnRanges(new OwnMap(), "kube-system");
    this.#hub = new Hub({ hub: countCalls(client, tally), own, name, cluster, newId: randomUUID });
  }

  async ask(): Promise<void> {
    await this.#update();
  }

  /** One more block; throws when it did not get one. */
  async lease(): Promise<void> {
    const { blocks, short, bar } = await this.#update({ [this.pool]: this.leased + 1 });
    const got = Object.keys(blocks).length;
    if (got !== this.leased + 1) throw new Error(`No block: ${short ?? bar?.kind}, ${got} of ${this.leased + 1}`);
    this.leased = got;
  }

  #update(lease: Readonly<Record<string, number>> = {}) {
    return this.#hub.update(RANGE, { lease, giveBack: [] }, AbortSignal.timeout(HUB_PATIENCE_MS));
  }

  close(): Promise<void> {
    return this.#client.close();
  }
}

/** One ConfigMap. */
class OwnMap {
  #data: Readonly<Record<string, string>> = {};

  async call({ body }: KubeCall): Promise<KubeObject> {
    this.#data = { ...this.#data, ...(body as { data?: Record<string, string> } | undefined)?.data };
    return { metadata: { uid: "", resourceVersion: "" }, data: this.#data };
  }
}

function countCalls(client: KubeClient, tally: Tally): Pick<KubeClient, "call"> {
  const onBytes = (bytes: number): void => {
    tally.bytes += bytes;
  };
  return {
    call: async (call) => {
      if (call.method === "GET") tally.reads++;
      else tally.writes++;
      try {
        return await client.call({ ...call, onBytes });
      } catch (error) {
        if (isConflict(error)) tally.conflicts++;
        throw error;
      }
    },
  };
}

/** A phase, and what it cost. */
interface Phase {
  readonly name: string;
  readonly leasesMs: readonly number[];
  /** Leases that got no block in one call: the controller tries again later. */
  readonly failures: number;
  readonly seconds: number;
  /** Of API server and etcd. */
  readonly hubMs: number;
  readonly tally: Tally;
}

type Measure = (name: string, work: () => Promise<Pick<Phase, "leasesMs" | "failures">>) => Promise<Phase>;

async function runHub({ quick }: BenchOptions): Promise<BenchReport> {
  runSetup("cluster");
  const [alone, each] = quick ? [5, 1] : [ALONE, 2];
  await using stack = new AsyncDisposableStack();
  const plane = await startPlane();
  stack.defer(() => plane.stop());
  const names = Array.from({ length: CLUSTERS }, (_, number) => `cluster-${number}`);
  const shares = Object.fromEntries(names.map((name) => [name, 3 * BLOCKS_OF_CLUSTER]));
  await plane.client.create(RANGES, rangeObject(RANGE, SPEC, shares));
  const tally: Tally = { reads: 0, writes: 0, conflicts: 0, bytes: 0 };
  const members: Member[] = [];
  stack.defer(async () => void (await Promise.all(members.map((member) => member.close()))));
  for (const name of names) {
    const token = await addMember(plane.client, name);
    members.push(new Member(name, await connectClient(await plane.writeKubeconfig(name, { token })), tally));
  }
  const measure = meter(plane, tally);
  const [first] = members as [Member];
  const phases = [
    await measure("1 cluster, nothing leased", () => leaseEach([first], alone)),
    await fill(plane, members.slice(1), BLOCKS_OF_CLUSTER - each).then(() =>
      measure(`${CLUSTERS} clusters at once, until ${CLUSTERS * BLOCKS_OF_CLUSTER} blocks are leased`, () =>
        leaseEach(members, each),
      ),
    ),
    await measure(`1 cluster beside ${CLUSTERS * BLOCKS_OF_CLUSTER} blocks`, () => leaseEach([first], alone)),
  ];
  const rests = [
    await measure("1 cluster", () => askEach([first], quick ? 1 : 2)),
    await measure(`${CLUSTERS} clusters`, () => askEach(members, quick ? 1 : 2)),
  ];
  await requireLeases(plane, members);
  return {
    tables: [tabulateLeases(phases), tabulateRests(rests)],
    targets: targetsOf(phases),
    notes: NOTES,
    versions: { Kubernetes: referenceTool("kubernetes").version },
    raw: { phases, rests },
  };
}

function meter({ pids }: ControlPlane, tally: Tally): Measure {
  const readCpuMs = (): number => pids.reduce((sum, pid) => sum + daemonCpuMs(pid), 0);
  return async (name, work) => {
    requireUninterrupted();
    Object.assign(tally, { reads: 0, writes: 0, conflicts: 0, bytes: 0 });
    const [startMs, cpuMs] = [performance.now(), readCpuMs()];
    const done = await work();
    const seconds = (performance.now() - startMs) / 1_000;
    sayProgress(`${name}: ${seconds.toFixed(1)} s, ${JSON.stringify(tally)}`);
    return { name, ...done, seconds, hubMs: readCpuMs() - cpuMs, tally: { ...tally } };
  };
}

/** All begin together; each leases one block after the other. */
async function leaseEach(members: readonly Member[], count: number): Promise<Pick<Phase, "leasesMs" | "failures">> {
  const leasesMs: number[] = [];
  let failures = 0;
  const work = async (member: Member): Promise<void> => {
    const goal = member.leased + count;
    while (member.leased < goal) {
      requireUninterrupted();
      const startMs = performance.now();
      await member.lease().then(
        () => leasesMs.push(performance.now() - startMs),
        (error: Error) => {
          if (!/was changed by others|timeout/.test(error.message)) throw error;
          failures++;
          return sleep(HUB_CHECK_MS);
        },
      );
    }
  };
  await Promise.all(members.map(work));
  return { leasesMs, failures };
}

/** Nothing is wanted: each asks at the controller's interval, spread over it. */
async function askEach(members: readonly Member[], times: number): Promise<Pick<Phase, "leasesMs" | "failures">> {
  const startMs = performance.now();
  const work = async (member: Member, index: number): Promise<void> => {
    for (let time = 0; time < times; time++) {
      const dueMs = startMs + (time + index / members.length) * HUB_CHECK_MS;
      await sleep(Math.max(0, dueMs - performance.now()));
      requireUninterrupted();
      await member.ask();
    }
  };
  await Promise.all([...members.map(work), sleep(times * HUB_CHECK_MS)]);
  return { leasesMs: [], failures: 0 };
}

/** The members have leased so many before, as far as the hub knows. */
async function fill({ client }: ControlPlane, members: readonly Member[], count: number): Promise<void> {
  const spec = decodeAddressRange(await client.get(PATH), RANGE).spec;
  const taken = new Set(Object.keys((await client.get(PATH)).status.leases));
  const leases: Record<string, object> = {};
  for (const { name, pool } of members) {
    const chosen = chooseBlocks(spec, (block) => taken.has(block), { count, start: 0 });
    for (const block of chosen) {
      taken.add(block);
      leases[block] = { member: name, pool };
    }
  }
  await client.patch(`${PATH}/status`, { status: { leases } });
  for (const member of members) member.leased = count;
}

/** Each has what it believes to have. */
async function requireLeases({ client }: ControlPlane, members: readonly Member[]): Promise<void> {
  const range = await client.get(PATH);
  const leases: KubeObject[] = Object.values(range.status.leases);
  for (const { name, leased } of members) {
    const count = leases.filter(({ member }) => member === name).length;
    if (count !== leased) throw new Error(`${name} has ${count} blocks, and believes to have ${leased}`);
  }
  sayProgress(`${leases.length} blocks, an object of ${(JSON.stringify(range).length / 1e3).toFixed(0)} KB`);
}

function tabulateLeases(phases: readonly Phase[]): Table {
  const perLease = ({ leasesMs }: Phase, value: number): number => value / leasesMs.length;
  return tableOf<Phase>(
    "Leases of one block each",
    [
      ["lease", ({ name }) => name],
      ["leases", ({ leasesMs }) => leasesMs.length],
      ["per second", ({ leasesMs, seconds }) => leasesMs.length / seconds],
      ...percentiles<Phase>("one lease, ms", ({ leasesMs }) => leasesMs, [0.5, 0.99, 1]),
      ["conflicts per lease", (phase) => perLease(phase, phase.tally.conflicts)],
      ["put off", ({ failures }) => failures],
      ["CPU ms of the hub per lease", (phase) => perLease(phase, phase.hubMs)],
      ["KB per lease", (phase) => perLease(phase, phase.tally.bytes / 1e3)],
    ],
    phases,
  );
}

function tabulateRests(rests: readonly Phase[]): Table {
  return tableOf<Phase>(
    "Nothing is wanted",
    [
      ["who asks", ({ name }) => name],
      ["calls per second", ({ tally, seconds }) => (tally.reads + tally.writes) / seconds],
      ["KB per second", ({ tally, seconds }) => tally.bytes / 1e3 / seconds],
      ["% of a processor of the hub", ({ hubMs, seconds }) => hubMs / 10 / seconds],
    ],
    rests,
  );
}

function targetsOf(phases: readonly Phase[]): Target[] {
  const putOff = phases.reduce((sum, { failures }) => sum + failures, 0);
  return [{ what: "leases that were put off", wanted: "0", measured: String(putOff), isMet: putOff === 0 }];
}

const NOTES = [
  `Each cluster is the product's own client with an account of its own, under the policy of deploy/hub.yaml. All of them are one process, which shares the machine's processors with the API server and etcd. What a cluster remembers is in memory: in a cluster it is two writes to its own API server for each lease.`,
  `The range has 2,048 blocks. "At once" is the worst case: all ask for a block again and again without a pause; a cluster leases one every minute at most while it grows steadily. A conflict is a write that came after another cluster's: the range is read again.`,
  `Nothing is wanted: each cluster asks every ${HUB_CHECK_MS / 1_000} s. The hub's processor time has its own work at rest in it, which the first row shows.`,
];
