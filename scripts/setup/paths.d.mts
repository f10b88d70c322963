/** The folder of the repository. */
export const root: string;
export function hasPackage(name: string): boolean;
export function cacheDir(env?: NodeJS.ProcessEnv): string;
export function lastReleaseDir(): string;
export function referenceTool(tool: string): { version: string; directory: string };
export function netavarkDir(): string;
export function releaseSourcesDir(): string;
export const KUBERNETES_SCHEMAS: readonly string[];
export function kubernetesSchemasDir(version: string): string;
export function nautobotDir(): string;
export const nautobotSource: string;
export const NAUTOBOT_DATABASE: string;
export const POSTGRES_PROGRAMS: string;
export const REDIS_PROGRAM: string;
