/** The packages beside the house. One whose folder is not there is left out, also of what is built. */
import { existsSync } from "node:fs";
import type { Extension } from "../extension.ts";

/** Set in bundles: the packages that were there when they were built. */
declare const BERTH_PACKAGES: readonly string[] | undefined;

/** To the compiler a path is any text, and to esbuild a caught import may find nothing: the folder may be missing. */
const PACKAGES: Readonly<Record<string, () => Promise<{ readonly default: Extension }>>> = {
  convert: () => import("../../packages/convert/extension.ts" as string).catch(fail),
  map: () => import("../../packages/map/extension.ts" as string).catch(fail),
  netavark: () => import("../../packages/netavark/extension.ts" as string).catch(fail),
  segments: () => import("../../packages/segments/extension.ts" as string).catch(fail),
};

function fail(error: unknown): never {
  throw error;
}

/** A bundle never looks for what it lacks: the path would lead out of the installation. */
function isThere(name: string): boolean {
  if (typeof BERTH_PACKAGES !== "undefined") return BERTH_PACKAGES.includes(name);
  return existsSync(new URL(`../../packages/${name}/`, import.meta.url));
}

export async function readExtensions(): Promise<readonly Extension[]> {
  const present = Object.entries(PACKAGES).filter(([name]) => isThere(name));
  return (await Promise.all(present.map(([, read]) => read()))).map((each) => each.default);
}

/** Those of berthctl and kubectl berth. */
export const readMoreCommands = async (): Promise<readonly NonNullable<Extension["addCommands"]>[]> =>
  (await readExtensions()).flatMap(({ addCommands }) => addCommands ?? []);
