/** Effects of ordinary tools on an object: prune, Replace, `--force`, a backup. */
import { vi } from "vitest";
import type { KubeClient, KubeObject } from "../lab/kube-client.ts";

const MALFORMED = { conditions: 7, allocations: [], pools: 7, leases: 7, members: [] };

/** As a file of it or a backup has it. */
export const copyOf = ({ metadata, status: _, ...object }: KubeObject): KubeObject => {
  const { name, namespace, labels, annotations, finalizers } = metadata;
  return { ...object, metadata: { name, namespace, labels, annotations, finalizers } };
};

const collectionOf = (path: string): string => path.slice(0, path.lastIndexOf("/"));

/** Another may write it meanwhile. */
export const replace = (client: KubeClient, path: string, change: object, subresource = ""): Promise<void> =>
  vi.waitFor(async () => {
    const now = await client.get(path);
    const { resourceVersion } = now.metadata;
    const object = { ...copyOf(now), ...change };
    await client.put(`${path}${subresource}`, { ...object, metadata: { ...object.metadata, resourceVersion } });
  });

async function remake(client: KubeClient, path: string): Promise<void> {
  const { metadata, ...rest } = copyOf(await client.get(path));
  const copy = { ...rest, metadata: { ...metadata, annotations: {} } };
  await client.delete(path);
  await client.create(collectionOf(path), copy).catch(async (error: unknown) => {
    // The controller was faster: `kubectl apply` writes over its object.
    if (!/already exists/.test(String(error)) || /being deleted/.test(String(error))) throw error;
    await replace(client, path, copy);
  });
}

/** `first`: as it was when the test began. */
export const VERBS: Readonly<
  Record<string, (client: KubeClient, path: string, first: KubeObject) => Promise<unknown>>
> = {
  deleted: (client, path) => client.delete(path),
  "deleted and made again": remake,
  emptied: (client, path) => replace(client, path, { spec: {}, data: undefined }),
  "with a huge epoch": (client, path) => client.patch(path, { data: { epoch: "x".repeat(500_000) } }),
  "without status": (client, path) => replace(client, path, {}, "/status"),
  "malformed status": (client, path) => replace(client, path, { status: MALFORMED }, "/status"),
  "made by the chart over the controller's": async (client, path, { spec }) => {
    await client.delete(path);
    await vi.waitFor(() => client.get(path), { timeout: 20_000 });
    await replace(client, path, { spec, data: undefined });
  },
  "made anew past its finalizers": async (client, path, { spec, kind, apiVersion, metadata: { name } }) => {
    await client.delete(path);
    await replace(client, path, { metadata: { name } });
    await client.create(collectionOf(path), { kind, apiVersion, metadata: { name }, spec });
  },
  restored: async (client, path, { status, ...first }) => {
    await replace(client, path, copyOf(first));
    if (status !== undefined) await replace(client, path, { status }, "/status");
  },
};
