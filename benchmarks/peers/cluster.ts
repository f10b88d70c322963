/**
 * Content of the API server before peers are measured: all kinds, a namespace for the pods, and Berth's pool and
 * settings.
 * Effects: objects in the API server.
 */
import { EPOCH_MAP } from "../../host/resources/registry-epoch.ts";
import { applyCrds } from "../../test/lab/cluster/crds.ts";
import { fillPool } from "../../test/lab/cluster/fill.ts";
import { applyPeerKinds } from "../../test/lab/cluster/peer-kinds.ts";
import type { ControlPlane } from "../../test/lab/control-plane.ts";
import { type PoolShape, takenOffsets, usableRange, usableRange6 } from "../ipam/pool-shape.ts";

/**
 * Berth's allocations of other pods, as many as the shape has, in the pool that {@link furnish} has made; those of
 * `before` are there.
 */
export async function fillBerth({ etcdUrl }: ControlPlane, shape: PoolShape, before?: PoolShape): Promise<void> {
  const taken = new Set(takenOffsets(shape)).difference(new Set(before === undefined ? [] : takenOffsets(before)));
  let offset = 0;
  await fillPool(etcdUrl, { subnet: shape.subnet, pool: "bench", isTaken: () => taken.has(++offset) });
}

/** The specs of Berth's default pools for a shape: one for each family. */
export function poolSpecs({ subnet, subnet6 }: PoolShape): object[] {
  return [
    { subnet, ...rangeOf(usableRange({ subnet })) },
    ...(subnet6 === undefined ? [] : [{ subnet: subnet6, ...rangeOf(usableRange6(subnet6)) }]),
  ];
}

const rangeOf = ({ gateway, first, last }: ReturnType<typeof usableRange6>): object => ({
  ...{ gateway, ips: [`${first}-${last}`] },
});

/** `pools` are the rest of the pools' specs, the IPv4 one's first. */
export async function furnish({ client }: ControlPlane, pools: readonly object[]): Promise<void> {
  await Promise.all([applyCrds(client), applyPeerKinds(client)]);
  await client.create("/api/v1/namespaces", { metadata: { name: "bench" } });
  for (const [index, pool] of pools.entries())
    await client.create("/apis/ipam.vendor.io/v1/ippools", {
      ...{ apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: { name: index === 0 ? "bench" : "bench-6" } },
      spec: { default: true, cooldown: "0s", ...pool },
    });
  const confYml = `enableIPv6: ${pools.length > 1}\nhostRouteCIDR: ["10.6.0.0/16"]\n`;
  const configMaps = "/api/v1/namespaces/kube-system/configmaps";
  await client.create(configMaps, { metadata: { name: "vendor-conf" }, data: { "conf.yml": confYml } });
  // As a controller makes it: otherwise a registry counts as one that has just appeared.
  await client.create(configMaps, { metadata: { name: EPOCH_MAP } });
}
