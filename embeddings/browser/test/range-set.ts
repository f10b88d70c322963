import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Core, CoreError } from "berth-core";

const core = await Core.open();

describe("a set of ranges", () => {
  it("joins ranges and prefixes that overlap or touch", () => {
    using set = core.rangeSet(["10.0.0.4-10.0.0.9", "10.0.0.0/30", "10.0.0.8/32", "10.0.1.1"]);
    assert.deepEqual(set.ranges(), ["10.0.0.0-10.0.0.9", "10.0.1.1"]);
    assert.deepEqual(set.prefixes(), ["10.0.0.0/29", "10.0.0.8/31", "10.0.1.1/32"]);
    assert.equal(set.count(), 2);
    assert.equal(set.size(), 11n);
  });

  it("has union, intersection and difference", () => {
    using a = core.rangeSet(["fd00::-fd00::9"]);
    using b = core.rangeSet(["fd00::5-fd00::f"]);
    assert.deepEqual(a.union(b).ranges(), ["fd00::-fd00::f"]);
    assert.deepEqual(a.intersect(b).ranges(), ["fd00::5-fd00::9"]);
    assert.deepEqual(a.subtract(b).ranges(), ["fd00::-fd00::4"]);
    assert.equal(a.overlaps(b), true);
    assert.equal(a.includes(b), false);
    assert.equal(a.union(b).includes(b), true);
  });

  it("tells whether it holds an address", () => {
    using set = core.rangeSet(["10.0.0.0/24"]);
    assert.equal(set.contains("10.0.0.255"), true);
    assert.equal(set.contains("::ffff:10.0.0.255"), false);
    assert.deepEqual(set.containsMany(["10.0.1.0", "fd00::", "10.0.0.0"]), [false, false, true]);
    assert.deepEqual(set.containsMany([]), []);
    assert.throws(() => set.contains("fe80::1%eth0"), TypeError);
  });

  it("has sizes up to all of IPv6, and down to nothing", () => {
    assert.equal(core.rangeSet(["::/0"]).size(), 2n ** 128n);
    using nothing = core.rangeSet([], 6);
    assert.equal(nothing.size(), 0n);
    assert.equal(nothing.family, 6);
    assert.deepEqual(nothing.ranges(), []);
  });

  it("refuses a set of the other family, of another instance, or one that is gone", async () => {
    const set = core.rangeSet(["10.0.0.0/24"]);
    assert.throws(() => set.union(core.rangeSet(["fd00::/64"])), CoreError);
    assert.throws(() => core.rangeSet(["10.0.0.0/24"], 6), CoreError);
    const elsewhere = (await Core.open()).rangeSet(["10.0.0.0/24"]);
    assert.throws(() => set.union(elsewhere), /two instances/);
    set.drop();
    assert.throws(() => set.size(), { name: "CoreError", operation: "set_size", status: -1 });
    assert.throws(() => set.drop(), CoreError);
  });
});

describe("arithmetic of prefixes", () => {
  const { prefixes } = core;

  it("knows first, last, mask, next, parts and the common prefix", () => {
    assert.equal(prefixes.first("10.0.0.77/24"), "10.0.0.0");
    assert.equal(prefixes.last("fd00::/64"), "fd00::ffff:ffff:ffff:ffff");
    assert.equal(prefixes.mask(4, 20), "255.255.240.0");
    assert.equal(prefixes.next("10.0.0.0/24"), "10.0.1.0/24");
    assert.equal(prefixes.part("10.0.0.0/8", 24, 65535), "10.255.255.0/24");
    assert.equal(prefixes.common("10.0.0.1", "10.0.3.1"), "10.0.0.0/22");
    assert.equal(prefixes.common("fd00::1", "fd00::1"), "fd00::1/128");
  });

  it("ends where the addresses or the parts end", () => {
    assert.equal(prefixes.next("255.255.255.0/24"), undefined);
    assert.equal(prefixes.next("::/0"), undefined);
    assert.equal(prefixes.part("10.0.0.0/24", 26, 4), undefined);
  });

  it("refuses what makes no sense", () => {
    assert.throws(() => prefixes.mask(4, 33), { name: "CoreError", operation: "prefix_mask", status: -4 });
    assert.throws(() => prefixes.part("10.0.0.0/24", 23, 0), {
      name: "CoreError",
      operation: "prefix_part",
      status: -4,
    });
    assert.throws(() => prefixes.common("10.0.0.1", "fd00::1"), {
      name: "CoreError",
      operation: "prefix_common",
      status: -2,
    });
    assert.throws(() => prefixes.first("10.0.0.1"), TypeError);
    assert.throws(() => prefixes.first("fe80::1%eth0/64"), TypeError);
  });
});
