import { describe, expect, it } from "vitest";
import { OwnWrites } from "../../../../host/controller/subnets/own-writes.ts";

const pool = (version: number, uid = "u1") => ({ name: "web", uid, resourceVersion: `${version}` });
const cache = (...pools: ReturnType<typeof pool>[]) => new Map(pools.map((each) => [each.name, each]));
const versions = (objects: readonly { uid: string; resourceVersion: string }[]) =>
  objects.map(({ uid, resourceVersion }) => `${uid} ${resourceVersion}`);

describe("what was written", () => {
  it("counts until the watch brings it, or what came after", () => {
    const writes = new OwnWrites<ReturnType<typeof pool>>();
    writes.wrote(pool(1), pool(2));
    writes.wrote(pool(2), pool(3));
    expect(versions(writes.applyTo(cache(pool(1))))).toEqual(["u1 3"]);
    expect(versions(writes.applyTo(cache(pool(2))))).toEqual(["u1 3"]);
    expect(versions(writes.applyTo(cache(pool(4))))).toEqual(["u1 4"]);
    expect(versions(writes.applyTo(cache(pool(3))))).toEqual(["u1 3"]);
  });

  it("is known as this process's own, each of its versions, until the watch has brought the last or another one", () => {
    const writes = new OwnWrites<ReturnType<typeof pool>>();
    expect(writes.hasWritten).toBe(false);
    writes.wrote(pool(1), pool(2));
    writes.wrote(pool(2), pool(3));
    expect(writes.hasWritten).toBe(true);
    expect([2, 3, 4].map((version) => writes.isOwn(pool(version)))).toEqual([true, true, false]);
    writes.applyTo(cache(pool(2)));
    expect([writes.hasWritten, writes.isOwn(pool(3))]).toEqual([false, true]);
    writes.applyTo(cache(pool(3)));
    expect(writes.isOwn(pool(3))).toBe(false);
  });

  it("does not count after the watch has brought what came after, although etcd is restored to a time before", () => {
    const writes = new OwnWrites<ReturnType<typeof pool>>();
    writes.wrote(pool(1), pool(2));
    expect(versions(writes.applyTo(cache(pool(3))))).toEqual(["u1 3"]);
    expect(versions(writes.applyTo(cache(pool(1))))).toEqual(["u1 1"]);
  });

  it("is no more when the watch says that it is gone, also when the answer comes later", () => {
    const writes = new OwnWrites<ReturnType<typeof pool>>();
    writes.wrote(pool(1), pool(2));
    writes.gone(pool(2));
    expect(writes.applyTo(cache())).toEqual([]);
    writes.gone(pool(2));
    writes.wrote(pool(2), pool(3));
    expect(writes.applyTo(cache())).toEqual([]);
    writes.wrote(undefined, pool(4, "u2"));
    expect(versions(writes.applyTo(cache()))).toEqual(["u2 4"]);
  });

  it("does not count when a write upon it was refused", () => {
    const writes = new OwnWrites<ReturnType<typeof pool>>();
    writes.wrote(pool(1), pool(2));
    writes.forget("web");
    expect(versions(writes.applyTo(cache(pool(1))))).toEqual(["u1 1"]);
  });
});
