/**
 * `kubectl apply --server-side -f` for the lab: YAML documents to the API server, each at the path in the server's own
 * list of kinds.
 *
 *   const applied = await applyFile(plane.client, "deploy/examples/20-pools.yaml");     // ["IPPool lan-v4", …]
 *   await applyFolder(plane.client, "deploy/crds");
 *
 * A kind that an earlier file defines may be served a moment later; it is waited for.
 * Effects: reads files; writes objects.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseAllDocuments } from "yaml";
import type { KubeClient, KubeObject } from "./kube-client.ts";

/** Longest time until a kind that has just been defined is served. */
const SERVED_MS = 10_000;
const PAUSE_MS = 50;

/** All `.yaml` files, in the order of their names. */
export async function applyFolder(client: KubeClient, folder: string): Promise<string[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".yaml")).sort();
  const applied: string[] = [];
  for (const name of names) applied.push(...(await applyFile(client, join(folder, name))));
  return applied;
}

export async function applyFile(client: KubeClient, path: string): Promise<string[]> {
  const applied: string[] = [];
  for (const object of await readDocuments(path)) {
    await applyObject(client, object);
    applied.push(`${object.kind} ${object.metadata.name}`);
  }
  return applied;
}

/** Returns the documents that are not empty. Throws the parser's errors. */
export async function readDocuments(path: string): Promise<KubeObject[]> {
  const documents = parseAllDocuments(await readFile(path, "utf8"));
  return documents.map((document) => document.toJS()).filter((value) => value !== null);
}

/** Throws the server's refusal. */
export async function applyObject(client: KubeClient, object: KubeObject): Promise<KubeObject> {
  return client.apply(`${await collectionOf(client, object)}/${object.metadata.name}`, object);
}

/** The path of the kind's objects. */
export async function collectionOf(client: KubeClient, { apiVersion, kind, metadata }: KubeObject): Promise<string> {
  const root = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const deadline = performance.now() + SERVED_MS;
  for (;;) {
    const served: KubeObject = await client.get(root).catch(() => undefined);
    const resource = served?.resources.find((each: KubeObject) => each.kind === kind && !each.name.includes("/"));
    if (resource !== undefined) {
      const { name, namespaced } = resource;
      return namespaced ? `${root}/namespaces/${metadata.namespace ?? "default"}/${name}` : `${root}/${name}`;
    }
    if (performance.now() > deadline) throw new Error(`The API server does not serve ${apiVersion} ${kind}`);
    await sleep(PAUSE_MS);
  }
}
