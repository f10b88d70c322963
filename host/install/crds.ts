/** Berth's custom resource definitions in a cluster: applied before installations and upgrades, removed last. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import * as z from "zod";
import { decodeConfig } from "../config/config-error.ts";
import { callIfThere, type KubeApi } from "../kubernetes/kube-api.ts";
import { collectionPath, objectPath, type Resource } from "../kubernetes/paths.ts";
import { readText } from "../lib/regular-file.ts";
import { FORCE_DELETE } from "../resources/ip-allocation.ts";
import { applyObject, pollUntil } from "./cluster-api.ts";

const CRDS: Resource = { apiVersion: "apiextensions.k8s.io/v1", plural: "customresourcedefinitions" };

/** Longest wait for the API server to serve or remove a definition: milliseconds. */
const CRD_WAIT_MS = 60_000;

const crdSchema = z.looseObject({
  kind: z.literal("CustomResourceDefinition"),
  metadata: z.looseObject({ name: z.string() }),
  spec: z.looseObject({
    group: z.string(),
    names: z.looseObject({ plural: z.string() }),
    versions: z.array(z.looseObject({ name: z.string() })).min(1),
  }),
});

interface CrdOptions {
  readonly api: KubeApi;
  /** Directory of YAML files, one definition each. */
  readonly directory: string;
  readonly print: (line: string) => void;
}

function readCrds(directory: string) {
  const names = readdirSync(directory).filter((name) => name.endsWith(".yaml"));
  if (names.length === 0) throw new Error(`Directory ${directory} has no .yaml file`);
  return names
    .sort()
    .map((name) => decodeConfig(crdSchema, parse(readText(join(directory, name))), join(directory, name)));
}

/** Creates or changes the definitions until all are served. Throws ConfigError first if a file is no definition. */
export async function applyCrds({ api, directory, print }: CrdOptions): Promise<void> {
  const crds = readCrds(directory);
  for (const crd of crds) {
    await applyObject(api, objectPath(CRDS, crd.metadata), crd);
    print(`Applied ${crd.metadata.name}`);
  }
  for (const { metadata, spec } of crds) {
    const collection = { apiVersion: `${spec.group}/${spec.versions[0]?.name}`, plural: spec.names.plural };
    const list = { method: "GET", path: collectionPath(collection), query: { limit: 1 } } as const;
    const isServed = async () => (await callIfThere(api, list)) !== undefined;
    if (!(await pollUntil(performance.now() + CRD_WAIT_MS, isServed)))
      throw new Error(
        `The API server does not serve ${metadata.name} after ${CRD_WAIT_MS / 1000} seconds; see its conditions`,
      );
  }
}

/** Deletes the definitions with all their objects, which must have no finalizers. Throws if one remains. */
export async function deleteCrds({ api, directory, print }: CrdOptions): Promise<void> {
  const paths = readCrds(directory).map(({ metadata }) => objectPath(CRDS, metadata));
  // A policy refuses the deletion without it.
  const body = { metadata: { annotations: { [FORCE_DELETE]: "true" } } };
  for (const path of paths) {
    await callIfThere(api, { method: "PATCH", path, body });
    await callIfThere(api, { method: "DELETE", path });
  }
  for (const path of paths) {
    const isGone = async () => (await callIfThere(api, { method: "GET", path })) === undefined;
    if (!(await pollUntil(performance.now() + CRD_WAIT_MS, isGone)))
      throw new Error(`${path} is not gone after ${CRD_WAIT_MS / 1000} seconds; objects with finalizers may keep it`);
    print(`Deleted ${path.split("/").at(-1)}`);
  }
}
