/**
 * Claims while the registry may lack running pods' addresses: real searches on a node in memory, with the epoch of a
 * registry behind a port.
 */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { allocateAddresses, type Claimed } from "../../../../host/agent/ipam/allocate.ts";
import { claimFirst } from "../../../../host/agent/ipam/first-claims.ts";
import type { AddressDemand } from "../../../../host/agent/ipam/sources/source.ts";
import { CniError } from "../../../../host/cni/error.ts";
import { Latch } from "../../../../host/lib/latch.ts";
import { formatIp, type Ip } from "../../../../host/net/ip.ts";
import type { Mac } from "../../../../host/net/mac.ts";
import { KnownEpoch } from "../../../../host/registry/epoch/known-epoch.ts";
import { type Epoch, RegistryEpoch } from "../../../../host/registry/epoch/registry-epoch.ts";
import { ALLOCATIONS, HeldCalls } from "../../../fakes/memory-api-server.ts";
import { leasingPool, seenAt } from "../../../world/leasing-pool.ts";
import { type ClusterNode, type DemandOptions, openClusterNode } from "../../../world/node.ts";
import { type NicRequest, pool, proposal, snapshotOf } from "../../../world/subjects.ts";
import { ip } from "../../../world/values.ts";

const POD = { owner: "uid-web-0", namespace: "shop", pod: "web-0" };
const ETH0: NicRequest = { ifName: "eth0", pools: [["blue"]] };
const NET1: NicRequest = { ifName: "net1", pools: [["blue"]] };
const DUAL: NicRequest = { ifName: "eth0", pools: [["blue"], ["six"]] };
const DONE: Epoch = {
  ...{ epoch: "e1", settled: "e1", definition: "kind", waitsFor: "", probed: "", beats: [] },
  cause: "first",
};
const OPEN: Epoch = { ...DONE, epoch: "e2", cause: "history", waitsFor: "n2" };

const KNOWN = JSON.stringify({ format: 1, epochs: ["e1"], written: "e1" });

const SILENCE = "The API server has not answered since 2026-11-27T09:00:00.000Z: connect ECONNREFUSED 10.6.0.1:6443";

/** The probe finds the addresses silent, unless the test says otherwise. */
type Answer = { readonly ip: Ip; readonly mac: Mac | undefined } | undefined;

/** One node, whose pod's ADDs claim addresses of pool blue in order, and probe on their NIC. */
class World {
  readonly node: ClusterNode;
  readonly known = new KnownEpoch({ read: () => KNOWN, write: () => {} });
  readonly epoch: RegistryEpoch;
  /** The rows that were Bound when this node wrote for each epoch. */
  readonly written: string[] = [];
  readonly asked: string[] = [];
  canProbe = true;
  answer: () => Answer = () => undefined;
  /** Called when the search has recorded its addresses. */
  onRecorded = (): void => {};
  /** How this node hears of the registry. */
  readonly watch = {
    ...{ isWatching: true, silence: SILENCE, watching: (signal?: AbortSignal) => this.#up.wait(signal) },
    ...{ answeredMs: -60_000, stats: { bytes: 0, lists: 0, watches: 0, events: 0, lastEventMs: undefined } },
  };
  readonly #up = new Latch();
  #hangUp = new AbortController();

  constructor(node: ClusterNode) {
    this.node = node;
    this.epoch = new RegistryEpoch({
      port: { begin: async () => ({ ...OPEN, epoch: "e3" }), read: async () => OPEN, mark: async () => {} },
      rows: {
        write: async ({ epoch }) => void this.written.push(`${epoch}: ${await this.bound()}`),
        isNewestMissing: async () => false,
      },
      ...{
        known: this.known,
        watch: this.watch,
        random: () => 0.5,
        log: node.log,
        onSettled: () => {},
      },
    });
    void this.epoch.look();
    this.epoch.followDefinition("kind");
    this.epoch.follow(DONE);
  }

  /** The watch is back. */
  reconnect(): void {
    this.watch.isWatching = true;
    this.#up.open();
  }

  hangUp(): void {
    this.#hangUp.abort(new Error("the caller hung up"));
  }

  /** The addresses of an ADD of pod web-0, or its error. */
  add(nics: readonly NicRequest[] = [ETH0], options: DemandOptions = {}): Promise<string> {
    const ask = async (ips: readonly Ip[]): Promise<Answer> => {
      if (!this.canProbe) throw new Error("there is no such interface");
      this.asked.push(ips.map(formatIp).join(" "));
      return this.answer();
    };
    return this.#claim({ ...this.#deps, ask }, nics, options);
  }

  /** The same ahead of the ADD: there is no NIC to probe on. */
  prefetch(nics: readonly NicRequest[] = [ETH0]): Promise<string> {
    return this.#claim(this.#deps, nics, { containerId: "" });
  }

  get #deps() {
    const { registry, poolCache } = this.node;
    return { epoch: this.epoch, registry, poolCache };
  }

  async #claim(deps: Parameters<typeof claimFirst>[0], nics: readonly NicRequest[], options: DemandOptions) {
    const { registry, poolCache } = this.node;
    const demand = this.node.demand("web-0", nics, { signal: this.#hangUp.signal, ...options });
    const search = async (admitted: AddressDemand): Promise<Claimed> => {
      const claimed = await allocateAddresses({ registry, poolCache }, admitted);
      this.onRecorded();
      return claimed;
    };
    try {
      const { held } = await claimFirst(deps, demand, search);
      return held.map((row) => formatIp(row.ip)).join(" ");
    } catch (error) {
      return error instanceof CniError ? `${error.code}: ${error.message}` : String(error);
    }
  }

  /** A row that this node took in from the API server, because its journal lacked it. It is unverified. */
  async takeIn(address: string, state: "Bound" | "Cooling" = "Bound"): Promise<void> {
    await this.node.registry.adopt({ ...proposal(address), ...POD, state });
    this.known.note({ unverified: [address] });
  }

  async bound(): Promise<string> {
    return (await this.node.states()).Bound?.join(" ") ?? "nothing";
  }

  async close(): Promise<void> {
    await this.epoch.close();
    await this.node.close();
  }
}

/** Ends the patience of the ADDs. */
let patience: AbortController;
let world: World;

beforeEach(async () => {
  patience = new AbortController();
  vi.spyOn(AbortSignal, "timeout").mockReturnValue(patience.signal);
  const blue = pool("blue", "10.6.0.0/24", { ips: ["10.6.0.1-10.6.0.9"], selection: "ascending" });
  const six = pool("six", "fd00::/64", { ips: ["fd00::1-fd00::9"], selection: "ascending" });
  world = new World(await openClusterNode({ snapshot: snapshotOf(blue, six) }));
});

afterEach(async () => {
  await world.close();
  vi.restoreAllMocks();
});

const giveUp = (): void => patience.abort(new Error("waited for so long"));

/** The epoch is open and lasts longer than any ADD waits. */
function openForLong(): void {
  world.epoch.follow(OPEN);
  giveUp();
}

/** Whether it still waits when all has happened that can. */
async function waits(adding: Promise<string>): Promise<boolean> {
  const turns = async (): Promise<string> => {
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    return "waits";
  };
  return (await Promise.race([adding, turns()])) === "waits";
}

/** The whole refusal while the API server does not answer. */
const NOT_HEARD = `11: ${SILENCE}. Until it does, pods get only what is recorded as theirs. Try again; if this lasts, look at the API server and the network to it`;

const WAITS_FOR_N2 = /^11: The registry of addresses has just appeared .*; this pod waits for node n2\. /;

describe("a first claim", () => {
  it("is probed before it is recorded when the epoch stays open", async () => {
    openForLong();
    const boundBefore: Promise<string>[] = [];
    world.answer = () => {
      boundBefore.push(world.bound());
      return undefined;
    };
    expect([await world.add(), world.asked]).toEqual(["10.6.0.1", ["10.6.0.1"]]);
    expect(await Promise.all(boundBefore)).toEqual(["nothing"]);
  });

  it("is refused when its NIC cannot be probed on, and says which address that is", async () => {
    openForLong();
    world.canProbe = false;
    const refused = await world.add();
    expect(refused).toMatch(WAITS_FOR_N2);
    expect(refused).toContain("Address 10.6.0.1 cannot be probed on this interface now. Try again");
    expect([await world.bound(), world.asked]).toEqual(["nothing", []]);
  });

  const isDown = (): Answer => {
    throw new Error("the link is down");
  };
  it.each<[what: string, nics: readonly NicRequest[], asked: string[]]>([
    ["of several NICs: only the ADD's own can be probed on", [ETH0, NET1], []],
    ["whose probe fails", [ETH0], ["10.6.0.1"]],
  ])("is refused %s", async (_what, nics, asked) => {
    openForLong();
    world.answer = isDown;
    expect(await world.add(nics)).toMatch(WAITS_FOR_N2);
    expect([await world.bound(), world.asked]).toEqual(["nothing", asked]);
  });

  it("ends with its caller, which hangs up during the probe", async () => {
    openForLong();
    world.answer = () => {
      world.hangUp();
      throw new Error("the probe ended early");
    };
    expect(await world.add()).toBe("Error: the caller hung up");
    expect(await world.bound()).toBe("nothing");
  });

  it("ends with its caller, which hangs up as the wait ends", async () => {
    openForLong();
    world.hangUp();
    expect([await world.add(), world.asked]).toEqual(["Error: the caller hung up", []]);
  });

  it("of a second family is probed, the NIC's address of the first is not", async () => {
    expect(await world.add()).toBe("10.6.0.1");
    openForLong();
    expect([await world.add([DUAL]), world.asked]).toEqual(["10.6.0.1 fd00::1", ["fd00::1"]]);
  });
});

describe.each([
  ["in this epoch", { epoch: "e0" }, / in this epoch of the registry/],
  [
    "since the cluster was off",
    { asOf: "2026-11-20T11:52:00Z" },
    /: the cluster was off, had no controller, or was out of this node's reach, since 2026-11-20T11:52:00Z/,
  ],
] as const)("of blocks that the hub has not confirmed %s", (_what, options, why) => {
  const BLOCKS = ["10.6.0.16/28 Active"];
  const SEG = leasingPool("seg", "10.6.0.0/24", BLOCKS, options);
  const CONFIRMED = leasingPool("seg", "10.6.0.0/24", BLOCKS);
  const seg: NicRequest = { ifName: "eth0", pools: [["seg"]] };
  beforeEach(() => {
    world.node.follow(snapshotOf(SEG));
    world.node.poolCache.followRegistry(() => seenAt(world.epoch.inForce));
  });

  it("no free address is given, nor claimed ahead", async () => {
    expect(await world.add([seg])).toMatch(/^101: .*gives no address until the hub has confirmed its blocks/);
    expect(await world.add([seg])).toMatch(why);
    expect(await world.prefetch([seg])).toMatch(why);
    expect([await world.bound(), world.asked]).toEqual(["nothing", []]);
  });

  it("a requested address is refused", async () => {
    const refused = await world.add([seg], { requested: "10.6.0.18" });
    expect(refused).toMatch(/^11: Address 10.6.0.18 is not given: pool "seg" gives none until the hub has confirmed /);
    expect(refused).toMatch(why);
    expect([await world.bound(), world.asked]).toEqual(["nothing", []]);
  });

  it("an address that cools as the pod's own is refused, and one that is Bound is the pod's", async () => {
    world.node.follow(snapshotOf(CONFIRMED));
    const given = await world.add([seg]);
    world.node.follow(snapshotOf(SEG));
    expect([await world.add([seg]), world.asked]).toEqual([given, []]);
    await world.node.registry.release({ containerId: "c-web-0", ifName: "eth0" });
    expect(await world.add([seg])).toMatch(why);
    expect([await world.bound(), world.asked]).toEqual(["nothing", []]);
    world.node.follow(snapshotOf(CONFIRMED));
    expect(await world.add([seg])).toBe(given);
  });

  it("an address taken in from the API server waits as well", async () => {
    await world.node.registry.adopt({ ...proposal("10.6.0.18", { pool: "seg" }), ...POD, state: "Bound" });
    expect(await world.add([seg])).toMatch(why);
    world.node.follow(snapshotOf(CONFIRMED));
    expect([await world.add([seg]), world.asked]).toEqual(["10.6.0.18", []]);
  });

  it("an address claimed ahead waits as well, and is given when the hub has confirmed it", async () => {
    world.node.follow(snapshotOf(CONFIRMED));
    const ahead = await world.prefetch([seg]);
    world.node.follow(snapshotOf(SEG));
    expect(await world.add([seg])).toMatch(why);
    world.node.follow(snapshotOf(CONFIRMED));
    expect([await world.add([seg]), world.asked]).toEqual([ahead, []]);
  });
});

it("an address claimed ahead in a block that is another cluster's by now makes room for another one", async () => {
  const seg: NicRequest = { ifName: "eth0", pools: [["seg"]] };
  world.node.poolCache.followRegistry(() => seenAt(world.epoch.inForce));
  world.node.follow(snapshotOf(leasingPool("seg", "10.6.0.0/24", ["10.6.0.16/30 Active"])));
  const ahead = await world.prefetch([seg]);
  world.node.follow(snapshotOf(leasingPool("seg", "10.6.0.0/24", ["10.6.0.32/30 Active"])));
  expect(await world.add([seg])).toBe(
    `11: Address ${ahead} is not given: pool "seg" does not have its block any more; try again`,
  );
  expect(await world.add([seg])).toMatch(/^10\.6\.0\.3[2-5]$/);
});

it.each<[what: string, change: () => unknown, refusal: RegExp | string]>([
  ["the epoch is open, and nothing waits", () => world.epoch.follow(OPEN), WAITS_FOR_N2],
  ["the watch of the registry is broken", () => (world.watch.isWatching = false), NOT_HEARD],
])("ahead of ADDs nothing is claimed while %s", async (_what, change, refusal) => {
  change();
  expect(await world.prefetch()).toEqual(typeof refusal === "string" ? refusal : expect.stringMatching(refusal));
  expect(await world.bound()).toBe("nothing");
});

describe("a claim under way when the registry goes back", () => {
  it("is undone ahead of its ADD as well", async () => {
    world.onRecorded = () => world.epoch.wentBack();
    expect(await world.prefetch()).toMatch(/^11: /);
    await expect.poll(() => world.written).toEqual(["e3: nothing"]);
  });

  it("stands when it has recorded nothing: the pod has had the address before", async () => {
    expect(await world.add()).toBe("10.6.0.1");
    world.onRecorded = () => world.epoch.wentBack();
    expect(await world.add()).toBe("10.6.0.1");
    await expect.poll(() => world.written).toEqual(["e3: 10.6.0.1"]);
  });

  it("is refused while it waits for an earlier epoch", async () => {
    world.epoch.follow(OPEN);
    const adding = world.add();
    expect(await waits(adding)).toBe(true);
    world.epoch.wentBack();
    expect(await adding).toMatch(/^11: /);
    expect(world.asked).toEqual([]);
    await expect.poll(() => world.written).toContain("e3: nothing");
  });

  it("is refused before each further attempt to record addresses", async () => {
    const { registry, poolCache } = world.node;
    const deps = { epoch: world.epoch, registry, poolCache };
    const attempts = claimFirst(deps, world.node.demand("web-0", [ETH0]), async (admitted) => {
      await admitted.admit?.([]);
      world.epoch.wentBack();
      return allocateAddresses({ registry, poolCache }, admitted);
    });
    await expect(attempts).rejects.toMatchObject({ code: 11 });
    expect(await world.bound()).toBe("nothing");
  });
});

describe("while the watch of the registry is broken", () => {
  beforeEach(() => {
    world.watch.isWatching = false;
  });

  it("a claim waits, and is made when that is back", async () => {
    const adding = world.add();
    expect([await waits(adding), await world.bound()]).toEqual([true, "nothing"]);
    world.reconnect();
    expect(await adding).toBe("10.6.0.1");
  });

  it("a pod that lacks one of its addresses waits", async () => {
    world.watch.isWatching = true;
    const given = await world.add();
    world.watch.isWatching = false;
    const adding = world.add([DUAL]);
    expect(await waits(adding)).toBe(true);
    giveUp();
    expect([await adding, await world.bound()]).toEqual([NOT_HEARD, given]);
  });

  it("an address of whose object no answer came waits", async () => {
    world.watch.isWatching = true;
    world.node.gate = new HeldCalls(ALLOCATIONS).gate;
    expect(await waits(world.add())).toBe(true);
    await world.node.open();
    world.watch.isWatching = false;
    giveUp();
    expect(await world.add()).toBe(NOT_HEARD);
  });

  it("a pod for which no address is free is refused for want of the API server", async () => {
    const none = pool("blue", "10.6.0.0/24", { ips: [] });
    world.node.follow(snapshotOf(none));
    giveUp();
    expect(await world.add()).toBe(NOT_HEARD);
  });

  it("a claim is refused for its own reason when the epoch behind it is open", async () => {
    world.epoch.follow(OPEN);
    giveUp();
    expect(await world.add()).toBe(NOT_HEARD);
    world.watch.isWatching = true;
    world.canProbe = false;
    expect(await world.add()).toMatch(WAITS_FOR_N2);
  });

  it("a claim is refused when another epoch is found behind it", async () => {
    const adding = world.add();
    expect(await waits(adding)).toBe(true);
    world.epoch.follow(OPEN);
    world.reconnect();
    expect(await adding).toMatch(WAITS_FOR_N2);
    expect(await world.bound()).toBe("nothing");
  });

  it("a claim waits for so long in all, for that and for the epoch behind it", async () => {
    vi.mocked(AbortSignal.timeout).mockReturnValueOnce(patience.signal).mockReturnValue(new AbortController().signal);
    world.epoch.follow(OPEN);
    const adding = world.add();
    expect(await waits(adding)).toBe(true);
    world.reconnect();
    expect(await waits(adding)).toBe(true);
    giveUp();
    expect([await adding, world.asked]).toEqual(["10.6.0.1", ["10.6.0.1"]]);
  });

  it.each([
    ["that stays broken", () => giveUp(), NOT_HEARD],
    ["its caller hangs up", () => world.hangUp(), "Error: the caller hung up"],
  ])("a claim that was recorded just before waits, and is undone when %s", async (_what, end, refusal) => {
    world.watch.isWatching = true;
    world.onRecorded = () => {
      world.watch.isWatching = false;
    };
    const adding = world.add();
    expect([await waits(adding), await world.bound()]).toEqual([true, "10.6.0.1"]);
    end();
    expect([await adding, await world.bound()]).toEqual([refusal, "nothing"]);
  });
});

describe("while the epoch is open, an address of the pod in the journal", () => {
  it("is probed if no ADD was answered with it", async () => {
    world.node.gate = new HeldCalls(ALLOCATIONS).gate;
    expect(await waits(world.add())).toBe(true);
    await world.node.open();
    expect(await world.bound()).toBe("10.6.0.1");
    world.node.gate = async (_call, commit) => commit();
    openForLong();
    expect([await world.add(), world.asked]).toEqual(["10.6.0.1", ["10.6.0.1"]]);
  });

  it("is probed if it was taken in from the API server, but not after that", async () => {
    await world.takeIn("10.6.0.1");
    world.known.note({ unverified: [] });
    openForLong();
    expect([await world.add(), world.asked]).toEqual(["10.6.0.1", ["10.6.0.1"]]);
    expect([await world.add(), world.asked]).toEqual(["10.6.0.1", ["10.6.0.1"]]);
  });

  it("is not probed when that is settled, unless its history went back", async () => {
    await world.takeIn("10.6.0.1");
    world.known.note({ unverified: [] });
    expect([await world.add(), world.asked]).toEqual(["10.6.0.1", []]);
  });

  it("is no other NIC's without a probe", async () => {
    expect(await world.add()).toBe("10.6.0.1");
    await world.node.registry.release({ containerId: "c-web-0", ifName: "eth0" });
    openForLong();
    world.canProbe = false;
    expect(await world.add([NET1], { containerId: "c2" })).toMatch(WAITS_FOR_N2);
  });

  it.for(["Bound", "Cooling"] as const)("is refused if the API server alone says that it was %s", async (state) => {
    await world.takeIn("10.6.0.1", state);
    const { registry } = world.node;
    for (const row of await registry.findOwner("uid-web-0")) if (row.state === "Bound") await registry.collect(row);
    openForLong();
    world.canProbe = false;
    expect(await world.add()).toMatch(WAITS_FOR_N2);
  });
});

describe("an address taken in from the registry's past", () => {
  beforeEach(() => world.takeIn("10.6.0.1"));

  it("is the pod's after one silent probe, also when the epoch is settled", async () => {
    expect([await world.add(), world.asked]).toEqual(["10.6.0.1", ["10.6.0.1"]]);
    expect([await world.add(), world.asked]).toEqual(["10.6.0.1", ["10.6.0.1"]]);
  });

  const CANNOT = /^11: .*running pods have\. Address 10\.6\.0\.1 cannot be probed on this interface now\. Try again$/;
  const answers = { answer: () => ({ ip: ip("10.6.0.1"), mac: undefined }) };
  const fails = {
    answer: () => {
      throw new Error("the link is down");
    },
  };
  it.for<[string, Partial<World>, RegExp]>([
    ["another machine answers for it", answers, /^11: .*: a machine answers for address 10\.6\.0\.1; try again$/],
    ["it cannot be probed", { canProbe: false }, CANNOT],
    ["the probe fails", fails, CANNOT],
  ])("is given up for another address when %s", async ([, change, refusal]) => {
    Object.assign(world, change);
    expect(await world.add()).toMatch(refusal);
    expect([await world.bound(), [...world.known.state.unverified]]).toEqual(["nothing", []]);
    Object.assign(world, { canProbe: true, answer: () => undefined });
    expect(await world.add()).toMatch(/^10\.6\.0\.\d$/);
  });

  it("is not given up while the epoch is open: whose it is may still be written", async () => {
    openForLong();
    world.canProbe = false;
    expect(await world.add()).toMatch(WAITS_FOR_N2);
    expect([await world.bound(), [...world.known.state.unverified]]).toEqual(["10.6.0.1", ["10.6.0.1"]]);
  });

  it("is looked at when its own NIC comes", async () => {
    expect([await world.add([NET1, ETH0]), world.asked]).toEqual(["10.6.0.2", []]);
    expect([...world.known.state.unverified]).toEqual(["10.6.0.1"]);
  });
});
