/** Which controller leads, by the Lease that it renews. */
import * as z from "zod";
import type { KubeApi } from "../kubernetes/kube-api.ts";
import { LEASES } from "../kubernetes/paths.ts";
import { NOTIFIER_ANNOTATION } from "../resources/allocation-notice.ts";
import type { BerthPod } from "./berth-pods.ts";
import { readObjects } from "./read-objects.ts";

/** A Lease that was not renewed for this many of its durations is no leader's, by the caller's clock. */
const LEASE_DURATIONS = 4;

const lease = z.object({
  metadata: z.object({ annotations: z.record(z.string(), z.string()) }),
  spec: z.object({ holderIdentity: z.string().min(1), leaseDurationSeconds: z.number(), renewTime: z.string() }),
});

/**
 * Returns the name of the leader's pod; "" if none leads, undefined without pods of Berth. Rejects if the Leases of
 * their namespaces cannot be read.
 */
export async function readLeader(api: KubeApi, pods: readonly BerthPod[], now: Date): Promise<string | undefined> {
  if (pods.length === 0) return undefined;
  const namespaces = [...new Set(pods.map(({ namespace }) => namespace))];
  const read = namespaces.map((namespace) =>
    readObjects(api, { resource: LEASES, namespace }, (object) => lease.safeParse(object).data),
  );
  const [held] = (await Promise.all(read))
    .flat()
    .filter(
      ({ metadata, spec }) =>
        metadata.annotations[NOTIFIER_ANNOTATION] !== undefined &&
        Math.abs(now.getTime() - Date.parse(spec.renewTime)) < LEASE_DURATIONS * spec.leaseDurationSeconds * 1_000,
    );
  // The holder's identity is its pod's name and a random suffix.
  return held?.spec.holderIdentity.replace(/_[0-9a-f]+$/, "") ?? "";
}
