/**
 * Kubeconfigs with one thing another.
 * Effects: writes a file.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

/** The user's token; no error may show it. */
export const SECRET = "s3cr3t-value";

export interface Parts {
  readonly cluster?: object;
  readonly user?: object;
  readonly rest?: object;
}

/** Writes the given parts over a file that is right; returns its path. */
export async function writeKubeconfig(
  directory: string,
  { cluster = {}, user = {}, rest = {} }: Parts = {},
): Promise<string> {
  const path = join(directory, "kubeconfig");
  const config = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "main",
    contexts: [
      { name: "other", context: { cluster: "none" } },
      { name: "main", context: { cluster: "prod", user: "berth" } },
    ],
    clusters: [{ name: "prod", cluster: { server: "https://10.0.0.1:6443", ...cluster } }],
    users: [{ name: "berth", user: { token: SECRET, ...user } }],
    ...rest,
  };
  await writeFile(path, JSON.stringify(config));
  return path;
}
