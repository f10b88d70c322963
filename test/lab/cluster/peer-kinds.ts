/**
 * The custom resource definitions of other IPAMs, from their own Go modules, and objects of these kinds.
 *
 *   await applyPeerKinds(plane.client);
 *   await applyPeerKinds(plane.client, [METALLB]);
 *   await createObjects(plane.client, objects);      // with strict validation: a field that the kind lacks is refused
 *
 * Effects: `go mod download` into Go's cache; writes objects.
 */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { parseAllDocuments } from "yaml";
import { applyObject, collectionOf } from "../apply.ts";
import { type KubeClient, KubeError, type KubeObject } from "../kube-client.ts";

interface PeerModule {
  readonly module: string;
  /** Checksum of the module's files, as go.sum has it. */
  readonly sum: string;
  readonly folder: string;
  readonly files: readonly string[];
}

const SPIDER = "spiderpool.spidernet.io_spider";

/**
 * The proxy has no newer module of Calico with its definitions; later versions added fields, which
 * packages/convert/test/vectors does not use.
 */
const MODULES: readonly PeerModule[] = [
  {
    module: "github.com/spidernet-io/spiderpool@v1.2.2",
    sum: "h1:WiBgOlMb5OwK91j62XaDPaANqiPnKdGpFe54ugBThA4=",
    folder: "charts/spiderpool/crds",
    files: [
      ...["ippools", "subnets", "reservedips", "coordinators", "multusconfigs", "endpoints"].map(
        (kind) => `${SPIDER}${kind}.yaml`,
      ),
      "k8s.cni.cncf.io_networkattachmentdefinitions_crd.yaml",
    ],
  },
  {
    module: "github.com/k8snetworkplumbingwg/whereabouts@v0.9.4",
    sum: "h1:P45pLCyZ7iXLPBtlczbzSYV+AQCPCa9j7qfULKJ4ARM=",
    folder: "doc/crds",
    files: ["ippools", "overlappingrangeipreservations", "nodeslicepools"].map(
      (kind) => `whereabouts.cni.cncf.io_${kind}.yaml`,
    ),
  },
  {
    module: "github.com/projectcalico/libcalico-go@v1.7.2-0.20211028190301-9b43eae22410",
    sum: "h1:rs1uYTwf/SaZ/KGViZ3GseS2h+iR+UVrvg6Y6fjBBSA=",
    folder: "config/crd",
    files: ["ippools", "ipamblocks", "blockaffinities", "ipreservations", "ipamconfigs", "ipamhandles"].map(
      (kind) => `crd.projectcalico.org_${kind}.yaml`,
    ),
  },
];

export const METALLB: PeerModule = {
  module: "go.universe.tf/metallb@v0.15.2",
  sum: "h1:r7KDgJtk3KZe3qb36zRVrVCYHxLR03nPGT+qFXOomJM=",
  folder: "config/crd/bases",
  files: ["ipaddresspools", "l2advertisements"].map((kind) => `metallb.io_${kind}.yaml`),
};

/** Rejects if a module does not match its sum. */
export async function applyPeerKinds(client: KubeClient, modules = MODULES): Promise<void> {
  const definitions = (await Promise.all(modules.map(readDefinitions))).flat();
  await Promise.all(definitions.map((definition) => applyObject(client, definition)));
}

/** Returns the module's folder in Go's cache. */
export async function downloadModule({ module, sum }: PeerModule): Promise<string> {
  const env = { ...process.env, PATH: `${process.env.PATH}:/usr/local/go/bin` };
  const { stdout } = await promisify(execFile)("go", ["mod", "download", "-json", module], { cwd: tmpdir(), env });
  const { Dir, Sum } = JSON.parse(stdout) as { readonly Dir: string; readonly Sum: string };
  if (Sum !== sum) throw new Error(`${module} has the sum ${Sum}, want ${sum}`);
  return Dir;
}

async function readDefinitions(module: PeerModule): Promise<KubeObject[]> {
  const { folder, files } = module;
  const directory = await downloadModule(module);
  const documents = files.flatMap((file) => parseAllDocuments(readFileSync(join(directory, folder, file), "utf8")));
  // Files of Calico have an empty status, which is the server's.
  return documents.flatMap((document) => {
    const { status: _, ...definition } = document.toJS() ?? {};
    return definition.kind === undefined ? [] : [definition];
  });
}

/** Creates the objects with their status, and their namespaces first. */
export async function createObjects(client: KubeClient, objects: readonly KubeObject[]): Promise<void> {
  const namespaces = new Set(objects.flatMap(({ metadata }) => metadata.namespace ?? []));
  const given = objects.filter(({ kind }) => kind === "Namespace").map(({ metadata }) => metadata.name);
  for (const name of namespaces.difference(new Set(given)))
    await applyObject(client, { apiVersion: "v1", kind: "Namespace", metadata: { name } });
  for (const object of objects) {
    const collection = await collectionOf(client, object);
    await client.create(`${collection}?fieldValidation=Strict`, object);
    if (object.status === undefined) continue;
    const path = `${collection}/${object.metadata.name}`;
    await client.patch(`${path}/status`, { status: object.status }).catch((error: unknown) => {
      // The kind has no such subresource: its status was created with the object.
      if (!(error instanceof KubeError && error.status === 404)) throw error;
    });
  }
}
