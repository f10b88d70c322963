/**
 * The name of an object, for sentences.
 */
import { z } from "zod";
import type { KubeObject } from "../../../kubernetes/kube-api.ts";

const schema = z.object({ metadata: z.object({ name: z.string() }) });

export function nameOf(object: KubeObject): string {
  return schema.safeParse(object).data?.metadata.name ?? "without a name";
}
