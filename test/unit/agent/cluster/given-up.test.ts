/**
 * Addresses that a journal has taken in after a loss, and that the ADD gives up for the address of an earlier pod of
 * the member (retention).
 */
import { expect, it } from "vitest";
import { allocateAddresses } from "../../../../host/agent/ipam/allocate.ts";
import type { HolderStatus } from "../../../../host/ipam/retention.ts";
import { formatIp } from "../../../../host/net/ip.ts";
import { clusterIpam } from "../../../world/cluster-ipam.ts";
import { allocationLines, type ClusterNode, decodeStored, openClusterNode } from "../../../world/node.ts";
import { claim, claimAndRetain, pool, proposal, snapshotOf } from "../../../world/subjects.ts";
import { ip } from "../../../world/values.ts";

const BLUE = pool("blue", "10.6.0.0/24", { ips: ["10.6.0.1-10.6.0.9"] });
const DB = { kind: "StatefulSet", namespace: "shop", name: "db", uid: "set", member: "db-0" };
const OWN = "10.6.0.1";
const EARLIER = "10.6.0.2";

const recorded = ({ server }: ClusterNode): readonly string[] => allocationLines(server).sort();

/**
 * Returns the node that has taken in the pod's own address, which may never have been answered; an earlier pod has
 * another one on n2.
 */
async function lost(earlier: HolderStatus): Promise<ClusterNode> {
  const other = await openClusterNode({ name: "n2" });
  const { registry, server } = other;
  await claimAndRetain(registry, claim("uid-first", [proposal(EARLIER)], { pod: "db-0", workload: DB }));
  await registry.release({ containerId: "c-uid-first", ifName: "eth0" });
  await other.pass(0);
  const [retained] = await registry.findRetained(DB);
  const replaces = retained?.version ?? expect.fail("It is retained");
  await claimAndRetain(registry, claim("uid-old", [proposal(EARLIER, { replaces })], { pod: "db-0", workload: DB }));
  const before = await openClusterNode({ server });
  await before.registry.claim(claim("uid-db-0", [proposal(OWN)], { pod: "db-0", workload: DB }));
  const isLivePod = async (_namespace: string, _pod: string, uid: string): Promise<boolean> => uid === "uid-db-0";
  const readHolderStatus = async (): Promise<HolderStatus> => earlier;
  const node = await openClusterNode({ server, snapshot: snapshotOf(BLUE), isLivePod, readHolderStatus });
  const { workload, number = 1 } = decodeStored(server.objects.get(OWN) ?? expect.fail("It is recorded")).spec;
  const row = {
    ...proposal(OWN),
    state: "Bound",
    owner: "uid-db-0",
    namespace: "shop",
    pod: "db-0",
    workload,
    claim: { id: "c", number, earlier: [] },
  } as const;
  await node.registry.adopt(row);
  expect(recorded(node)).toEqual([`${OWN} Bound n1`, `${EARLIER} Bound n2`]);
  return node;
}

const add = (node: ClusterNode) =>
  allocateAddresses(
    { registry: node.registry, poolCache: node.poolCache, cluster: clusterIpam({ records: node.registry }) },
    node.demand("db-0", [{ ifName: "eth0", pools: [["blue"]] }], { workload: DB }),
  );

it("is released when the ADD waits for the earlier pod, which has not released its address", async () => {
  const node = await lost("alive");
  await expect(add(node)).rejects.toMatchObject({ code: 11 });
  await node.pass(60_000);
  expect(recorded(node)).toEqual([`${EARLIER} Bound n2`]);
  expect(await node.registry.findAddress("", ip(OWN))).toBeUndefined();
});

it("is released when the ADD has got that address", async () => {
  const node = await lost("gone");
  expect((await add(node)).held.map((row) => formatIp(row.ip))).toEqual([EARLIER]);
  await node.pass(60_000);
  expect(recorded(node)).toEqual([`${EARLIER} Bound n1`]);
});
