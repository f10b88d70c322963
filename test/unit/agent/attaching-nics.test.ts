import { expect, it } from "vitest";
import { AttachingNics, NIC_COMING_UP_MS } from "../../../host/agent/ipam/attaching-nics.ts";
import type { NetnsStatus } from "../../../host/ipam/leak.ts";
import type { Allocation } from "../../../host/registry/registry.ts";
import { ip } from "../../world/values.ts";

type AttachedNic = Pick<Allocation, "netns" | "ifName" | "ip">;

const NIC = { netns: "/run/netns/c", ifName: "eth0", ip: ip("10.0.0.1") };

function scene() {
  const world = { nowMs: 0, status: "there" as NetnsStatus };
  const attaching = new AttachingNics(() => world.nowMs);
  const { readNetnsStatus } = attaching.guard({ readNetnsStatus: async (_nic: AttachedNic) => world.status });
  return { world, attaching, read: (nic = NIC) => readNetnsStatus(nic) };
}

it("a NIC has its address from the beginning of its ADD until a while after the answer", async () => {
  const { world, attaching, read } = scene();
  const answer = Promise.withResolvers<string>();
  const adding = attaching.run(NIC, () => answer.promise);
  world.nowMs = 60_000;
  expect([await read(), await read({ ...NIC, ifName: "net1" })]).toEqual(["inUse", "there"]);
  world.status = "unknown";
  expect(await read()).toBe("inUse");
  answer.resolve("10.0.0.1");
  expect(await adding).toBe("10.0.0.1");
  world.status = "there";
  world.nowMs += NIC_COMING_UP_MS - 1;
  expect(await read()).toBe("inUse");
  world.nowMs += 1;
  expect(await read()).toBe("there");
});

it("nothing comes up after a refusal, nor in a network namespace that is gone", async () => {
  const { world, attaching, read } = scene();
  await expect(attaching.run(NIC, () => Promise.reject(new Error("refused")))).rejects.toThrow("refused");
  expect(await read()).toBe("there");
  await attaching.run(NIC, async () => {});
  expect(await read()).toBe("inUse");
  world.status = "gone";
  expect(await read()).toBe("gone");
});

it("an address that the NIC was seen to have since the answer may be taken off it at once; another one may still come up", async () => {
  const { world, attaching, read } = scene();
  await attaching.run(NIC, async () => {});
  const six = { ...NIC, ip: ip("fd00::1") };
  world.status = "inUse";
  expect(await read()).toBe("inUse");
  world.status = "there";
  expect([await read(), await read(six)]).toEqual(["there", "inUse"]);
  expect([attaching.has(NIC), attaching.has(six)]).toEqual([false, true]);
  await attaching.run(NIC, async () => {});
  expect(await read()).toBe("inUse");
});

it("of two ADDs of one NIC each counts, and one without a network namespace does not", async () => {
  const { attaching } = scene();
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const adding = [attaching.run(NIC, () => first.promise), attaching.run(NIC, () => second.promise)];
  first.reject(new Error("refused"));
  await expect(adding[0]).rejects.toThrow("refused");
  expect(attaching.has(NIC)).toBe(true);
  second.reject(new Error("refused"));
  await expect(adding[1]).rejects.toThrow("refused");
  expect(attaching.has(NIC)).toBe(false);
  await attaching.run({ ifName: "eth0" }, async () => {});
  const places = [undefined, ""].map((netns) => ({ ...NIC, netns }));
  expect(places.map((place) => attaching.has(place))).toEqual([false, false]);
});
