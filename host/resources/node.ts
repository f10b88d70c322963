/**
 * The Kubernetes Node, as far as Berth reads it.
 * Called by the watch of an agent's own node.
 * Effects: none.
 */
import { z } from "zod";
import { decodeConfig } from "../config/config-error.ts";
import type { Labels } from "../config/label-selector.ts";
import { metadata } from "./fields/metadata.ts";

export interface Node {
  readonly kind: "Node";
  readonly name: string;
  readonly labels: Labels;
}

/** The API server leaves `kind` out of the items of a list. */
const nodeSchema = z.object({ kind: z.literal("Node").optional(), metadata });

/** Throws ConfigError. */
export function decodeNode(value: unknown, source: string): Node {
  const { metadata } = decodeConfig(nodeSchema, value, source);
  return { kind: "Node", name: metadata.name, labels: metadata.labels };
}
