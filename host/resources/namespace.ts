/**
 * The Kubernetes Namespace, as far as Berth reads it.
 * Called by the manifests and the watches.
 * Effects: none.
 */
import type { Labels } from "../config/label-selector.ts";

export interface Namespace {
  readonly kind: "Namespace";
  readonly name: string;
  readonly labels: Labels;
  readonly annotations: Readonly<Record<string, string>>;
}
