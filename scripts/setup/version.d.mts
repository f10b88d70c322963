interface VersionOptions {
  /** Of package.json. */
  readonly version?: string;
  /** The commit of the last release. */
  readonly since?: string;
  readonly directory?: string;
}
export const lastRelease: { readonly version: string; readonly commit: string };
export const VERSION_FILE: string;
export function readVersion(): string;
export function developmentVersion(next: string, last?: string): string;
export function buildVersion(options?: VersionOptions): string;
export function tagOf(version: string): string;
