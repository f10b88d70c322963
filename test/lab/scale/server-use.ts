/**
 * What an API server has been asked, by its own count: whoever asked, also what it refused.
 *
 *   const before = await readServerUse(plane.client);
 *   …
 *   const use = serverUseSince(await readServerUse(plane.client), before);
 *   use.get("PUT subnets/status")                     // carried out
 *   use.get("PUT subnets/status 409")                 // refused
 *
 * Effects: reads the server's /metrics.
 */
import type { KubeClient } from "../kube-client.ts";

/** `POST ippools` → how often. Watches are not in it: they are counted when they end. */
export type ServerUse = ReadonlyMap<string, number>;

const REQUESTS = /^apiserver_request_total\{(?<labels>[^}]*)\} (?<count>\S+)$/gm;
const LABEL = /(?<key>\w+)="(?<value>[^"]*)"/g;

export async function readServerUse(client: KubeClient): Promise<ServerUse> {
  const use = new Map<string, number>();
  for (const { groups } of (await client.text("/metrics")).matchAll(REQUESTS)) {
    const labels = labelsOf(groups?.labels ?? "");
    if (labels.verb === "WATCH" || labels.resource === "") continue;
    const { verb, resource, subresource, code } = labels;
    const path = subresource === "" ? resource : `${resource}/${subresource}`;
    const key = `${verb} ${path}${Number(code) < 400 ? "" : ` ${code}`}`;
    use.set(key, (use.get(key) ?? 0) + Number(groups?.count));
  }
  return use;
}

export function serverUseSince(now: ServerUse, before: ServerUse): ServerUse {
  const differences = [...now].map(([key, count]) => [key, count - (before.get(key) ?? 0)] as const);
  return new Map(differences.filter(([, count]) => count > 0));
}

const WRITES = ["POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"];

/** Of these resources, subresources included, also those that were refused. */
export function countWrites(use: ServerUse, resources: readonly string[]): number {
  const isOne = (key: string): boolean => {
    const [verb = "", path = ""] = key.split(" ");
    return WRITES.includes(verb) && resources.includes(path.split("/")[0] ?? "");
  };
  return [...use].reduce((sum, [key, count]) => (isOne(key) ? sum + count : sum), 0);
}

function labelsOf(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries([...text.matchAll(LABEL)].map(({ groups }) => [groups?.key, groups?.value]));
}
