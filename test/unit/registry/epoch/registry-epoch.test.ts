/** Epochs of a registry behind a port: their beginning and opening, and the answers to claims under way. */
import { afterEach, describe, expect, it } from "vitest";
import { type EpochFile, KnownEpoch } from "../../../../host/registry/epoch/known-epoch.ts";
import { type Epoch, type EpochPort, RegistryEpoch } from "../../../../host/registry/epoch/registry-epoch.ts";
import type { EpochCause } from "../../../../host/resources/registry-epoch.ts";
import { recordLog } from "../../../world/recorded-log.ts";

const EMPTY: Epoch = { epoch: "", settled: "", cause: "first", definition: "", waitsFor: "", probed: "", beats: [] };

/** The registry of all nodes. */
class Shared {
  record: Epoch = { ...EMPTY, definition: "kind-1" };
  definition = "kind-1";
  readonly marks: string[] = [];
  #count = 0;

  port(node: string): EpochPort {
    return {
      begin: async (known, cause) => {
        const isTaken = this.record.epoch !== "" && this.record.definition === this.definition;
        if (isTaken && !(cause === "history" && known.has(this.record.epoch))) return this.record;
        return this.begin(cause);
      },
      read: async () => this.record,
      mark: async (epoch, isSettled) => void this.marks.push(`${node} ${epoch}${isSettled ? "" : " written"}`),
    };
  }

  begin(cause: EpochCause): Epoch {
    const epoch = `e${++this.#count}`;
    const settled = cause === "first" ? epoch : this.record.settled;
    this.record = { epoch, settled, cause, definition: this.definition, waitsFor: "", probed: "", beats: [] };
    return this.record;
  }
}

class Node {
  readonly file: EpochFile & { text?: string } = {
    read: () => this.file.text,
    write: (text) => {
      this.file.text = text;
    },
  };
  /** The written marks, and whether the journal was whole. */
  readonly written: string[] = [];
  /** Ends each write. */
  writing: Promise<void> = Promise.resolve();
  isNewestMissing = false;
  /** Of the watch. */
  readonly watch = {
    ...{ isWatching: true, silence: "", watching: async () => {}, answeredMs: -60_000 },
    stats: { bytes: 0, lists: 1, watches: 1, events: 0, lastEventMs: undefined },
  };
  /** Other nodes are in the way of each write. */
  waitsForOthers = false;
  epoch: RegistryEpoch;
  readonly #shared: Shared;
  readonly #name: string;

  constructor(shared: Shared, name = "n1") {
    this.#shared = shared;
    this.#name = name;
    this.epoch = this.#open();
  }

  #open(): RegistryEpoch {
    return new RegistryEpoch({
      port: this.#shared.port(this.#name),
      rows: {
        isNewestMissing: async () => this.isNewestMissing,
        write: async ({ epoch }, { isWhole, isNewer, isOutdated }) => {
          await this.writing;
          while (this.waitsForOthers && !isOutdated()) await new Promise(setImmediate);
          this.written.push(`${epoch} ${isWhole ? "whole" : isNewer ? "newer" : "unsure"}`);
        },
      },
      known: new KnownEpoch(this.file),
      watch: this.watch,
      random: () => 0.5,
      log: recordLog().log,
      onSettled: () => {},
    });
  }

  async restart(): Promise<void> {
    await this.epoch.close();
    this.epoch = this.#open();
  }

  /** Its watches show the present state. */
  hear(mark = ""): void {
    this.epoch.followMark(mark);
    this.epoch.followDefinition(this.#shared.definition);
    this.epoch.follow(this.#shared.record);
  }
}

const nodes: Node[] = [];

function open(shared: Shared, name?: string): Node {
  const node = new Node(shared, name);
  nodes.push(node);
  return node;
}

afterEach(async () => {
  for (const { epoch } of nodes.splice(0)) await epoch.close();
});

/** A node that has written for the first epoch. */
async function openFilled(): Promise<{ readonly shared: Shared; readonly node: Node }> {
  const shared = new Shared();
  const node = open(shared);
  node.hear();
  await expect.poll(() => shared.marks).toEqual(["n1 e1"]);
  node.epoch.compared();
  node.hear("e1");
  return { shared, node };
}

describe("an epoch of the registry", () => {
  it("is open where it was never known", () => {
    const node = open(new Shared());
    node.epoch.follow(undefined);
    expect([node.epoch.isOpen, node.epoch.waitsFor]).toEqual([true, expect.stringContaining("berth-registry")]);
  });

  it.each([undefined, EMPTY])("stays in force while its place is %j, also after a restart", async (away) => {
    const { shared, node } = await openFilled();
    const { record } = shared;
    await node.restart();
    for (const hear of [() => {}, () => node.epoch.followDefinition(shared.definition)]) {
      hear();
      node.epoch.follow(away);
      expect([node.epoch.isOpen, node.epoch.inForce]).toEqual([false, "e1"]);
      expect(node.epoch.problems).toEqual([expect.stringContaining("berth-registry is missing or empty")]);
    }
    shared.record = record;
    node.hear("e1");
    expect([node.epoch.isOpen, node.epoch.problems, node.written]).toEqual([false, [], ["e1 unsure"]]);
  });

  it("begins when the definition became another one while its place was away, whatever is made there", async () => {
    const { shared, node } = await openFilled();
    node.epoch.follow(undefined);
    shared.definition = "kind-2";
    node.epoch.followDefinition(shared.definition);
    expect(node.epoch.isOpen).toBe(true);
    shared.record = { ...shared.record, definition: "kind-2" };
    node.hear("e1");
    await expect.poll(() => shared.marks).toContain("n1 e2");
    expect(shared.record.cause).toBe("history");
  });

  it("begins when the registry lacks some of the leader's additions, and not when it has more", async () => {
    const { shared, node } = await openFilled();
    for (const beats of [["a"], ["a", "b"], ["b", "c"], ["x", "y"]]) {
      shared.record = { ...shared.record, beats };
      node.hear("e1");
    }
    expect(node.epoch.isOpen).toBe(false);
    shared.record = { ...shared.record, beats: ["x", "z"] };
    node.hear("e1");
    await expect.poll(() => shared.marks).toContain("n1 e2");
  });

  it("begins when the newest record of this node is missing after an interruption", async () => {
    const { shared, node } = await openFilled();
    await node.epoch.line.up(new AbortController().signal);
    node.isNewestMissing = true;
    expect(node.epoch.line.isUp()).toBe(true);
    node.watch.stats.watches++;
    expect(node.epoch.line.isUp()).toBe(false);
    // It looks at once, for others wait for that.
    node.watch.answeredMs = performance.now();
    await expect.poll(() => shared.marks).toContain("n1 e2");
  });

  it("is heard of after an outage once the wait for that is over, to the fraction of a millisecond", async () => {
    const { node } = await openFilled();
    for (let round = 0; round < 20; round++) {
      node.watch.stats.watches++;
      node.watch.answeredMs = performance.now() - 2_995 + Math.random();
      await node.epoch.line.up(new AbortController().signal);
      expect(node.epoch.line.isUp()).toBe(true);
    }
  });

  it("begins when that is found missing before the watch is back", async () => {
    const { node } = await openFilled();
    await node.epoch.line.up(new AbortController().signal);
    expect(node.epoch.isOfPast).toBe(false);
    node.watch.isWatching = false;
    expect(node.epoch.isOfPast).toBe(true);
    await node.epoch.look();
    expect(node.epoch.isOpen).toBe(false);
    node.isNewestMissing = true;
    await node.epoch.look();
    expect(node.epoch.isOpen).toBe(true);
  });

  it("is announced on a Node that the copy did not have before it is written for", async () => {
    const { shared, node } = await openFilled();
    node.waitsForOthers = true;
    shared.begin("history");
    node.hear("");
    await expect.poll(() => shared.marks).toEqual(["n1 e1", "n1 e1"]);
    node.waitsForOthers = false;
    await expect.poll(() => shared.marks).toEqual(["n1 e1", "n1 e1", "n1 e2"]);
  });

  it("begins when an earlier epoch is in force again", async () => {
    const { shared, node } = await openFilled();
    const copy = shared.record;
    shared.begin("kind");
    node.hear("e1");
    await expect.poll(() => shared.marks).toContain("n1 e2");
    shared.record = copy;
    node.hear("e1");
    expect([node.epoch.isOpen, node.epoch.inForce]).toEqual([true, undefined]);
    await expect.poll(() => shared.marks).toContain("n1 e3");
  });

  it("is not forgotten by a restart", async () => {
    const { shared, node } = await openFilled();
    node.epoch.wentBack();
    await node.restart();
    expect(node.epoch.isOpen).toBe(true);
    node.hear("e1");
    await expect.poll(() => shared.marks).toContain("n1 e2");
    expect(node.written.at(-1)).toBe("e2 unsure");
  });

  it("of another node is written for, and this node's mark is repeated when it is lost", async () => {
    const { shared, node } = await openFilled();
    shared.begin("history");
    node.hear("e1");
    await expect.poll(() => shared.marks).toEqual(["n1 e1", "n1 e2"]);
    node.hear("");
    await expect.poll(() => shared.marks).toEqual(["n1 e1", "n1 e2", "n1 e2"]);
    expect(node.written).toEqual(["e1 unsure", "e2 whole"]);
  });

  it("waits for other nodes only until the registry is found to be another one", async () => {
    const { shared, node } = await openFilled();
    node.waitsForOthers = true;
    node.epoch.wentBack();
    await expect.poll(() => shared.record.epoch).toBe("e2");
    node.epoch.wentBack();
    await expect.poll(() => shared.record.epoch).toBe("e3");
    node.waitsForOthers = false;
    await expect.poll(() => shared.marks).toEqual(["n1 e1", "n1 e3"]);
  });

  it("is written for when claims from before it have ended", async () => {
    const { shared, node } = await openFilled();
    const claim = node.epoch.claiming();
    node.epoch.wentBack();
    await expect.poll(() => shared.record.epoch).toBe("e2");
    expect(node.written).toEqual(["e1 unsure"]);
    claim.end();
    await expect.poll(() => node.written).toEqual(["e1 unsure", "e2 whole"]);
  });

  it("leaves a journal that has lost rows in doubt about these", async () => {
    const { node } = await openFilled();
    node.epoch.rowsLost();
    node.epoch.wentBack();
    expect(node.epoch.isOfPast).toBe(false);
    await expect.poll(() => node.written).toEqual(["e1 unsure", "e2 unsure"]);
  });
});
