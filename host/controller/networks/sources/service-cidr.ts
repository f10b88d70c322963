/**
 * ServiceCIDR (networking.k8s.io/v1): what services have their addresses from. One that is being deleted counts until it is gone: as long
 * as it is there, services may have addresses of it.
 */
import { z } from "zod";
import type { KubeObject } from "../../../kubernetes/kube-api.ts";
import { decode, formatMismatches } from "../../../lib/schema.ts";
import { faultyStatement, readStatements, type Statement } from "../statement.ts";
import { nameOf } from "./name.ts";

const schema = z.object({ spec: z.object({ cidrs: z.array(z.string()).nullish() }).nullish() });

export function readServiceCidr(object: KubeObject): readonly Statement[] {
  const place = `ServiceCIDR ${nameOf(object)}`;
  const decoded = decode(schema, object);
  if (!decoded.ok) return [faultyStatement(place, formatMismatches(decoded.mismatches))];
  return readStatements(place, decoded.value.spec?.cidrs ?? []);
}
