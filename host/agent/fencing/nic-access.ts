/** What the agent does with pods' NICs besides attaching them, as a port: the kernel's, unless a caller gives another. */
import { readNetnsStatus } from "./netns-status.ts";
import { fenceNics, findNetns } from "./orphan-nics.ts";

export interface NicAccess {
  readonly readNetnsStatus: typeof readNetnsStatus;
  readonly findNetns: typeof findNetns;
  readonly fenceNics: typeof fenceNics;
}

export const KERNEL_NICS: NicAccess = { readNetnsStatus, findNetns, fenceNics };
