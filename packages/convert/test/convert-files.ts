/** Converts files in a test. */
import { decodeIpPool } from "../../../host/resources/ip-pool.ts";
import type { ConversionPlan, Peer } from "../conversion-plan.ts";
import { convert } from "../convert.ts";
import { type InputFile, readInput } from "../input.ts";

/** `existing`: pools of the cluster. */
export function convertFiles(
  peer: Peer,
  files: readonly InputFile[],
  existing: readonly object[] = [],
): ConversionPlan {
  const target = { pools: existing.map((pool) => decodeIpPool(pool, "pool")), allocated: new Map() };
  return convert(({ findings }) => readInput(files, findings), { peer, suffix: "-berth", target });
}

/** Returns a file with these documents. */
export const yaml = (...objects: readonly unknown[]): InputFile[] => [
  { path: "in.yaml", text: objects.map((object) => JSON.stringify(object)).join("\n---\n") },
];
