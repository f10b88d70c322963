/** The last look at the pool before an address of a leased block is given. */
import { expect, it } from "vitest";
import { requireLeased } from "../../../../host/agent/ipam/leased-blocks.ts";
import type { Allocation } from "../../../../host/registry/registry.ts";
import type { IpPool } from "../../../../host/resources/ip-pool.ts";
import { leasingPool } from "../../../world/leasing-pool.ts";
import { pool, poolsByName, proposal } from "../../../world/subjects.ts";

const seg = (...blocks: readonly string[]): IpPool => leasingPool("seg", "10.6.0.0/24", blocks);
const ACTIVE = seg("10.6.0.16/28 Active");

/** Returns why 10.6.0.17 is not given; `now`: the pool as it is read. */
async function refusalOf(now: IpPool | Error | undefined, known: IpPool = ACTIVE, isKnown = false) {
  const reads: string[] = [];
  const readPool = async (name: string) => {
    reads.push(name);
    if (now instanceof Error) throw now;
    return now;
  };
  const held = [proposal("10.6.0.17", { pool: known.name }) as unknown as Allocation];
  const given = { held, isKnown: () => isKnown, pools: poolsByName(known), signal: AbortSignal.timeout(1_000) };
  const refusal = await requireLeased({ readPool }, given).then(
    () => undefined,
    ({ code, message }) => `${code}: ${message}`,
  );
  return { refusal, reads };
}

const UNREAD = '11: Address 10.6.0.17 is not given: pool "seg" cannot be read: no connection; try again';
const GONE = '11: Address 10.6.0.17 is not given: pool "seg" no longer gives addresses of its block; try again';

it.each<[what: string, now: IpPool | Error | undefined, refusal: string | undefined]>([
  ["gives addresses of the block", ACTIVE, undefined],
  ["has left its range with the block", pool("seg", "10.6.0.0/24", { ips: ["10.6.0.16-10.6.0.31"] }), undefined],
  ["returns the block", seg("10.6.0.16/28 Returning"), GONE],
  ["has another block", seg("10.6.0.32/28 Active"), GONE],
  ["is being deleted", { ...ACTIVE, deleting: true }, GONE],
  ["is gone", undefined, GONE],
  ["cannot be read", new Error("no connection"), UNREAD],
])("of a pool that now %s", async (_what, now, refusal) => {
  expect(await refusalOf(now)).toEqual({ refusal, reads: ["seg"] });
});

it("nothing is read for an address that the NIC had before, nor for one of a pool without blocks", async () => {
  const free = { refusal: undefined, reads: [] };
  expect(await refusalOf(undefined, ACTIVE, true)).toEqual(free);
  expect(await refusalOf(undefined, pool("blue", "10.6.0.0/24"))).toEqual(free);
});
