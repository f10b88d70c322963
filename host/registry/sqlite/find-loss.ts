/** Decides whether a registry, as it is found at the start, lacks rows of pods that may be alive. */
import type { RegistryPoint } from "./identity.ts";

interface FoundRegistry {
  /** Path of the database. */
  readonly file: string;
  /** The file was missing or empty. */
  readonly isNew: boolean;
  /** Why the file could not be used, a clause, and so is new; undefined if it could. */
  readonly damage?: string | undefined;
  readonly point: RegistryPoint;
  /** The registry's last commit since the machine started, as recorded outside of it. */
  readonly witness: RegistryPoint | undefined;
  /** An agent has used the directory since the machine started. */
  readonly wasInUse: boolean;
}

/**
 * Returns the loss as a sentence; undefined if nothing is lost: the registry is complete, nothing was ever recorded, or the sandboxes it knew died with
 * the last boot.
 */
export function findLoss({ file, isNew, damage, point, witness, wasInUse }: FoundRegistry): string | undefined {
  if (witness === undefined ? !wasInUse : witness.generation === 0) return undefined;
  if (damage !== undefined) return `Registry ${file} was damaged (${damage}) and has been set aside as ${file}.damaged`;
  if (isNew) return `Registry ${file} was missing or empty, although this node has used one since it started`;
  if (witness === undefined) return undefined;
  if (witness.id !== point.id) return `Registry ${file} is not the one that this node has used since it started`;
  if (point.generation >= witness.generation) return undefined;
  const lost = witness.generation - point.generation;
  return `Registry ${file} is older than the one that this node has used since it started: the last ${lost} commits are missing`;
}
