/**
 * The Kubernetes Namespace, as far as Berth reads it.
 * Called by the manifests and the watches.
 * Effects: none.
 */
import { z } from "zod";
import { decodeConfig } from "../config/config-error.ts";
import type { Labels } from "../config/label-selector.ts";
import { metadata } from "./fields/metadata.ts";

export interface Namespace {
  readonly kind: "Namespace";
  readonly name: string;
  readonly labels: Labels;
  readonly annotations: Readonly<Record<string, string>>;
}

/** The API server leaves `kind` out of the items of a list. */
const namespaceSchema = z.object({ kind: z.literal("Namespace").optional(), metadata });

/** Throws ConfigError. */
export function decodeNamespace(value: unknown, source: string): Namespace {
  const { metadata } = decodeConfig(namespaceSchema, value, source);
  return { kind: "Namespace", name: metadata.name, labels: metadata.labels, annotations: metadata.annotations };
}
