/** One of deploy/crds as the API server applies it to the objects of its kind. */
import type { StoredObject } from "../memory-objects.ts";
import type { Finding } from "./finding.ts";
import { ruleFindings } from "./schema-rules.ts";
import { SchemaNode } from "./structural-schema.ts";

/** A definition's parts that are read here. */
interface Definition {
  readonly spec: {
    readonly names: { readonly kind: string };
    readonly group: string;
    readonly versions: readonly [Version];
  };
}

interface Version {
  readonly subresources?: { readonly status?: object };
  readonly schema: { readonly openAPIV3Schema: Readonly<Record<string, unknown>> };
}

const SERVERS_OWN = ["apiVersion", "kind", "metadata"];

export class CustomKind {
  /** `IPAllocation.ipam.vendor.io` */
  readonly title: string;
  readonly kind: string;
  /** Its status is written apart from the rest. */
  readonly hasStatus: boolean;
  readonly #schema: SchemaNode;

  constructor({ spec: { names, group, versions } }: Definition) {
    const [{ subresources, schema }] = versions;
    this.title = `${names.kind}.${group}`;
    this.kind = names.kind;
    this.hasStatus = subresources?.status !== undefined;
    this.#schema = new SchemaNode(schema.openAPIV3Schema);
  }

  /** Returns the object as it is stored; paths of unknown fields are added to `dropped`. */
  shape<T extends object>(object: T, dropped: string[]): T {
    const parts = Object.entries(object).flatMap(([key, value]) => {
      if (SERVERS_OWN.includes(key)) return [[key, value]];
      const inner = this.#schema.inside(key);
      if (inner === undefined) dropped.push(key);
      return inner === undefined || value === null ? [] : [[key, inner.shape(value, key, dropped)]];
    });
    return Object.fromEntries(parts);
  }

  /** Returns why the API server refuses the object; `old`: the one before an update. */
  findings(object: StoredObject, old: StoredObject | undefined): readonly Finding[] {
    const found = [...nameFindings(object), ...this.#schema.findings(object, old, "")];
    if (!found.some(({ isBlocking }) => isBlocking)) return [...found, ...ruleFindings(this.#schema, object, old)];
    const text =
      "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
    return [...found, { field: "<nil>", message: `Invalid value: null: ${text}`, isBlocking: true }];
  }
}

/** RFC 1123, as the API server has it for objects of all such kinds. */
const NAME = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:[.][a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/;

function nameFindings({ metadata: { name } }: StoredObject): Finding[] {
  if (NAME.test(name)) return [];
  const text = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'";
  return [{ field: "metadata.name", message: `Invalid value: ${JSON.stringify(name)}: ${text}`, isBlocking: false }];
}
