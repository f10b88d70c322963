/** Records an address that is taken without a pod: the create is the claim. */
import { isOutdated } from "../kubernetes/kube-api.ts";
import { orElse } from "../lib/try-or.ts";
import { createAllocation, readAllocation, replaceAllocation } from "../registry/kubernetes/allocation-objects.ts";
import { allocationName, type IpAllocation, type IpAllocationSpec } from "../resources/ip-allocation.ts";
import type { ControllerDeps } from "./types.ts";

/** Records that are written at once. */
export const RECORDS_AT_ONCE = 4;

/**
 * Creates the record, or replaces the object that has the address, if that `isDue`. Returns false if it is not, or if
 * another writer was faster: the watch reports the address's owner.
 */
export async function writeRecord(
  { api, caches, clock, leading: signal }: Pick<ControllerDeps, "api" | "caches" | "clock" | "leading">,
  record: IpAllocationSpec,
  isDue: (found: IpAllocation) => boolean,
): Promise<boolean> {
  const terms = { lane: "background", signal } as const;
  const spec = { ...record, since: clock.now().toISOString() };
  const name = allocationName(spec.ip, spec.addressSpace);
  const write = async (): Promise<boolean> => {
    if (!caches.allocations.items.has(name)) await createAllocation(api, spec, terms);
    else {
      const found = await readAllocation(api, name, terms);
      if (found === undefined || !isDue(found)) return false;
      // Its version is a precondition.
      await replaceAllocation(api, spec, found, terms);
    }
    return true;
  };
  return write().catch(orElse(isOutdated, false));
}
