/** Reads the extensions of the packages beside the house. A package without a folder is left out, also in bundles. */
import { existsSync } from "node:fs";

/** Set in bundles: the packages that existed at the build. */
declare const BERTH_PACKAGES: string | undefined;

type Packages<T> = Readonly<Record<string, () => Promise<{ readonly default: T }>>>;

/** To the compiler a path is any text, and to esbuild a caught import may find nothing: the folder may be missing. */
export const fail = (error: unknown): Promise<never> => Promise.reject(error);

/** A bundle never looks for missing packages: the path would lead out of the installation. */
function isThere(name: string): boolean {
  if (typeof BERTH_PACKAGES !== "undefined") return BERTH_PACKAGES.split(" ").includes(name);
  return existsSync(new URL(`../../packages/${name}/`, import.meta.url));
}

export async function readAll<T>(packages: Packages<T>): Promise<readonly T[]> {
  const present = Object.entries(packages).filter(([name]) => isThere(name));
  return (await Promise.all(present.map(([, read]) => read()))).map((each) => each.default);
}
