/** The folder of the repository. */
export const root: string;
export function cacheDir(env?: NodeJS.ProcessEnv): string;
export function referenceTool(tool: "plugins" | "cnitool" | "kubernetes" | "kubectl" | "nodes" | "multus"): {
  source: string;
  version: string;
  directory: string;
};
export function releaseSourcesDir(): string;
