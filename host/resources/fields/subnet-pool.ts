/** `spec.generated` of an IPPool: its pool owner and its Subnet (docs/subnets.md). */

import * as z from "zod";
import { namespaceName, objectName } from "../../config/fields/names.ts";
import { ifName } from "../../config/fields/network.ts";
import { cel, IMMUTABLE } from "../../lib/cel.ts";
import { wholeNumber } from "../../lib/schema.ts";
import { MAX_ALLOCATION_TEXT, MAX_UID_LENGTH } from "../member.ts";

/** Longest reason for the size of a generated pool: characters. */
const MAX_REASON_LENGTH = 512;

const text = z.string().min(1).max(MAX_ALLOCATION_TEXT);

const application = z.strictObject({
  apiVersion: text.meta({ description: "Its API group and version." }),
  kind: text.meta({ description: "Its kind." }),
  namespace: namespaceName.meta({ description: "Its namespace." }),
  name: text.meta({ description: "Its name." }),
  uid: z
    .string()
    .min(1)
    .max(MAX_UID_LENGTH)
    .meta({ description: "Its UID. Changes when a later workload of the same name takes over the pool." }),
});

/** A workload for which pools are generated: the top of the chain of controllers of its pods (docs/subnets.md). */
export type PoolOwner = Readonly<z.output<typeof application>>;

export const subnetPoolSpec = z.strictObject({
  subnet: objectName.meta({ description: "The Subnet that supplies its addresses. Immutable.", ...cel(IMMUTABLE) }),
  application: application.meta({ description: "The workload whose pods may use the pool. No other pods may." }),
  interface: ifName.meta({ description: "The NIC that the pool serves." }),
  reclaim: z.boolean().meta({ description: "Whether the pool is deleted with the workload." }),
  wanted: wholeNumber(0).meta({ description: "Number of addresses that the pool should have." }),
  reason: z
    .string()
    .max(MAX_REASON_LENGTH)
    .meta({ description: "Why the pool should have that number: a sentence without its full stop." }),
});

export type SubnetPoolSpec = Readonly<Omit<z.output<typeof subnetPoolSpec>, "interface">> & {
  readonly interface: string;
};

/**
 * Returns a unique key. It includes the namespace: users with the right to create pods can write any UID into owner
 * references, but only in their own namespaces.
 */
export function poolOwnerKey({ namespace, uid }: Pick<PoolOwner, "namespace" | "uid">): string {
  return `${namespace}/${uid}`;
}

/** `Deployment shop/web` */
export function describePoolOwner({ kind, namespace, name }: Omit<PoolOwner, "uid" | "apiVersion">): string {
  return `${kind} ${namespace}/${name}`;
}

/** Returns whether both have one kind, namespace and name: a later workload may take over an earlier one's pools. */
export function isSameWorkload(one: PoolOwner, other: PoolOwner): boolean {
  const groupOf = ({ apiVersion }: PoolOwner): string => apiVersion.split("/").slice(0, -1).join();
  return (
    one.kind === other.kind &&
    groupOf(one) === groupOf(other) &&
    one.namespace === other.namespace &&
    one.name === other.name
  );
}
