/** The folder of the repository. */
export const root: string;
export function cacheDir(env?: NodeJS.ProcessEnv): string;
export function lastReleaseDir(): string;
export type ReferenceTool =
  | "helm"
  | "plugins"
  | "cnitool"
  | "kubernetes"
  | "kubernetes-1.31"
  | "kubectl"
  | "health"
  | "nodes"
  | "multus"
  | "modzip"
  | "registry"
  | "nfpm"
  | "containerd"
  | "crio"
  | "podman"
  | "spiderpool"
  | "whereabouts";
export function referenceTool(tool: ReferenceTool): {
  source: string;
  version: string;
  directory: string;
};
export const NETAVARK_VERSION: string;
export function netavarkDir(): string;
export function releaseSourcesDir(): string;
export const KUBERNETES_SCHEMAS: readonly string[];
export function kubernetesSchemasDir(version: string): string;
export const nautobotSource: string;
export function nautobotDir(): string;
export const NAUTOBOT_DATABASE: string;
export const POSTGRES_PROGRAMS: string;
export const REDIS_PROGRAM: string;
