/**
 * The input of a conversion: Kubernetes objects, network configurations of a CNI directory, and host-local's files of
 * addresses. Pure: texts come as arguments.
 */
import { basename, dirname, extname } from "node:path/posix";
import * as z from "zod";
import { ConfigError } from "../../host/config/config-error.ts";
import { parseYaml } from "../../host/config/yaml.ts";
import { describeValue } from "../../host/lib/describe.ts";
import { JsonError, parseJson } from "../../host/lib/json.ts";
import { textMap } from "../../host/lib/schema.ts";
import { parseIp } from "../../host/net/ip.ts";
import { withoutNulls } from "../../host/resources/fields/metadata.ts";
import type { Findings, Place } from "./findings.ts";

export interface InputFile {
  readonly path: string;
  readonly text: string;
  /** The node that the file is from, if it is known. */
  readonly node?: string | undefined;
}

/** An object of Kubernetes; values of null are removed. */
export interface PlacedObject {
  readonly place: Place;
  readonly apiVersion: string;
  readonly kind: string;
  /** "" if the object has none. */
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Kinds of its owners. */
  readonly owners: readonly string[];
  readonly value: Readonly<Record<string, unknown>>;
}

/** A `*.conflist` or `*.conf`, or another JSON file of a CNI directory. */
interface ConfigFile {
  readonly place: Place;
  readonly fileName: string;
  readonly node: string | undefined;
  readonly value: Readonly<Record<string, unknown>>;
}

/** A file whose name is an address, in a folder with the name of its network. */
interface AddressFile {
  readonly place: Place;
  readonly network: string;
  readonly address: string;
  readonly text: string;
}

export interface Input {
  readonly objects: readonly PlacedObject[];
  readonly configs: readonly ConfigFile[];
  readonly addresses: readonly AddressFile[];
}

const CONFIG_EXTENSIONS = [".conflist", ".conf", ".json"];

/** Returns whether a file of this name in a directory is read. */
export function isInputName(path: string): boolean {
  const name = basename(path);
  return [...CONFIG_EXTENSIONS, ".yaml", ".yml"].includes(extname(name)) || parseIp(name) !== undefined;
}

/** Deepest nesting of an object or a configuration. Kubernetes' own objects have about 20 levels. */
export const MAX_INPUT_DEPTH = 64;

const head = z.object({
  apiVersion: z.string().regex(/^[a-z0-9./-]+$/i),
  kind: z.string().regex(/^[A-Za-z][A-Za-z0-9]*$/),
  metadata: z.object({
    name: z.string().min(1),
    namespace: z.string().default(""),
    labels: textMap().default({}),
    annotations: textMap().default({}),
    ownerReferences: z.array(z.object({ kind: z.string() })).default([]),
  }),
});

const record = z.record(z.string(), z.unknown());

/** Sorts the files by their contents. Throws ConfigError for text that is neither YAML nor JSON. */
export function readInput(files: readonly InputFile[], findings: Findings): Input {
  const objects: PlacedObject[] = [];
  const configs: ConfigFile[] = [];
  const addresses: AddressFile[] = [];
  for (const file of files) {
    const fileName = basename(file.path);
    if (parseIp(fileName) !== undefined) {
      const network = basename(dirname(file.path));
      const place = findings.placeOf(file.path, `network "${network}"`);
      addresses.push({ place, network, address: fileName, text: file.text });
      continue;
    }
    for (const { value, source } of valuesOf(file)) {
      if (isTooDeep(value)) refuseDepth(findings.placeOf(source, "document"), "");
      else if (isConfig(value)) {
        const place = findings.placeOf(source, `network ${describeValue(value.name ?? fileName)}`);
        configs.push({ place, fileName, node: file.node, value });
      } else objects.push(...objectsOf(value, source, findings));
    }
  }
  return { objects: withoutRepeated(objects), configs, addresses };
}

/** Returns the objects of an API server's list. */
export function readServed(items: readonly unknown[], findings: Findings): PlacedObject[] {
  return items.flatMap((item) => objectsOf(item, "cluster", findings));
}

/**
 * Returns whether lists and objects are nested more deeply than {@link MAX_INPUT_DEPTH}; without recursion, which
 * could overflow the stack.
 */
export function isTooDeep(value: unknown): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; depth <= MAX_INPUT_DEPTH; depth++) {
    level = level.flatMap((each) => (typeof each === "object" && each !== null ? Object.values(each) : []));
    if (level.length === 0) return false;
  }
  return true;
}

export function refuseDepth(place: Place, field: string): void {
  place.addPhrase("problem", field, "deeper nesting", `not converted: want at most ${MAX_INPUT_DEPTH} levels`);
}

interface SourcedValue {
  readonly value: unknown;
  readonly source: string;
}

function valuesOf({ path, text }: InputFile): SourcedValue[] {
  const source = `file ${JSON.stringify(path)}`;
  if (!CONFIG_EXTENSIONS.includes(extname(path)))
    return parseYaml(text, source).map(({ value, line }) => ({ value, source: `${source}, line ${line}` }));
  try {
    return [{ value: parseJson(text), source }];
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new ConfigError(source, [{ path: "", got: error.found, wanted: error.wanted }], error.message);
  }
}

function isConfig(value: unknown): value is Record<string, unknown> {
  const found = record.safeParse(value).data;
  if (found === undefined || ("apiVersion" in found && "kind" in found)) return false;
  return ["cniVersion", "plugins", "type", "kubernetes", "datastore", "ipam"].some((key) => Object.hasOwn(found, key));
}

function objectsOf(value: unknown, source: string, findings: Findings): PlacedObject[] {
  const found = record.safeParse(withoutNulls(value)).data;
  if (found !== undefined && Array.isArray(found.items) && String(found.kind).endsWith("List"))
    return found.items.flatMap((item, at) => objectsOf(item, `${source}, item ${at}`, findings));
  const decoded = head.safeParse(found);
  if (found === undefined || !decoded.success) {
    const wanted = "ignored: neither an object of Kubernetes with a name nor a network configuration";
    findings.placeOf(source, "document").unneeded("", found?.kind ?? value, wanted);
    return [];
  }
  const { apiVersion, kind, metadata } = decoded.data;
  const { name, namespace, labels, annotations, ownerReferences } = metadata;
  const object = `${kind} ${describeValue(namespace === "" ? name : `${namespace}/${name}`)}`;
  const owners = ownerReferences.map((owner) => owner.kind);
  return [
    {
      place: findings.placeOf(source, object),
      apiVersion,
      kind,
      namespace,
      name,
      labels,
      annotations,
      owners,
      value: found,
    },
  ];
}

/** The first of several objects with one name counts. */
function withoutRepeated(objects: readonly PlacedObject[]): PlacedObject[] {
  const seen = new Map<string, PlacedObject>();
  for (const object of objects) {
    const { apiVersion, kind, namespace, name, place } = object;
    const key = [apiVersion, kind, namespace, name].join(" ");
    const earlier = seen.get(key);
    if (earlier === undefined) seen.set(key, object);
    else if (JSON.stringify(earlier.value) !== JSON.stringify(object.value)) {
      const text = `another object of this name is in ${earlier.place.source}; that one is converted`;
      place.problem("metadata.name", name, text);
    }
  }
  return [...seen.values()];
}
