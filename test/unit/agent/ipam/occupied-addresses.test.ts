import { expect, it } from "vitest";
import { OccupiedAddresses } from "../../../../host/agent/ipam/occupied-addresses.ts";
import {
  MAX_REFUSED_OF_OWNER,
  MAX_REFUSED_OWNERS,
  RefusedAddresses,
} from "../../../../host/agent/ipam/refused-addresses.ts";
import { NetlinkError } from "../../../../host/kernel/netlink/error.ts";
import { openLog } from "../../../../host/lib/log.ts";
import type { OccupiedIp } from "../../../../host/resources/occupied-ips.ts";
import { ip } from "../../../world/values.ts";

it("occupied addresses stay the same while the kernel refuses to tell, and nothing hides another error", () => {
  const node: readonly OccupiedIp[] = [{ ip: ip("10.0.0.1"), why: "the node has it" }];
  let failure: Error | undefined;
  const read = (): readonly OccupiedIp[] => {
    if (failure !== undefined) throw failure;
    return node;
  };
  const occupied = new OccupiedAddresses(read, openLog("test", "silent"));
  const before = occupied.read();
  failure = new NetlinkError({ operation: "list addresses", errno: 105 });
  expect(occupied.read()).toBe(before);
  failure = new TypeError("a defect");
  expect(() => occupied.read()).toThrow("a defect");
});

it("refused addresses are remembered by owner, so many of so many", () => {
  const refused = new RefusedAddresses();
  const of = (at: number) => ({ space: "", ip: { family: 4 as const, value: BigInt(at) }, why: "it is taken" });
  expect(refused.get("u1")).toBe(undefined);
  for (let at = 0; at <= MAX_REFUSED_OF_OWNER; at++) refused.add("u1", of(at));
  expect([refused.get("u1")?.length, refused.get("u1")?.[0]]).toEqual([MAX_REFUSED_OF_OWNER, of(1)]);
  for (let at = 0; at < MAX_REFUSED_OWNERS; at++) refused.add(`other-${at}`, of(at));
  expect(refused.get("u1")).toBe(undefined);
});
