/**
 * What the API server has before peers are measured: all kinds, a namespace for the pods, and Berth's pool and settings.
 * Effects: objects in the API server.
 */
import { applyCrds } from "../../scripts/lab/cluster/crds.ts";
import { applyPeerKinds } from "../../scripts/lab/cluster/peer-kinds.ts";
import type { ControlPlane } from "../../scripts/lab/control-plane.ts";
import { fillPool } from "../../scripts/lab/scale/fill.ts";
import { type PoolShape, takenOffsets } from "../ipam/pool-shape.ts";

/** Berth's allocations of other pods, as many as the shape has, in the pool that {@link furnish} has made. */
export async function fillBerth({ etcdUrl }: ControlPlane, shape: PoolShape): Promise<void> {
  const taken = new Set(takenOffsets(shape));
  let offset = 0;
  await fillPool(etcdUrl, { subnet: shape.subnet, pool: "bench", isTaken: () => taken.has(++offset) });
}

/** `pool` is the rest of the pool's spec. */
export async function furnish({ client }: ControlPlane, pool: object): Promise<void> {
  await Promise.all([applyCrds(client), applyPeerKinds(client)]);
  await client.create("/api/v1/namespaces", { metadata: { name: "bench" } });
  await client.create("/apis/ipam.vendor.io/v1/ippools", {
    ...{ apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: { name: "bench" } },
    spec: { default: true, cooldown: "0s", ...pool },
  });
  await client.create("/api/v1/namespaces/kube-system/configmaps", {
    metadata: { name: "vendor-conf" },
    data: { "conf.yml": 'enableIPv6: false\nhostRouteCIDR: ["10.6.0.0/16"]\n' },
  });
}
