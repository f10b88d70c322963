/**
 * Whether a registry, as it is found at the start, lacks rows of pods that may live.
 */
import type { RegistryPoint } from "./identity.ts";

export interface FoundRegistry {
  /** Path of the database. */
  readonly file: string;
  /** The file was missing or empty. */
  readonly isNew: boolean;
  /** Why it could not be used, a clause; undefined when it could. It is new then. */
  readonly damage?: string | undefined;
  readonly point: RegistryPoint;
  /** What the node has known of its registry since the machine started. */
  readonly witness: RegistryPoint | undefined;
  /** An agent has used the directory since the machine started. */
  readonly wasInUse: boolean;
}

/** A sentence; undefined when nothing is lost: all is there, or nothing was ever recorded, or the sandboxes that it was about died with the last boot. */
export function findLoss({ file, isNew, damage, point, witness, wasInUse }: FoundRegistry): string | undefined {
  if (witness === undefined ? !wasInUse : witness.generation === 0) return undefined;
  if (damage !== undefined) return `Registry ${file} was damaged (${damage}) and has been set aside as ${file}.damaged`;
  if (isNew) return `Registry ${file} was missing or empty, though this node has had one since it was started`;
  if (witness === undefined) return undefined;
  if (witness.id !== point.id) return `Registry ${file} is not the one that this node has had since it was started`;
  if (point.generation >= witness.generation) return undefined;
  const lost = witness.generation - point.generation;
  return `Registry ${file} is older than what this node has recorded since it was started: the last ${lost} commits are missing`;
}
