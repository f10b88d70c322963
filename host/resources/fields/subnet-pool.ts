/**
 * `spec.generated` of an IPPool: for whom and out of which Subnet the controller made it (docs/subnets.md, decision 0022).
 */

import { z } from "zod";
import { namespaceName, objectName } from "../../config/fields/names.ts";
import { ifName } from "../../config/fields/network.ts";
import { cel, IMMUTABLE } from "../../lib/cel.ts";
import { wholeNumber } from "../../lib/schema.ts";
import { MAX_ALLOCATION_TEXT, MAX_UID_LENGTH } from "../ip-allocation.ts";

/** Longest reason for the size of a generated pool: characters. @limit */
export const MAX_REASON_LENGTH = 512;

const text = z.string().min(1).max(MAX_ALLOCATION_TEXT);

const application = z.strictObject({
  apiVersion: text.meta({ description: "Its API group and version." }),
  kind: text.meta({ description: "Its kind." }),
  namespace: namespaceName.meta({ description: "Its namespace." }),
  name: text.meta({ description: "Its name." }),
  uid: z.string().min(1).max(MAX_UID_LENGTH).meta({ description: "Its UID; another one when a later workload of the same name has taken the pool over." }), // biome-ignore format: one thought
});

/** A workload for which pools are generated: what its pods belong to at the top (docs/subnets.md, "Whose pool it is"). */
export type Application = Readonly<z.output<typeof application>>;

export const generated = z.strictObject({
  subnet: objectName.meta({ description: "The Subnet that its addresses come from; immutable.", ...cel(IMMUTABLE) }),
  application: application.meta({ description: "The workload whose pods alone may use it." }),
  interface: ifName.meta({ description: "The NIC that it is for." }),
  reclaim: z.boolean().meta({ description: "Whether it goes with the workload." }),
  wanted: wholeNumber(0).meta({ description: "Addresses that it is to have." }),
  reason: z.string().max(MAX_REASON_LENGTH).meta({ description: "Why so many: a sentence without its end." }),
});

export type Generated = Readonly<Omit<z.output<typeof generated>, "interface">> & { readonly interface: string };

/** Tells applications apart. Whoever may create pods may write any UID into their owner references, but only within a namespace of his. */
export function applicationKey({ namespace, uid }: Pick<Application, "namespace" | "uid">): string {
  return `${namespace}/${uid}`;
}

/** `Deployment shop/web` */
export function describeApplication({ kind, namespace, name }: Omit<Application, "uid" | "apiVersion">): string {
  return `${kind} ${namespace}/${name}`;
}
