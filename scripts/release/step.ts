/** One part of a release, in the list of release.ts. */
import type { Site } from "../docs/site.ts";
import type { Facts } from "./facts.ts";
import type { Inventory } from "./inventory.ts";
import type { Architecture } from "./sources.ts";

/** A file of the release. */
export type Artifact = readonly [name: string, content: Buffer];

/** The state that steps share. */
export interface Release {
  readonly facts: Facts;
  /** The folder of the artifacts; a step may write other things there. */
  readonly output: string;
  readonly site: Site;
  readonly inventories: Readonly<Record<Architecture, Inventory>>;
  /** THIRD_PARTY_LICENSES of everything. */
  readonly notices: Buffer;
}

export type Step = (release: Release) => Promise<readonly Artifact[]>;
