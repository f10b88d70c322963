/** Promises of claims, on a node whose registry, pool cache and search are the product's. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import type { Claimed } from "../../../host/agent/ipam/allocate.ts";
import type { AddressDemand } from "../../../host/agent/ipam/sources/source.ts";
import { CniError } from "../../../host/cni/error.ts";
import { formatIp, type Ip } from "../../../host/net/ip.ts";
import type { Mac } from "../../../host/net/mac.ts";
import type { Allocation, Attachment } from "../../../host/registry/registry.ts";
import type { IpPool } from "../../../host/resources/ip-pool.ts";
import type { ReservedIp } from "../../../host/resources/reserved-ip.ts";
import { TestClock } from "../../world/clock.ts";
import { times } from "../../world/long-cases.ts";
import { openNode, type TestNode } from "../../world/node.ts";
import { Segment } from "../../world/segment.ts";
import { type NicRequest, pool, type Resources, snapshotOf } from "../../world/subjects.ts";
import { mac, range } from "../../world/values.ts";

interface AddOptions {
  readonly owner: string;
  readonly containerId: string;
  readonly ifName: string;
  readonly nics: readonly NicRequest[];
  readonly requested?: string | undefined;
  /** The caller hangs up: before the claim is through, or when the answer is to be written. */
  readonly hangUp?: "early" | "late" | undefined;
  /** The network's setting for conflicts. */
  readonly detection: "off" | "fail" | "next";
}

/** An answer that a caller got. */
interface Answered {
  readonly attachment: Attachment;
  readonly owner: string;
  readonly places: readonly string[];
  readonly ips: readonly Ip[];
}

function placeOf({ space, ip }: Pick<Allocation, "space" | "ip">): string {
  return `${formatIp(ip)}/${space}`;
}

/** It remembers what was answered, and says when that and the registry and the pool cache disagree. */
class World {
  readonly #directory: string;
  readonly #node: TestNode;
  #boot = 1;
  #answered: Answered[] = [];
  /** NICs whose addresses something may have released since they were answered. */
  readonly #released = new Set<string>();
  /** NICs with an ADD since the last check. */
  readonly #begun = new Set<string>();
  #segment!: Segment;

  static async open(): Promise<World> {
    const directory = mkdtempSync(join(tmpdir(), "berth-claims-"));
    const world = new World(directory, await openNode({ disk: directory, clock: new TestClock({ isHasty: true }) }));
    world.#coverSegment();
    return world;
  }

  private constructor(directory: string, node: TestNode) {
    this.#directory = directory;
    this.#node = node;
  }

  /** The machines of the segment outlive the agent. */
  #coverSegment(): void {
    const segment = new Segment(this.#node, this.#segment?.answering);
    segment.onNic = (netns, ifName) =>
      this.#answered
        .filter(({ attachment }) => attachment.containerId === netns && attachment.ifName === ifName)
        .flatMap(({ ips }) => ips);
    // Others write meanwhile.
    segment.meanwhile = async () => {
      for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
    };
    // What a conflict takes from a later sandbox, an earlier one of the same NIC has no more.
    segment.answered = ({ netnsPath, name }) => {
      if (netnsPath !== "") this.#released.add(nicOf({ containerId: netnsPath, ifName: name }));
    };
    this.#segment = segment;
  }

  /** Some machine takes the address, or leaves it. */
  rival(address: string, holder: Mac | undefined): void {
    if (holder === undefined) this.#segment.answering.delete(address);
    else this.#segment.answering.set(address, holder);
  }

  probe(): Promise<void> {
    return this.#segment.prober.probeDue();
  }

  async restart(reboots: boolean): Promise<void> {
    await this.#segment.close();
    if (reboots) {
      this.#boot++;
      this.#node.clock.ms = 1_000;
      this.#answered = [];
    }
    await this.#node.open(`boot-${this.#boot}`);
    this.#coverSegment();
  }

  async close(): Promise<void> {
    await this.#segment.close();
    rmSync(this.#directory, { recursive: true });
  }

  edit(resources: Resources): void {
    this.#node.follow(snapshotOf(...resources));
  }

  advance(milliseconds: number): void {
    this.#node.clock.jump(milliseconds);
  }

  async expire(): Promise<void> {
    const { registry, clock } = this.#node;
    await registry.expire();
    await registry.releaseUnattached(clock.ms - 120_000);
  }

  async add({ owner, containerId, ifName, nics, requested, hangUp, detection }: AddOptions): Promise<void> {
    this.#begun.add(nicOf({ containerId, ifName }));
    await this.#node.inventory.loaded();
    const hungUp = new AbortController();
    if (hangUp === "early") setImmediate(() => hungUp.abort());
    const given = { owner, ifName, containerId, netns: containerId, requested, signal: hungUp.signal };
    const claimed = await this.#claim(this.#node.demand(owner, nics, given), detection);
    if (claimed === undefined) return;
    if (hangUp !== undefined) {
      await this.#node.registry.undo(claimed.created);
      return;
    }
    this.#answered = this.#answered.filter((old) => old.owner !== owner || old.attachment.ifName !== ifName);
    this.#answered.push({
      attachment: { containerId, ifName },
      owner,
      places: claimed.held.map(placeOf),
      ips: claimed.held.map((each) => each.ip),
    });
  }

  /** Undefined when it was refused; anything but a refusal is a bug. */
  async #claim(demand: AddressDemand, detection: AddOptions["detection"]): Promise<Claimed | undefined> {
    const onConflict = detection === "next" ? "next" : "fail";
    try {
      return await this.#segment.claim(demand, { detect: detection !== "off", onConflict });
    } catch (error) {
      if (error instanceof CniError || demand.deadline.signal.aborted) return undefined;
      throw error;
    }
  }

  /** A later sandbox of the pod may have the address by now: what the DEL of any of them may release is forgotten. */
  async del(attachment: Attachment): Promise<void> {
    this.#released.add(nicOf(attachment));
    await this.#node.registry.release(attachment);
  }

  /** Keeps the NICs of these attachments, whichever sandbox has them. */
  async collect(kept: readonly Attachment[]): Promise<void> {
    const alive = new Set(kept.map(nicOf));
    for (const { attachment } of this.#answered) {
      if (!alive.has(nicOf(attachment))) this.#released.add(nicOf(attachment));
    }
    const valid = kept.flatMap(({ containerId, ifName }) =>
      SANDBOXES.map((sandbox) => ({ containerId: `${stemOf(containerId)}-${sandbox}`, ifName })),
    );
    for (const nic of this.#begun) if (!alive.has(nic)) this.#released.add(nic);
    await this.#node.registry.releaseOthers("net", valid, this.#node.clock.ms + 1);
  }

  get attachments(): readonly Attachment[] {
    return this.#answered.map(({ attachment }) => attachment);
  }

  /** Everything that is wrong while nothing is in flight, as sentences. */
  async findFaults(): Promise<string[]> {
    await this.#node.inventory.loaded();
    await this.#segment.prober.idle();
    const records = await this.#node.registry.list(undefined, 10_000);
    this.#answered = this.#answered.filter(({ attachment }) => !this.#released.has(nicOf(attachment)));
    this.#released.clear();
    this.#begun.clear();
    return [...this.#faultsOfAnswers(records), ...this.#faultsOfPoolCache(records), ...faultsOfQuarantine(records)];
  }

  /** I1: no address is two attachments', and every one that was answered and not released is recorded as theirs. */
  #faultsOfAnswers(records: readonly Allocation[]): string[] {
    const holders = new Map<string, string>();
    const recorded = new Map(records.map((record) => [placeOf(record), record]));
    return this.#answered.flatMap(({ owner, attachment, places }) =>
      places.flatMap((place) => {
        const faults: string[] = [];
        const holder = `${owner} ${keyOf(attachment)}`;
        const other = holders.get(place);
        if (other !== undefined) faults.push(`${place} is held by ${other} and by ${holder}`);
        holders.set(place, holder);
        const record = recorded.get(place);
        const isTheirs = record?.state === "Bound" && record.owner === owner && record.ifName === attachment.ifName;
        if (!isTheirs) faults.push(`${place} was answered to ${holder}, recorded is ${describe(record)}`);
        return faults;
      }),
    );
  }

  /** I2: in each pool exactly the recorded addresses are marked. */
  #faultsOfPoolCache(records: readonly Allocation[]): string[] {
    const recorded = new Map(records.map((record) => [placeOf(record), record]));
    return [...this.#node.snapshot.pools.values()].flatMap((pool) =>
      addressesOf(pool).flatMap((ip) => {
        const space = pool.spec.addressSpace;
        const answer = this.#node.poolCache.takeExactly(pool, ip);
        if (answer === "claimed") this.#node.poolCache.unmark(space, ip);
        const record = recorded.get(placeOf({ space, ip }));
        if (answer === "taken" && record === undefined)
          return [`${placeOf({ space, ip })} is free, yet marked in ${pool.name}`];
        if (answer === "claimed" && record !== undefined) {
          return [`${placeOf({ space, ip })} is not marked in ${pool.name}, recorded is ${describe(record)}`];
        }
        return [];
      }),
    );
  }
}

function keyOf({ containerId, ifName }: Attachment): string {
  return `${containerId}/${ifName}`;
}

/** Containers are named after the pod, a dash, and the sandbox's number. */
const SANDBOXES = [0, 1];

function stemOf(containerId: string): string {
  return containerId.slice(0, containerId.lastIndexOf("-"));
}

function nicOf({ containerId, ifName }: Attachment): string {
  return `${stemOf(containerId)}/${ifName}`;
}

function describe(record: Allocation | undefined): string {
  return record === undefined ? "nothing" : `${record.state} to ${record.owner} ${keyOf(record)}`;
}

function addressesOf({ spec }: IpPool): Ip[] {
  return spec.ranges.flatMap(({ first, last }) =>
    Array.from({ length: Number(last.value - first.value) + 1 }, (_, index) => ({
      family: first.family,
      value: first.value + BigInt(index),
    })),
  );
}

/** Conflict: no pod has a quarantined address, and no pod keeps one that came out of quarantine without a probe. */
function faultsOfQuarantine(records: readonly Allocation[]): string[] {
  return records.flatMap(({ space, ip, state, owner, containerId, quarantine }) => {
    const place = `${formatIp(ip)}/${space}`;
    const isQuarantined = state === "Quarantined";
    if (isQuarantined !== (quarantine !== undefined)) return [`${place} is ${state}, quarantine ${quarantine?.reason}`];
    return isQuarantined && `${owner}${containerId}` !== "" ? [`${place} is in quarantine, and ${owner}'s`] : [];
  });
}

const TIME_MS = times(5_000);
const SEED = Number(process.env.BERTH_SEED ?? Date.now() % 2 ** 31);

/** Each pool in the shapes between which a person may edit it; undefined: removed. */
const SHAPES: Record<string, readonly (IpPool | undefined)[]> = {
  a: [
    pool("a", "10.0.0.0/29", { cooldownMs: 5_000 }),
    pool("a", "10.0.0.0/29", { ips: ["10.0.0.1-10.0.0.3"], selection: "ascending" }),
    pool("a", "10.0.0.0/29", { excludeIPs: ["10.0.0.2-10.0.0.4"] }),
    undefined,
  ],
  /** Shares its addresses with `a`. */
  b: [pool("b", "10.0.0.0/29", { ips: ["10.0.0.3-10.0.0.6"], cooldownMs: 0 }), pool("b", "10.0.0.0/29"), undefined],
  /** The same addresses in another space. */
  lab: [pool("lab", "10.0.0.0/29", { addressSpace: "lab", cooldownMs: 5_000 }), undefined],
  /** Moves: between spaces, subnets and families. */
  m: [
    pool("m", "10.1.0.0/30", { cooldownMs: 5_000 }),
    pool("m", "10.1.0.0/30", { addressSpace: "lab" }),
    pool("m", "10.2.0.0/30"),
    pool("m", "fd00:2::/126"),
  ],
  six: [pool("six", "fd00::/125", { cooldownMs: 5_000 }), pool("six", "fd00::/125", { ips: ["fd00::1-fd00::3"] })],
};

const reservedTwo: ReservedIp = {
  kind: "ReservedIP",
  name: "two",
  spec: { family: 4, ranges: [range("10.0.0.2")], addressSpace: "" },
};

function describeResource(resource: IpPool | ReservedIp): string {
  if (resource.kind === "ReservedIP") return `reserved ${resource.name}`;
  return `${resource.name}[${SHAPES[resource.name]?.indexOf(resource)}]`;
}

const configuration = fc
  .record({
    pools: fc.record(
      Object.fromEntries(Object.entries(SHAPES).map(([name, shapes]) => [name, fc.constantFrom(...shapes)])),
    ),
    reserved: fc.boolean(),
  })
  .map(({ pools, reserved }) => [
    ...Object.values(pools).filter((each) => each !== undefined),
    ...(reserved ? [reservedTwo] : []),
  ]);

const NICS: readonly AddOptions["nics"][] = [
  [{ ifName: "eth0", pools: [["a"]] }],
  [{ ifName: "eth0", pools: [["a", "b"], ["six"]] }],
  [{ ifName: "eth0", pools: [["b", "m"]] }],
  [
    { ifName: "eth0", pools: [["a"], ["six"]] },
    { ifName: "net1", pools: [["lab"]] },
  ],
  [
    { ifName: "eth0", pools: [["m"]] },
    { ifName: "net1", pools: [["a", "b"]] },
  ],
  [
    { ifName: "eth0", pools: [["b"], ["six"]] },
    { ifName: "net1", pools: [["b"], ["six"]] },
  ],
];

const owner = fc.nat({ max: 5 });
const sandbox = fc.constantFrom(...SANDBOXES);
const nic = fc.constantFrom("eth0", "net1");

type Act = (world: World) => Promise<void> | void;

function named(text: string, act: Act): Act & { toString(): string } {
  return Object.assign(act, { toString: () => text });
}

const add = fc
  .record({
    ...{ owner, sandbox, nic },
    requested: fc.option(fc.constantFrom("10.0.0.1", "10.0.0.3", "10.1.0.1", "fd00::2"), { freq: 4, nil: undefined }),
    hangUp: fc.option(fc.constantFrom("early" as const, "late" as const), { freq: 4, nil: undefined }),
    detection: fc.constantFrom("off" as const, "fail" as const, "next" as const),
  })
  .map((drawn) => {
    const nics = NICS[drawn.owner % NICS.length] ?? [];
    const ifName = nics.length > 1 ? drawn.nic : "eth0";
    const text = `add pod-${drawn.owner} c${drawn.owner}-${drawn.sandbox}/${ifName} asked ${drawn.requested} hang-up ${drawn.hangUp} detection ${drawn.detection}`;
    return named(text, (world) =>
      world.add({
        ...{ owner: `pod-${drawn.owner}`, containerId: `c${drawn.owner}-${drawn.sandbox}`, ifName, nics },
        requested: drawn.requested,
        ...{ hangUp: drawn.hangUp, detection: drawn.detection },
      }),
    );
  });

const del = fc
  .record({ owner, sandbox, nic })
  .map((drawn) => ({ containerId: `c${drawn.owner}-${drawn.sandbox}`, ifName: drawn.nic }))
  .map((attachment) => named(`del ${attachment.containerId}/${attachment.ifName}`, (world) => world.del(attachment)));

const collect = fc
  .nat({ max: 4 })
  .map((kept) => named(`gc all but ${kept}`, (world) => world.collect(world.attachments.slice(0, kept))));

const PLACES = [
  "10.0.0.1",
  "10.0.0.2",
  "10.0.0.3",
  "10.0.0.4",
  "10.0.0.5",
  "10.1.0.1",
  "10.1.0.2",
  "fd00::1",
  "fd00::2",
];
const RIVALS = [1, 2, 3, 4, 5, 6].map((last) => mac(`02:00:00:00:00:0${last}`));

const rival = fc
  .record({ place: fc.constantFrom(...PLACES), holder: fc.constantFrom(undefined, ...RIVALS) })
  .map(({ place, holder }) => named(`${place} is ${holder ?? "no pod"}'s`, (world) => world.rival(place, holder)));

const probe = fc.constant(named("ask for what is in quarantine", (world) => world.probe()));

const later = fc
  .constantFrom(1, 500, 2_000, 5_000, 121_000, 3_600_000)
  .map((milliseconds) => named(`${milliseconds} ms later`, (world) => world.advance(milliseconds)));

const expire = fc.constant(named("expire", (world) => world.expire()));

const edit = configuration.map((resources) =>
  named(`edit to ${resources.map(describeResource).join(", ")}`, (world) => world.edit(resources)),
);

const act = fc.oneof(
  { arbitrary: add, weight: 8 },
  { arbitrary: del, weight: 4 },
  { arbitrary: expire, weight: 3 },
  { arbitrary: later, weight: 2 },
  { arbitrary: edit, weight: 2 },
  { arbitrary: collect, weight: 1 },
  { arbitrary: rival, weight: 3 },
  { arbitrary: probe, weight: 2 },
);

/** Acts at once, each begun some turns of the event loop after the start. */
const burst = fc.array(fc.tuple(fc.nat({ max: 3 }), act), { minLength: 1, maxLength: 8 }).map((acts) =>
  named(acts.map(([turns, each]) => `  after ${turns}: ${each}`).join("\n"), async (world) => {
    await Promise.all(
      acts.map(async ([turns, each]) => {
        for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
        await each(world);
      }),
    );
  }),
);

const restart = fc.boolean().map((reboots) => named(reboots ? "reboot" : "restart", (world) => world.restart(reboots)));

const step = fc.oneof({ arbitrary: burst, weight: 40 }, { arbitrary: restart, weight: 1 });

it("I1 and I2 hold after any mixture of claims, releases, conflicts, hang-ups, edits and restarts", {
  timeout: 120_000,
}, async () => {
  let walks = 0;
  let steps = 0;
  const walk = fc.array(step, { minLength: 10, maxLength: 60, size: "max" });
  const property = fc.asyncProperty(edit, walk, async (first, others) => {
    walks++;
    const world = await World.open();
    try {
      for (const each of [first, ...others]) {
        steps++;
        await each(world);
        expect(await world.findFaults()).toEqual([]);
      }
    } finally {
      await world.close();
    }
  });
  console.log(`claims: BERTH_SEED=${SEED}`);
  await fc.assert(property, {
    seed: SEED,
    numRuns: 100_000,
    interruptAfterTimeLimit: TIME_MS,
    markInterruptAsFailure: false,
  });
  console.log(`claims: ${walks} walks, ${steps} steps`);
  expect(steps).toBeGreaterThan(100);
});
