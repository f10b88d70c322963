/**
 * Berth's own kinds in an API server.
 *
 *   await applyCrds(plane.client);
 *   await plane.client.create("/apis/ipam.vendor.io/v1/ippools", { … });
 *
 * Effects: makes or changes the objects of deploy/crds, and waits until each kind is served.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { type KubeClient, KubeError, type KubeObject } from "../kube-client.ts";

const DIRECTORY = fileURLToPath(new URL("../../../deploy/crds", import.meta.url));
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const SERVED_MS = 20_000;
const PAUSE_MS = 20;

export type CrdClient = Pick<KubeClient, "get" | "create" | "patch">;

/** Rejects when a kind is not served within 20 seconds, with the API server's reason. */
export async function applyCrds(client: CrdClient): Promise<void> {
  const crds = readdirSync(DIRECTORY).map((file): KubeObject => parse(readFileSync(join(DIRECTORY, file), "utf8")));
  await Promise.all(crds.map((crd) => applyCrd(client, crd)));
}

async function applyCrd(client: CrdClient, crd: KubeObject): Promise<void> {
  const { name } = crd.metadata;
  try {
    await client.create(CRDS, crd);
  } catch (error) {
    if (!(error instanceof KubeError && error.reason === "AlreadyExists")) throw error;
    await client.patch(`${CRDS}/${name}`, crd);
  }
  const deadline = performance.now() + SERVED_MS;
  while (!(await isServed(client, crd))) {
    if (performance.now() > deadline) {
      const { status } = await client.get(`${CRDS}/${name}`);
      throw new Error(`${name} is not served after ${SERVED_MS} ms: ${JSON.stringify(status?.conditions)}`);
    }
    await sleep(PAUSE_MS);
  }
}

/** An established kind is answered for a moment later than its object says so. */
async function isServed(client: CrdClient, { metadata, spec }: KubeObject): Promise<boolean> {
  const { status } = await client.get(`${CRDS}/${metadata.name}`);
  const conditions: KubeObject[] = status?.conditions ?? [];
  if (!conditions.some(({ type, status }) => type === "Established" && status === "True")) return false;
  try {
    await client.get(`/apis/${spec.group}/${spec.versions[0].name}/${spec.names.plural}?limit=1`);
    return true;
  } catch (error) {
    if (error instanceof KubeError && (error.status === 404 || error.status === 503)) return false;
    throw error;
  }
}
