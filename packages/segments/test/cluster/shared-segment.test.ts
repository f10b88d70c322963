/**
 * Two clusters that share a segment of 30 addresses in blocks of eight: pods start in both until it is full, and no
 * address is given twice. The first cluster is the hub. A block rests for 150 ms.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { VERBS } from "../../../../test/cluster/verbs.ts";
import { runBerthctl } from "../../../../test/lab/berthctl.ts";
import type { LabController } from "../../../../test/lab/cluster/controller.ts";
import { until } from "../../../../test/lab/waiting.ts";
import { ofRun } from "../../../../test/world/long-cases.ts";
import { rows } from "../../../../test/world/rows.ts";
import { leasesOf, MEMBERS, RANGES } from "../lab/hub.ts";
import { answered, openSharing, type SharingCluster, shareRange } from "./sharing-clusters.ts";

let east: SharingCluster;
let west: SharingCluster;
const controllers: LabController[] = [];
const table: string[] = [];

beforeAll(async () => {
  ({ east, west } = await openSharing(["east", "west"], 400));
  await shareRange([east, west], "lan", { subnet: "10.6.0.0/27", blockSize: 29, gateway: "10.6.0.1" });
  for (const each of [east, west]) controllers.push(await each.lead());
});
afterAll(async () => {
  console.log(["Object, verb | new pods | what is said", ...table].join("\n"));
  for (const each of [east, west]) await each?.stop();
});

it("pods start in both until the segment is full, no address is given twice, and the refusal says why", async () => {
  const given: string[] = [];
  const refusals = new Map<SharingCluster, string>();
  for (let round = 0; refusals.size < 2; round++)
    for (const cluster of [east, west].filter((each) => !refusals.has(each))) {
      const outcome = await cluster.start(`web-${round}`);
      if (outcome.startsWith("refused")) refusals.set(cluster, outcome);
      else given.push(outcome);
    }
  // Of /27 without its first and last address and the gateway.
  expect(given).toHaveLength(29);
  expect([new Set(given).size, answered]).toEqual([given.length, []]);
  expect(await leasesOf(east.world.client, "lan")).toHaveLength(4);
  for (const refusal of refusals.values())
    expect(refusal).toMatch(
      /takes its blocks from AddressRange "lan": no block is free: this cluster has \d, (?:east|west) \d$/,
    );
});

it("each cluster's berthctl shows the holders of addresses, and whose block an address is in", async () => {
  const at = (cluster: SharingCluster, ...words: readonly string[]) =>
    runBerthctl("--kubeconfig", cluster.world.plane.kubeconfig, ...words);
  const list = async (cluster: SharingCluster) => JSON.parse((await at(cluster, "blocks", "-o", "json")).out);
  await until("both know of four blocks", async () => {
    const known = await Promise.all([east, west].map(list));
    return known.every(({ ranges: [lan] }) => lan.blocks + (lan.others[0]?.blocks ?? 0) === 4);
  });
  const { ranges, blocks } = await list(east);
  expect(ranges).toEqual([
    expect.objectContaining({
      name: "lan",
      member: "east",
      maxBlocks: 4,
      others: [expect.objectContaining({ member: "west" })],
    }),
  ]);
  expect(ranges[0].reason).toBe("RangeUsedUp");
  const { conditions } = (await east.world.read("ippools", "lan")).status;
  const supplied = conditions.find(({ type }: { type: string }) => type === "Supplied");
  expect(supplied).toMatchObject({ status: "False", reason: ranges[0].reason });
  const other = blocks.find(({ member }: { member: string }) => member === "west");
  // Neither the network's address nor the gateway.
  const address = other.block.split("-")[0].replace(/\d+$/, (last: string) => String(Number(last) + 4));
  expect((await at(east, "ip", address)).out).toContain('its block of AddressRange "lan" is cluster "west"\'s');
});

it("the block of a reserved address is leased; the other cluster is told its holder", async () => {
  const subnet = { subnet: "10.7.0.0/26", gateway: "10.7.0.1" };
  // The west's comes later: its first block, by chance, may be that one.
  await shareRange([east, west], "fixed", { ...subnet, blockSize: 29 }, [east]);
  const spec = { ips: ["10.7.0.50"], owner: { namespace: "shop", name: "db-0" } };
  await east.world.create("ReservedIP", "db-0", spec);
  await until("east has the block", async () =>
    (await east.world.read("ippools", "fixed")).status?.source?.blocks.some(
      ({ block, state }: Record<string, string>) => block === "10.7.0.48/29" && state !== "Resting",
    ),
  );
  expect(await east.start("db-0", "fixed")).toBe("10.7.0.50");
  await west.world.pool("fixed", { ...subnet, source: { range: "fixed" } });
  const heard = async () => (await west.world.read("ippools", "fixed")).status?.source?.others?.length > 0;
  await until("the west knows of the east's blocks", heard);
  await west.world.create("ReservedIP", "db-0", spec);
  const clause = 'pool fixed: its block of AddressRange "fixed" is cluster "east"\'s';
  const saidOf = async () =>
    (await west.world.read("reservedips", "db-0")).status?.conditions.find(
      ({ type }: Record<string, string>) => type === "Unavailable",
    )?.message;
  await expect.poll(saidOf, { timeout: 30_000 }).toBe(`No pod gets the address: ${clause}`);
  const refusal =
    'requested by ReservedIP "db-0" is refused: 10.7.0.50: pool "fixed" may not hand out 10.7.0.50: its block of AddressRange "fixed" is cluster "east"';
  expect(await west.start("db-0", "fixed")).toContain(refusal);
  const at = (cluster: SharingCluster) => runBerthctl("--kubeconfig", cluster.world.plane.kubeconfig, "reservations");
  expect((await at(west)).out).toMatch(new RegExp(`shop/db-0 +Refused .* ${clause}`));
  expect((await at(east)).out).toMatch(/10\.7\.0\.50 +fixed +shop\/db-0 +InUse .* shop\/db-0 on n1/);
});

const CELLS = rows`
  AddressRange: deleted => the hub has no such range
  AddressRange: deleted and made again => nothing
  AddressRange: emptied => refused
  AddressRange: restored => nothing
  RangeMember: deleted => the hub has no RangeMember of this cluster
  RangeMember: deleted and made again => nothing
  RangeMember: emptied => refused
  RangeMember: without status => nothing
  RangeMember: malformed status => refused
  RangeMember: restored => nothing`;

/** Rule known-stays: the contents of the hub's objects are lost, and each cluster still knows its blocks. */
it.each(ofRun(CELLS, () => false))("%s => %s", { timeout: 180_000 }, async (cell, said) => {
  const at = CELLS.findIndex(([each]) => each === cell) + 1;
  const [kind, verb = ""] = cell.split(": ");
  const name = `lan-${at}`;
  const path = kind === "AddressRange" ? `${RANGES}/${name}` : `${MEMBERS}/${name}.east`;
  const { client } = east.world;
  await shareRange([east, west], name, { subnet: `10.6.${at}.0/26`, blockSize: 29, gateway: `10.6.${at}.1` });
  const given = [await east.start(`${name}-first`, name)];
  const first = await client.get(path);
  given.push(await west.start(`${name}-first`, name));
  const acting = VERBS[verb]?.(client, path, first) ?? Promise.reject(new Error(verb));
  expect(await acting.then(() => "done", String)).toMatch(said === "refused" ? /40[0359]|422/ : /^done$/);
  // Those of the first block, or of more than that.
  for (const pod of Array.from({ length: verb === "deleted" ? 5 : 9 }, (_, each) => `${name}-${each}`))
    given.push(...(await Promise.all([east.start(pod, name), west.start(pod, name)])));
  const problems = () =>
    controllers.flatMap((each) => each.problems("blocks").filter((text) => text.includes(`"${name}"`)));
  if (verb === "deleted") await expect.poll(() => problems().join(), { timeout: 10_000 }).toContain(said);
  table.push([cell, given.join(" "), [...new Set(problems())].join("; ").slice(0, 100)].join(" | "));
  expect(given.join()).not.toContain("refused");
  expect([new Set(given).size, answered]).toEqual([given.length, []]);
});
