/** The name of an object, for maps and messages. */
import type { KubeObject } from "./kube-api.ts";

/** `name`, or `namespace/name`. */
export function keyOf({ metadata }: KubeObject): string {
  const { namespace, name } = typeof metadata === "object" && metadata !== null ? namesOf(metadata) : {};
  return namespace === undefined ? `${name}` : `${namespace}/${name}`;
}

function namesOf(metadata: object): { namespace?: unknown; name?: unknown } {
  return metadata;
}

/** `IPPool "blue"` */
export function describeObject(object: KubeObject): string {
  return `${object.kind ?? "Object"} "${keyOf(object)}"`;
}
