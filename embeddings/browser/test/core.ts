import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, it } from "node:test";
import { Core, CoreError, MAX_OBJECTS, openRaw, Policy, pack, Status } from "berth-core";

const wasm = readFileSync(new URL(import.meta.resolve("berth-core/berth-core.wasm")));
const core = await Core.open();

/** A module with a memory, whose abi_version() is `major` << 16. */
function moduleOfMajor(major: number): Uint8Array<ArrayBuffer> {
  const name = [...new TextEncoder().encode("abi_version")];
  const type = [1, 5, 1, 0x60, 0, 1, 0x7f];
  const exported = [7, name.length + 4, 1, name.length, ...name, 0, 0];
  // i32.const major, i32.const 16, i32.shl, end
  const code = [10, 9, 1, 7, 0, 0x41, major, 0x41, 16, 0x74, 0x0b];
  return new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, ...type, 3, 2, 1, 0, ...exported, ...code]);
}

describe("an instance of the core", () => {
  it("opens by address, from bytes, from a compiled module, and at once", async () => {
    const compiled = await WebAssembly.compile(new Uint8Array(wasm));
    const url = new URL(import.meta.resolve("berth-core/berth-core.wasm"));
    const cores = [Core.open(url), Core.open(new Uint8Array(wasm)), Core.open(compiled), Core.openSync(wasm)];
    for (const opened of await Promise.all(cores)) assert.equal(opened.liveObjects(), 0);
  });

  it("refuses a module of another ABI, and what is no module", async () => {
    await assert.rejects(Core.open(moduleOfMajor(2)), {
      name: "CoreError",
      operation: "abi_version",
      got: "major 2, wanted 1",
    });
    assert.throws(() => Core.openSync(moduleOfMajor(0)), CoreError);
    await assert.rejects(Core.open(new Uint8Array(8)), WebAssembly.CompileError);
    await assert.rejects(Core.open(new URL("file:///nowhere.wasm")), { code: "ENOENT" });
  });

  it("opens what a server sends, whatever type it gives the core, and says what is not there", async () => {
    const server = createServer(({ url }, response) => {
      response.writeHead(url === "/absent" ? 404 : 200, url === "/named" ? { "content-type": "application/wasm" } : {});
      response.end(wasm);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const site = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    try {
      for (const path of ["/named", "/unnamed"]) {
        assert.equal((await Core.open(new URL(path, site))).liveObjects(), 0);
      }
      await assert.rejects(Core.open(new URL("/absent", site)), new Error(`Cannot load ${site}/absent: status 404`));
    } finally {
      server.close();
    }
  });

  it("has a copy that goes its own way, and pools and sets in it", () => {
    using pool = core.createPool(["10.0.0.0/24"]);
    using set = core.rangeSet(["10.0.0.0/24"]);
    pool.claim("10.0.0.0");
    const [twin, twinPool, twinSet] = core.copy(pool, set);
    assert.equal(twin.liveObjects(), core.liveObjects());
    assert.equal(twinPool.allocate("ASCENDING"), "10.0.0.1");
    assert.deepEqual([pool.counts().used, twinPool.counts().used], [1, 2]);
    twinSet.drop();
    assert.equal(set.size(), 256n);
    assert.throws(() => twin.copy(pool), /another instance/);
    assert.throws(() => twin.copy(set), /another instance/);
  });

  it("shows the raw exports, for ordinals", () => {
    using pool = core.createPool(["10.0.0.0/24"]);
    const ordinal = core.raw.pool_allocate(pool.handle, Policy.HASHED, 77);
    assert.equal(ordinal, 77);
    assert.equal(pool.test("10.0.0.77"), true);
    assert.equal(core.raw.pool_release_at(pool.handle, ordinal), 1);
    assert.equal(core.raw.pool_release_at(pool.handle, 256), Status.OUTSIDE);
    assert.equal(core.raw.pool_test_at(0x7fffffff, 0), Status.BAD_HANDLE);
    assert.equal(core.raw.exchange(-1), Status.BAD_ARGUMENT);
  });

  it("holds nothing when opened raw", async () => {
    const raw = await openRaw();
    assert.equal(raw.exchange_size(), 0);
    assert.equal(raw.state_bytes(), 256);
    assert.equal(raw.pool_allocate_many(1, 0, 0, 1), Status.BAD_HANDLE);
  });

  it("finds its buffer again when memory has grown under it, in a batch and beside one", () => {
    const small = Core.openSync(wasm);
    const pool = small.createPool(["10.0.0.0/8"]);
    const spread = Array.from({ length: 4096 }, (_, index) => `10.${index >> 4}.${(index & 15) << 4}.1`);
    const beforeBytes = small.sizeBytes();
    assert.equal(pool.claimMany(spread), 4096);
    assert.ok(small.sizeBytes() > beforeBytes + 4096 * 512);
    assert.equal(pool.testMany(spread).every(Boolean), true);
    // The raw exports move the buffer behind the back of the classes.
    small.raw.exchange(2 ** 20);
    assert.equal(pool.claim("10.1.2.3"), "claimed");
    assert.deepEqual(pool.used().count(), 4097);
    assert.equal(pool.releaseMany(spread), 4096);
  });

  it("refuses a batch above its ceiling, and goes on", () => {
    using pool = core.createPool(["10.0.0.0/24"]);
    assert.throws(() => pool.values.claimMany(new Uint8Array(2 ** 28 + 4)), { name: "CoreError", status: -7 });
    assert.throws(() => pool.allocateMany(-1, "ASCENDING"), { name: "CoreError", status: -4 });
    assert.equal(pool.values.claimMany(pack(["10.0.0.9"])), 1);
    assert.equal(pool.counts().used, 1);
  });

  it("makes and drops 100,000 pools in the memory of one, and refuses one above its ceiling", () => {
    const fresh = Core.openSync(wasm);
    fresh.createPool(["10.0.0.0/24"], ["10.0.0.0"]).drop();
    const sizeBytes = fresh.sizeBytes();
    for (let turn = 0; turn < 100_000; turn++) {
      using pool = fresh.createPool(["10.0.0.0/24"], ["10.0.0.0"]);
      if (pool.allocate("ASCENDING") !== "10.0.0.1") assert.fail(`turn ${turn}`);
    }
    assert.ok(fresh.sizeBytes() <= sizeBytes + 4096);
    assert.equal(fresh.liveObjects(), 0);
    for (let count = 0; count < MAX_OBJECTS; count++) fresh.rangeSet(["10.0.0.0/24"]);
    assert.throws(() => fresh.rangeSet(["10.0.0.0/24"]), { name: "CoreError", operation: "set_create", status: -7 });
  });
});
