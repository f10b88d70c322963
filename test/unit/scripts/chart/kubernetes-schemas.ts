/**
 * Checks objects as the API server of a Kubernetes version decodes them with strict field validation: its published
 * API description, or Berth's CRDs.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv, type ValidateFunction } from "ajv";
import { parse } from "yaml";
import { kubernetesSchemasDir, root } from "../../../../scripts/setup/paths.mjs";

export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  // biome-ignore lint/suspicious/noExplicitAny: tests read any field of any kind
  readonly [field: string]: any;
}

type Schema = Record<string, unknown>;

/** Unknown fields are faults, wherever the description lists the fields. */
function strict(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(strict);
  if (typeof value !== "object" || value === null) return value;
  const schema = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, strict(inner)])) as Schema;
  // biome-ignore lint/complexity/useLiteralKeys: of an index signature
  const isClosed = typeof schema["properties"] === "object" && !("additionalProperties" in schema);
  const isOpen = schema["x-kubernetes-preserve-unknown-fields"] === true;
  return isClosed && !isOpen ? { ...schema, additionalProperties: false } : schema;
}

const createAjv = (): Ajv => new Ajv({ strict: false, allErrors: true, validateFormats: false });

/** Kinds that neither Kubernetes nor Berth defines. */
const FOREIGN = ["Certificate", "NetworkAttachmentDefinition", "PrometheusRule", "ServiceMonitor"];

/** The description of a group's version, by its `apiVersion`. */
interface Group {
  readonly ajv: Ajv;
  readonly schemas: Readonly<Record<string, Schema>>;
}

const GROUP = "group";

export class KubernetesSchemas {
  readonly #directory: string;
  readonly #validators = new Map<string, ValidateFunction>();
  readonly #groups = new Map<string, Group>();

  constructor(version: string) {
    this.#directory = kubernetesSchemasDir(version);
    if (!existsSync(this.#directory))
      throw new Error(`${this.#directory} is missing; run: node scripts/setup.mjs chart`);
  }

  /** Returns the faults of the object, in sentences; nothing for kinds that are defined elsewhere. */
  faultsOf(object: KubernetesObject): string[] {
    const { apiVersion, kind, metadata } = object;
    if (FOREIGN.includes(kind)) return [];
    const id = `${apiVersion}/${kind}`;
    const validate = this.#validators.getOrInsertComputed(id, () => this.#compile(object));
    if (validate(object)) return [];
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) =>
        `${kind} ${metadata.name}: ${instancePath} ${message} ${JSON.stringify(params)}`,
    );
  }

  #compile(object: KubernetesObject): ValidateFunction {
    return object.apiVersion.startsWith("ipam.vendor.io/") ? compileCrd(object) : this.#compileKind(object);
  }

  #compileKind({ apiVersion, kind }: KubernetesObject): ValidateFunction {
    const { ajv, schemas } = this.#groups.get(apiVersion) ?? this.#readGroup(apiVersion);
    const [group, version] = apiVersion.includes("/") ? apiVersion.split("/") : ["", apiVersion];
    const isWanted = (each: { group: string; version: string; kind: string }) =>
      each.group === group && each.version === version && each.kind === kind;
    const found = Object.entries(schemas).find(([, schema]) =>
      (schema["x-kubernetes-group-version-kind"] as [] | undefined)?.some(isWanted),
    );
    if (found === undefined) throw new Error(`${this.#directory} does not describe ${apiVersion} ${kind}`);
    return ajv.compile({ $ref: `${GROUP}#/components/schemas/${found[0]}` });
  }

  #readGroup(apiVersion: string): Group {
    const file = apiVersion.includes("/") ? `apis__${apiVersion.replace("/", "__")}` : `api__${apiVersion}`;
    const description = JSON.parse(readFileSync(join(this.#directory, `${file}_openapi.json`), "utf8"));
    const schemas = strict(description.components.schemas) as Record<string, Schema>;
    const group = { ajv: createAjv().addSchema({ components: { schemas } }, GROUP), schemas };
    this.#groups.set(apiVersion, group);
    return group;
  }
}

function compileCrd({ kind }: KubernetesObject): ValidateFunction {
  const directory = join(root, "deploy", "crds");
  const crds = readdirSync(directory).map((name) => parse(readFileSync(join(directory, name), "utf8")));
  const crd = crds.find(({ spec }) => spec.names.kind === kind);
  const { properties, ...schema } = crd.spec.versions[0].schema.openAPIV3Schema;
  const ofEveryObject = { apiVersion: {}, kind: {}, metadata: {} };
  return createAjv().compile(strict({ ...schema, properties: { ...properties, ...ofEveryObject } }) as Schema);
}
