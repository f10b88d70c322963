/** A Deployment that names a Subnet: its pool comes, grows and goes with it. */
import { parseRange } from "../../../host/net/range.ts";
import type { KubeObject } from "../../../test/lab/kube-client.ts";
import { eventually } from "../../../test/lab/waiting.ts";
import { formatColumns } from "../narrator.ts";
import { attach, awaitFree, detach, nodeOf, requirePod, type Scene } from "./acts.ts";
import { NAMESPACE, type Stage } from "./stage.ts";

const FILE = "90-api.yaml";
const DEPLOYMENT = `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/api`;
const GROUP = "/apis/ipam.vendor.io/v1";
const PATIENCE_MS = 30_000;
/** They rest two seconds. */
const FREE_MS = 15_000;

export const subnetScene: Scene = async (stage, narrator) => {
  const { client } = stage.plane;
  narrator.scene(
    "A Deployment that names a Subnet",
    `api has no pool made by hand: it names the Subnet "rack", and the controller generates one for it, with its replicas and one address
     more for a rolling update. Until now there was no controller.`,
  );
  await stage.startController();
  const first = await generatedPools(stage, (pools) => sizesOf(pools) === "3");
  narrator.claim("api has a pool of three addresses", sizesOf(first) === "3", first.map(describe).join());
  for (const number of [0, 1])
    await attach(stage, narrator, await stage.createPod(FILE, `api-${number}`, nodeOf(stage, number)));
  narrator.remark("Its replicas become five; the pool follows before the pods come.");
  await client.patch(DEPLOYMENT, { spec: { replicas: 5 } });
  const grown = await generatedPools(stage, (pools) => sizesOf(pools) === "6");
  narrator.claim("the pool has grown", sizesOf(grown) === "6", grown.map(describe).join());
  for (const number of [2, 3, 4])
    await attach(stage, narrator, await stage.createPod(FILE, `api-${number}`, nodeOf(stage, number % 2)));
  narrator.lines(formatColumns([["NAME", "SUBNET", "FOR", "WHY", "ADDRESSES"], ...grown.map(rowOf)]));

  narrator.remark("The Deployment is deleted, and its pods with it.");
  await client.delete(DEPLOYMENT);
  const given: string[] = [];
  for (let number = 0; number < 5; number++) {
    const pod = requirePod(stage, `api-${number}`);
    given.push(...pod.addresses);
    await detach(stage, pod);
    await stage.removePod(pod);
  }
  await awaitFree(stage, given, FREE_MS);
  const left = await generatedPools(stage, (pools) => pools.length === 0);
  // The controller writes the Subnet's status after the pool is gone.
  const readRack = (): Promise<KubeObject> => client.get(`${GROUP}/subnets/rack`);
  const { status } = await eventually(readRack, (rack) => rack.status.assigned === 0, PATIENCE_MS);
  const isReturned = left.length === 0 && status.assigned === 0;
  narrator.claim("its addresses are the Subnet's again", isReturned, `${status.assigned} of ${status.total} assigned`);
};

function generatedPools(stage: Stage, isWanted: (pools: KubeObject[]) => boolean): Promise<KubeObject[]> {
  const ask = async (): Promise<KubeObject[]> => {
    const { items } = await stage.plane.client.get(`${GROUP}/ippools`);
    return items.filter(({ spec }: KubeObject) => spec.generated !== undefined);
  };
  return eventually(ask, isWanted, PATIENCE_MS);
}

/** `3`, or `3,1` when there are two pools. */
function sizesOf(pools: readonly KubeObject[]): string {
  return pools.map(({ spec }) => spec.ips.reduce((sum: number, ips: string) => sum + sizeOf(ips), 0)).join();
}

function sizeOf(ips: string): number {
  const range = parseRange(ips);
  return range === undefined ? 0 : Number(range.last.value - range.first.value) + 1;
}

function describe({ metadata, spec }: KubeObject): string {
  return `${metadata.name}: ${spec.ips.join(", ")} (${spec.generated.reason})`;
}

function rowOf({ metadata, spec }: KubeObject): string[] {
  const { subnet, application, reason } = spec.generated;
  const { kind, namespace, name } = application;
  return [metadata.name, subnet, `${kind} ${namespace}/${name}`, reason, spec.ips.join(",")];
}
