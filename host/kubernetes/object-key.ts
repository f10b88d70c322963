/** The name of an object, for maps and messages. */
import type { KubeObject } from "./kube-api.ts";

/** `name`, or `namespace/name`. */
export function keyOf({ metadata }: KubeObject): string {
  const { namespace, name }: { namespace?: unknown; name?: unknown } = Object(metadata);
  return namespace === undefined ? `${name}` : `${namespace}/${name}`;
}

/** `IPPool "blue"` */
export function describeObject(object: KubeObject): string {
  return `${object.kind ?? "Object"} "${keyOf(object)}"`;
}
