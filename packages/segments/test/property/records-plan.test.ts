/** Random pods, time and changes by others: the effects of plans on the server's own entries. */
import { expect, it } from "vitest";
import { Seeded } from "../../../../test/world/seeded.ts";
import {
  type HeldSince,
  type KnownEntry,
  planRecords,
  printOf,
  type UsedAddress,
} from "../../controllers/plan-records.ts";
import { placeKey } from "../../record-server/pod-address.ts";

const INTERVAL_MS = 100;
const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000);

function pod(address: number, number: number): UsedAddress {
  const [ip, name] = [`10.6.0.${address}`, `10.6.0.${address}`];
  return { space: "", ip, name, prefixLength: 24, dnsName: `p${number}`, description: `pod ${number}`, holder: number };
}

it(`entries follow pods' addresses of the interval, and nothing else is touched (SEED=${SEED})`, () => {
  const chance = new Seeded(SEED);
  const used = new Map<string, { readonly address: UsedAddress; readonly sinceMs: number }>();
  const server = new Map<string, UsedAddress & KnownEntry>();
  const held = new Map<string, HeldSince>();
  let [nowMs, number, seenMs] = [0, 0, 0];
  const plan = (isComplete: boolean) =>
    planRecords({
      ...{ used: [...used.values()].map(({ address }) => address), held, known: server, findings: new Map() },
      ...{ nowMs, intervalMs: INTERVAL_MS, isComplete },
    });
  const put = (address: UsedAddress, id: string) =>
    server.set(placeKey(address), { ...address, id, print: printOf(address) });
  for (let step = 0; step < 5_000; step++) {
    nowMs += chance.below(40);
    const address = pod(chance.below(12), number++);
    const key = placeKey(address);
    if (chance.chance(0.3)) used.set(key, { address, sinceMs: nowMs });
    else if (chance.chance(0.4)) used.delete(key);
    if (!chance.chance(0.6)) continue;
    const isComplete = chance.chance(0.8);
    const { create, update, remove, pending, inSync } = plan(isComplete);
    expect(pending).toBe(create.length + update.length + remove.length);
    for (const each of [...create, ...update]) {
      const now = used.get(placeKey(each));
      expect(now?.address.holder, "what is written is in use").toBe(each.holder);
      expect(nowMs - (now?.sinceMs ?? nowMs), "and has been for the interval").toBeGreaterThanOrEqual(INTERVAL_MS);
    }
    for (const each of create) expect(server.has(placeKey(each))).toBe(false);
    for (const each of update) expect(server.get(placeKey(each))?.id).toBe(each.id);
    for (const each of remove) expect(used.has(placeKey(each)), "what is deleted is not in use").toBe(false);
    if (!isComplete) expect(remove).toEqual([]);
    expect(inSync).toBeLessThanOrEqual(used.size);
    expect(held.size, "what is remembered is bounded by what is in use").toBeLessThanOrEqual(used.size);
    // The server carries out some of it.
    for (const each of create) if (chance.chance(0.7)) put(each, `id-${number}-${each.ip}`);
    for (const each of update) if (chance.chance(0.7)) put(each, each.id);
    for (const each of remove) if (chance.chance(0.7)) server.delete(placeKey(each));
    seenMs = nowMs;
  }
  expect(seenMs).toBeGreaterThan(0);
  // Nothing changes any more: a pass to see it, and one after the interval.
  plan(true);
  nowMs += INTERVAL_MS;
  const { create, update, remove } = plan(true);
  for (const each of create) put(each, `last-${each.ip}`);
  for (const each of update) put(each, each.id);
  for (const each of remove) server.delete(placeKey(each));
  const shown = (list: Iterable<UsedAddress>) => [...list].map(({ ip, dnsName }) => `${ip} ${dnsName}`).sort();
  expect(shown(server.values())).toEqual(shown([...used.values()].map(({ address }) => address)));
  expect(plan(true)).toMatchObject({ pending: 0, inSync: used.size });
});
