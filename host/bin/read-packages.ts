/** Reads what the packages beside the house add. One whose folder is not there is left out, also of what is built. */
import { existsSync } from "node:fs";

/** Set in bundles: the packages that were there when they were built. */
declare const BERTH_PACKAGES: string | undefined;

/** Each by the name of its folder. */
type Packages<T> = Readonly<Record<string, () => Promise<{ readonly default: T }>>>;

/** To the compiler a path is any text, and to esbuild a caught import may find nothing: the folder may be missing. */
export function fail(error: unknown): never {
  throw error;
}

/** A bundle never looks for what it lacks: the path would lead out of the installation. */
function isThere(name: string): boolean {
  if (typeof BERTH_PACKAGES !== "undefined") return BERTH_PACKAGES.split(" ").includes(name);
  return existsSync(new URL(`../../packages/${name}/`, import.meta.url));
}

export async function readAll<T>(packages: Packages<T>): Promise<readonly T[]> {
  const present = Object.entries(packages).filter(([name]) => isThere(name));
  return (await Promise.all(present.map(([, read]) => read()))).map((each) => each.default);
}
