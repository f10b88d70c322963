/**
 * Calico's IPPool, in either of its groups. One that is disabled counts: it gives out nothing new, and pods keep what they have. One for
 * tunnels or load balancers alone does not.
 */
import { z } from "zod";
import type { KubeObject } from "../../../kubernetes/kube-api.ts";
import { decode, formatMismatches } from "../../../lib/schema.ts";
import { faultyStatement, readStatements, type Statement } from "../statement.ts";
import { nameOf } from "./name.ts";

const schema = z.object({
  spec: z.object({ cidr: z.string(), allowedUses: z.array(z.string()).nullish() }),
});

export function readCalicoPool(object: KubeObject): readonly Statement[] {
  const place = `Calico's IPPool ${nameOf(object)}`;
  const decoded = decode(schema, object);
  if (!decoded.ok) return [faultyStatement(place, formatMismatches(decoded.mismatches))];
  const { cidr, allowedUses } = decoded.value.spec;
  const uses = allowedUses ?? [];
  return uses.length === 0 || uses.includes("Workload") ? readStatements(place, [cidr]) : [];
}
