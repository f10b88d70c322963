/** Names the uses of tenants' objects that `tenantDefinitions: closed` of vendor-conf would deny. */
import { decodeAttachedNetwork, type PlacedEntry } from "../../config/network-definition.ts";
import { usesOf } from "../../config/tenant-uses.ts";
import { warning } from "../../findings/problem.ts";
import type { KubeApi, KubeObject } from "../../kubernetes/kube-api.ts";
import { describeObject } from "../../kubernetes/object-key.ts";
import { CONFIG_MAPS, NETWORK_DEFINITIONS, objectPath, type Resource } from "../../kubernetes/paths.ts";
import { listSome } from "../../lib/describe.ts";
import type { Finding } from "../../records/finding.ts";
import { SUBNETS } from "../../resources/collections.ts";
import { decodeNetworkDefinition } from "../../resources/network-attachment-definition.ts";
import { decodeSubnet } from "../../resources/subnet.ts";
import { decodeVendorConfMap } from "../../resources/vendor-conf-map.ts";
import { CLUSTER_PATIENCE_MS, readObjects, tryTo } from "../read-objects.ts";

/** Most objects that a sentence names. */
const MAX_EXAMPLES = 5;

const REMEDY = 'Set "tenantDefinitions: closed" in vendor-conf if tenants are not trusted with the nodes\' network';

export const OPEN_PROBLEMS = {
  definitions: warning("open", 'network definitions outside namespace "{home}" use {uses}', REMEDY),
  subnets: warning("open", "Subnets that name no namespaces serve all: {names}", REMEDY),
};

/** Returns nothing about objects that the user may not read. `home`: the namespace of vendor-conf. */
export async function findOpen(api: KubeApi, home: string): Promise<readonly Finding[]> {
  const name = { namespace: home, name: "vendor-conf" };
  const call = { method: "GET", path: objectPath(CONFIG_MAPS, name), patienceMs: CLUSTER_PATIENCE_MS } as const;
  const map = await api.call(call).catch(() => undefined);
  const conf = map && tryTo(() => decodeVendorConfMap(map, describeObject(map)).conf);
  // Agents name settings that cannot be decoded; the last good ones stay in force.
  if (map !== undefined && conf?.tenantDefinitions !== "open") return [];
  const definitions = await readOr(api, NETWORK_DEFINITIONS, (object) => usesOfDefinition(object, home));
  const subnets = await readOr(api, SUBNETS, (object) => {
    const { name, spec } = decodeSubnet(object, describeObject(object));
    return spec.namespaceName.length === 0 && spec.namespaceAffinity === undefined ? [name] : [];
  });
  const [uses, names] = [listSome(definitions, MAX_EXAMPLES), listSome(subnets, MAX_EXAMPLES)];
  const found: Finding[] = [];
  if (definitions.length > 0) found.push(OPEN_PROBLEMS.definitions({ home, uses }));
  if (subnets.length > 0) found.push(OPEN_PROBLEMS.subnets({ names }));
  return found;
}

function usesOfDefinition(object: KubeObject, home: string): readonly string[] {
  const { namespace, name, config } = decodeNetworkDefinition(object, describeObject(object));
  if (namespace === home || config.trim() === "") return [];
  const { plugins } = decodeAttachedNetwork(config, name, describeObject(object));
  return plugins.flatMap(({ entry }: PlacedEntry) =>
    usesOf(entry.type, entry).map((use) => `${use} (${namespace}/${name})`),
  );
}

/** Without the objects that cannot be decoded: agents name those. */
async function readOr(api: KubeApi, resource: Resource, decode: (object: KubeObject) => readonly string[]) {
  const found = readObjects(api, { resource }, (object) => tryTo(() => decode(object)));
  return (await found.catch(() => [])).flat();
}
