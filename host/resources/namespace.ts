/** The fields of a Kubernetes Namespace that Berth reads. */
import * as z from "zod";
import { NAMESPACE_ANNOTATIONS } from "../config/annotation-schemas.ts";
import { ANNOTATION_PREFIX } from "../config/annotations.ts";
import { decodeConfig } from "../config/config-error.ts";
import type { Labels } from "../config/label-selector.ts";
import type { Part } from "../lib/prune-json.ts";
import { metadata } from "./fields/metadata.ts";
import { IDENTITY_PARTS, keepAnnotations, MAX_PARSED_ENTRIES, trimMetadata } from "./fields/trim-metadata.ts";

export interface Namespace {
  readonly kind: "Namespace";
  readonly name: string;
  readonly labels: Labels;
  /** Only those under `ipam.vendor.io/`. */
  readonly annotations: Readonly<Record<string, string>>;
}

/** The API server omits `kind` in the items of a list. */
const namespaceSchema = z.object({ kind: z.literal("Namespace").optional(), metadata });

/** The parts of a Namespace that {@link decodeNamespace} reads. */
export const NAMESPACE_PARTS: Part = {
  members: {
    apiVersion: "all",
    kind: "all",
    metadata: {
      members: {
        ...IDENTITY_PARTS,
        // With more it exceeds the budget of an object.
        labels: { entries: () => true, most: 2 * MAX_PARSED_ENTRIES },
        annotations: { entries: (key) => key.startsWith(ANNOTATION_PREFIX), most: MAX_PARSED_ENTRIES },
      },
    },
  },
};

const READ = Object.keys(NAMESPACE_ANNOTATIONS).map((key) => ANNOTATION_PREFIX + key);

/** Decodes a Namespace; `source` names it in the error. Throws ConfigError. */
export function decodeNamespace(value: unknown, source: string): Namespace {
  const cut = trimMetadata(value, ({ annotations }) => ({
    annotations: keepAnnotations(annotations, ANNOTATION_PREFIX, READ),
    ownerReferences: [],
  }));
  const { name, labels, annotations } = decodeConfig(namespaceSchema, cut, source).metadata;
  return { kind: "Namespace", name, labels, annotations };
}
