/** How a kind of Berth is defined to an API server: names, printer columns and selectable fields. */
import type { z } from "zod";
import type { CelRule } from "../lib/cel.ts";

interface PrinterColumn {
  readonly name: string;
  readonly type: "string" | "integer" | "boolean" | "date";
  readonly jsonPath: string;
  readonly description: string;
  /** If above 0, shown with `-o wide` only. */
  readonly priority?: number;
}

export interface CustomKind {
  readonly kind: string;
  readonly plural: string;
  readonly shortNames: readonly string[];
  /** Shown by `kubectl explain`. */
  readonly description: string;
  /** Undefined if the kind has only a status, which is then not a subresource. */
  readonly spec?: z.ZodType;
  readonly specDescription?: string;
  /** Rules about the whole object. */
  readonly rules?: readonly CelRule[];
  readonly status?: z.ZodType;
  readonly statusDescription?: string;
  readonly columns: readonly PrinterColumn[];
  /** JSON paths. */
  readonly selectableFields?: readonly string[];
}

/** A column of text, unless it has another type. */
export const column = (
  name: string,
  jsonPath: string,
  description: string,
  type: PrinterColumn["type"] = "string",
): PrinterColumn => ({ name, type, jsonPath, description });

/** Shown with `-o wide` only. */
export const wide = (shown: PrinterColumn): PrinterColumn => ({ ...shown, priority: 1 });

export const AGE = column("Age", ".metadata.creationTimestamp", "Time since the object was created.", "date");
export const SUBNET = column("Subnet", ".spec.subnet", "Network of the addresses.");
export const GATEWAY = column("Gateway", ".spec.gateway", "Default gateway.");
export const SPACE = wide(column("Space", ".spec.addressSpace", "Address space."));
