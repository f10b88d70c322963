/**
 * One address while its queue works on it: what the calls so far have found out.
 * Called by publisher.ts.
 * Effects: none (a type only).
 */
import type { IpAllocation } from "../../resources/ip-allocation.ts";
import type { CallTerms } from "./allocation-objects.ts";
import type { KnownObject } from "./known-object.ts";

export interface Task {
  readonly name: string;
  readonly terms: CallTerms;
  object: KnownObject | "absent" | undefined;
  /** The object in full, if this task has looked. */
  seen: IpAllocation | undefined;
  isNew: boolean;
}
