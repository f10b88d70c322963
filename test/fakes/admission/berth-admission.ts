/**
 * The admission of writes by an API server with Berth's kinds and policies: deploy/crds and deploy/policies.yaml, as
 * applied to a cluster. Objects of other kinds have no schema here, and there are no rights by RBAC.
 * Effects: reads those files, each when a write first concerns it.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse, parseAllDocuments } from "yaml";
import { ApiError } from "../../../host/kubernetes/kube-api.ts";
import { root } from "../../unit/house/sources.ts";
import type { Admission, Write } from "./admission.ts";
import { CustomKind } from "./custom-kind.ts";
import { celValue } from "./kubernetes-cel.ts";
import { Policies, type PolicyDocument } from "./policies.ts";

/** `/apis/ipam.vendor.io/v1/ippools`, `/api/v1/namespaces/shop/pods` */
const RESOURCE =
  /^[/](?:api|apis[/](?<group>[^/]+))[/](?<version>[^/]+)(?:[/]namespaces[/](?<namespace>[^/]+))?[/](?<resource>[^/]+)$/;

interface Resource {
  readonly group: string;
  readonly version: string;
  readonly namespace: string;
  readonly resource: string;
  readonly kind: CustomKind | undefined;
}

export class BerthAdmission implements Admission {
  readonly #resources = new Map<string, Resource>();
  readonly #without: readonly string[];
  readonly #deploy: string;
  #policies: Policies | undefined;

  /** `without`: resources whose schemas do not count; `directory`: the sources of another version. */
  constructor(without: readonly string[] = [], directory = root) {
    this.#without = without;
    this.#deploy = join(directory, "deploy");
  }

  hasStatus(collection: string): boolean {
    return this.#resourceOf(collection).kind?.hasStatus ?? true;
  }

  shape<T extends object>(collection: string, object: T, isStrict: boolean): T {
    const { kind } = this.#resourceOf(collection);
    if (kind === undefined) return object;
    const dropped: string[] = [];
    const shaped = kind.shape(object, dropped);
    if (isStrict && dropped.length > 0) {
      const text = dropped.map((field) => `unknown field "${field}"`).join(", ");
      const message = `${kind.kind} in version "v1" cannot be handled as a ${kind.kind}: strict decoding error: ${text}`;
      throw new ApiError({ status: 400, reason: "BadRequest", operation: collection, message });
    }
    return shaped;
  }

  admit(write: Write): void {
    const resource = this.#resourceOf(write.collection);
    if (write.object !== undefined) this.#requireValid(write, resource.kind);
    this.#requireAllowed(write, resource);
  }

  #requireValid({ collection, object, oldObject }: Write, kind: CustomKind | undefined): void {
    const causes = object === undefined ? [] : (kind?.findings(object, oldObject) ?? []);
    if (causes.length === 0) return;
    const texts = causes.map(({ field, message }) => `${field}: ${message}`);
    const text = texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`;
    const message = `${kind?.title} "${object?.metadata.name}" is invalid: ${text}`;
    throw new ApiError({ status: 422, reason: "Invalid", operation: collection, message, causes });
  }

  #requireAllowed(write: Write, { group, version, namespace, resource }: Resource): void {
    const { collection, operation, part, writer, object, oldObject } = write;
    const target = { group, resource: part === undefined ? resource : `${resource}/${part}`, operation };
    this.#policies ??= readPolicies(this.#deploy);
    if (!this.#policies.concern(target)) return;
    const { metadata, kind = "" } = object ?? oldObject ?? { metadata: { name: "" } };
    const request = {
      kind: { group, version, kind },
      resource: { group, version, resource },
      ...(part === undefined ? {} : { subResource: part }),
      name: metadata.name,
      namespace,
      operation,
      userInfo: writer,
    };
    const scope = { request, object: celValue(object) ?? null, oldObject: celValue(oldObject) ?? null };
    const text = this.#policies.refusal(target, scope);
    if (text === undefined) return;
    const message = `${resource}${group === "" ? "" : `.${group}`} "${metadata.name}" is forbidden: ${text}`;
    throw new ApiError({ status: 403, reason: "Forbidden", operation: collection, message });
  }

  #resourceOf(collection: string): Resource {
    return this.#resources.getOrInsertComputed(collection, () => this.#readResource(collection));
  }

  #readResource(collection: string): Resource {
    const { group = "", version = "", namespace = "", resource = "" } = RESOURCE.exec(collection)?.groups ?? {};
    const file = join(this.#deploy, "crds", `${resource}.yaml`);
    const isOwn = group === "ipam.vendor.io" && !this.#without.includes(resource) && existsSync(file);
    const kind = isOwn ? new CustomKind(parse(readFileSync(file, "utf8"))) : undefined;
    return { group, version, namespace, resource, kind };
  }
}

function readPolicies(deploy: string): Policies {
  const documents = parseAllDocuments(readFileSync(join(deploy, "policies.yaml"), "utf8"));
  return new Policies(documents.map((document) => document.toJS() as PolicyDocument));
}
