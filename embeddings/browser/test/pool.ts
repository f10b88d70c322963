import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Core, CoreError, pack, unpack } from "berth-core";

const core = await Core.open();

/** A refusal of the core in that operation, with that status. */
function refused(operation: string, status: number): (error: unknown) => boolean {
  return (error) => error instanceof CoreError && error.operation === operation && error.status === status;
}

describe("a pool", () => {
  it("allocates in the order asked for, past masks, until none is free", () => {
    using pool = core.createPool(["10.0.0.0/30"], ["10.0.0.0"]);
    assert.equal(pool.allocate("HASHED", 6), "10.0.0.2");
    assert.equal(pool.allocate("ASCENDING"), "10.0.0.1");
    assert.equal(pool.allocate("ROUND_ROBIN"), "10.0.0.3");
    assert.equal(pool.allocate("ASCENDING"), undefined);
    assert.equal(pool.findFree(), undefined);
    assert.deepEqual(pool.allocateMany(3, "ASCENDING"), []);
  });

  it("gives the address freed longest ago", () => {
    using pool = core.createPool(["10.0.0.0/30"]);
    pool.trackFreed();
    pool.allocateMany(4, "ASCENDING");
    for (const host of [2, 0, 1]) pool.release(`10.0.0.${host}`);
    assert.deepEqual(pool.allocateMany(4, "LEAST_RECENTLY_FREED"), ["10.0.0.2", "10.0.0.0", "10.0.0.1"]);
  });

  it("finds without marking: one address, one beyond the window, a run", () => {
    using pool = core.createPool(["fd00::/64"]);
    assert.equal(pool.findFree(9), "fd00::9");
    assert.equal(pool.findFreeWide(2n ** 63n), "fd00::8000:0:0:0");
    pool.claim("fd00::2");
    assert.equal(pool.findFreeRun(4), "fd00::3-fd00::6");
    assert.equal(pool.findFreeRun(4, 2), "fd00::4-fd00::7");
    assert.equal(pool.findFreeRun(1, 0, 77), "fd00::4d");
    assert.equal(pool.counts().used, 1);
  });

  it("answers claims and releases in words", () => {
    using pool = core.createPool(["10.0.0.0/24"]);
    assert.equal(pool.claim("10.0.0.7"), "claimed");
    assert.equal(pool.claim("10.0.0.7"), "taken");
    assert.equal(pool.claim("10.0.1.7"), "outside");
    assert.equal(pool.release("10.0.0.7"), "released");
    assert.equal(pool.release("10.0.0.7"), "free");
    assert.equal(pool.release("9.0.0.7"), "outside");
    assert.equal(pool.claimRun("10.0.0.8-10.0.0.11"), "claimed");
    assert.equal(pool.claimRun("10.0.0.11"), "taken");
    assert.equal(pool.claimRun("10.0.0.0/23"), "outside");
    assert.equal(pool.releaseRun("10.0.0.0/24"), 4);
    assert.equal(pool.releaseRun("10.0.1.0/24"), "outside");
  });

  it("has the other family outside, an IPv4-mapped address too", () => {
    using pool = core.createPool(["10.0.0.0/24"]);
    for (const other of ["fd00::7", "::ffff:10.0.0.7", "::10.0.0.7"]) {
      assert.equal(pool.claim(other), "outside");
      assert.equal(pool.release(other), "outside");
      assert.equal(pool.test(other), false);
      assert.equal(pool.contains(other), false);
    }
    assert.equal(pool.claimMany(["fd00::7", "10.0.0.7", "::ffff:10.0.0.8"]), 1);
    assert.deepEqual(pool.testMany(["fd00::7", "10.0.0.7", "10.0.0.8"]), [false, true, false]);
    assert.deepEqual(pool.containsMany(["10.0.0.9", "::ffff:10.0.0.9", "10.0.0.7"]), [true, false, true]);
    assert.equal(pool.releaseMany(["fd00::7", "10.0.0.7"]), 1);
    assert.throws(() => pack(["10.0.0.7", "fd00::7"]), TypeError);
  });

  it("refuses text that is no address: zones, blanks, leading zeros", () => {
    using pool = core.createPool(["fe80::/64"]);
    for (const text of ["fe80::1%eth0", " fe80::1", "10.0.0.07", "10.0.0", "fe80::1/64", "", "::1::"]) {
      assert.throws(() => pool.claim(text), TypeError, text);
      assert.throws(() => pool.claimMany([text]), TypeError, text);
    }
    for (const text of ["10.0.0.0/33", "10.0.0.9-10.0.0.1", "10.0.0.1-fd00::1", "fe80::1%1-fe80::2"]) {
      assert.throws(() => core.createPool([text]), TypeError, text);
    }
    assert.equal(pool.counts().used, 0);
  });

  it("has values and packed bytes beside the text", () => {
    using pool = core.createPool(["10.0.0.0/29"]);
    assert.deepEqual(pool.values.allocate("ASCENDING"), { family: 4, value: 0x0a000000n });
    const packed = pool.values.allocateMany(9, "ASCENDING");
    assert.equal(packed.length, 28);
    assert.deepEqual(unpack(packed, 4).slice(-2), ["10.0.0.6", "10.0.0.7"]);
    assert.deepEqual(pack(["10.0.0.1"]), packed.slice(0, 4));
    assert.equal(pool.values.releaseMany(packed), 7);
    assert.throws(() => pool.values.releaseMany(packed.subarray(1)), refused("pool_release_many", -4));
    assert.throws(() => unpack(packed.subarray(1), 4), TypeError);
  });

  it("counts", () => {
    using pool = core.createPool(["fd00::/64"], ["fd00::/96"]);
    pool.claimMany(["fd00::1", "fd00::ffff:0:0:1"]);
    const { digest, ...counts } = pool.counts();
    const total = 2n ** 64n - 2n ** 32n;
    assert.deepEqual(counts, { total, used: 2, usedMasked: 1, beyond: 1, free: total - 1n, window: 2 ** 24 });
    using same = core.createPool(["fd00::8000:0:0:0/65", "fd00::/65"]);
    assert.equal(same.counts().digest, digest);
    assert.equal(pool.freePerBlock().length, 4096);
    assert.deepEqual(pool.used().ranges(), ["fd00::1", "fd00::ffff:0:0:1"]);
    assert.deepEqual(pool.ranges().prefixes(), ["fd00::/64"]);
    assert.deepEqual(pool.masks().prefixes(), ["fd00::/96"]);
  });

  it("takes another shape, and in an empty pool another family", () => {
    using pool = core.createPool(["10.0.0.0/24"]);
    pool.claimMany(["10.0.0.1", "10.0.0.200"]);
    assert.throws(() => pool.edit(["fd00::/64"]), refused("pool_edit", -2));
    pool.edit(["10.0.0.0/25", "10.0.1.0/24"], ["10.0.0.1"]);
    assert.deepEqual(pool.used().ranges(), ["10.0.0.1"]);
    assert.equal(pool.counts().usedMasked, 1);
    pool.edit([]);
    pool.edit(["fd00::/64"]);
    assert.equal(pool.family, 6);
    assert.equal(pool.claim("fd00::1"), "claimed");
  });

  it("loads what it saved, and nothing else", () => {
    using pool = core.createPool(["10.0.0.0/16"]);
    pool.claimMany(["10.0.0.1", "10.0.77.1"]);
    const snapshot = pool.save();
    using twin = core.createPool(["10.0.0.0/16"]);
    assert.equal(twin.load(snapshot), "loaded");
    assert.deepEqual(twin.used().ranges(), ["10.0.0.1", "10.0.77.1"]);
    for (let cut = 0; cut < snapshot.length; cut++) assert.equal(twin.load(snapshot.subarray(0, cut)), "damaged");
    const flipped = snapshot.map((byte, index) => (index === 40 ? byte ^ 1 : byte));
    assert.equal(twin.load(flipped), "damaged");
    using other = core.createPool(["10.0.0.0/15"]);
    assert.equal(other.load(snapshot), "other pool");
    assert.equal(twin.counts().used, 2);
  });

  it("refuses every use after it is dropped", () => {
    const pool = core.createPool(["10.0.0.0/24"]);
    pool.drop();
    assert.throws(() => pool.allocate("ASCENDING"), refused("pool_allocate", -1));
    assert.throws(() => pool.claim("10.0.0.1"), refused("pool_claim", -1));
    assert.throws(() => pool.counts(), refused("pool_counts", -1));
    assert.throws(() => pool.drop(), refused("drop", -1));
    assert.throws(() => core.createPool(["10.0.0.0/24", "fd00::/64"]), refused("set_create", -2));
  });
});
