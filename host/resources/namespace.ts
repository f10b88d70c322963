/**
 * The Kubernetes Namespace, as far as Berth reads it.
 */
import { z } from "zod";
import { ANNOTATION_PREFIX } from "../config/annotations.ts";
import { decodeConfig } from "../config/config-error.ts";
import type { Labels } from "../config/label-selector.ts";
import { cutMetadata, keepAnnotations } from "./fields/kept-metadata.ts";
import { metadata } from "./fields/metadata.ts";

export interface Namespace {
  readonly kind: "Namespace";
  readonly name: string;
  readonly labels: Labels;
  /** Berth's own. */
  readonly annotations: Readonly<Record<string, string>>;
}

/** The API server leaves `kind` out of the items of a list. */
const namespaceSchema = z.object({ kind: z.literal("Namespace").optional(), metadata });

/** Throws ConfigError. */
export function decodeNamespace(value: unknown, source: string): Namespace {
  const cut = cutMetadata(value, ({ annotations }) => ({
    annotations: keepAnnotations(annotations, ANNOTATION_PREFIX, []),
    ownerReferences: [],
  }));
  const { name, labels, annotations } = decodeConfig(namespaceSchema, cut, source).metadata;
  return { kind: "Namespace", name, labels, annotations };
}
