/** The fields of a Kubernetes Namespace that Berth reads. */
import * as z from "zod";
import { ANNOTATION_PREFIX } from "../config/annotations.ts";
import { decodeConfig } from "../config/config-error.ts";
import type { Labels } from "../config/label-selector.ts";
import { metadata } from "./fields/metadata.ts";

export interface Namespace {
  readonly kind: "Namespace";
  readonly name: string;
  readonly labels: Labels;
  /** Only those under `ipam.vendor.io/`. */
  readonly annotations: Readonly<Record<string, string>>;
  /** RFC 3339, to the second. */
  readonly createdAt?: string | undefined;
}

/** The API server omits `kind` in the items of a list. */
const namespaceSchema = z.object({ kind: z.literal("Namespace").optional(), metadata });

/** Decodes a Namespace; `source` names it in the error. Throws ConfigError. */
export function decodeNamespace(value: unknown, source: string): Namespace {
  const { name, labels, annotations, creationTimestamp } = decodeConfig(namespaceSchema, value, source).metadata;
  const own = Object.entries(annotations).filter(([key]) => key.startsWith(ANNOTATION_PREFIX));
  return { kind: "Namespace", name, labels, annotations: Object.fromEntries(own), createdAt: creationTimestamp };
}
