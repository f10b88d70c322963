/** The bill of materials of one artifact, in CycloneDX 1.6. */
import type { Facts } from "../facts.ts";
import type { Component } from "./component.ts";

interface Artifact {
  readonly name: string;
  readonly type: "application" | "container";
  readonly sha256: string;
}

/** Returns JSON that is the same for the same artifact. */
export function writeSbom(artifact: Artifact, components: readonly Component[], facts: Facts): Buffer {
  const subject = `berth@${facts.version}`;
  const inside = (name?: string) => components.filter(({ within }) => within === name).map(reference);
  const owners = components.filter(({ name, within }) => within === undefined && inside(name).length > 0);
  const bom = {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    serialNumber: `urn:uuid:${uuidOf(artifact.sha256)}`,
    version: 1,
    metadata: {
      timestamp: new Date(facts.timeSeconds * 1000).toISOString(),
      component: {
        "bom-ref": subject,
        type: artifact.type,
        name: "berth",
        version: facts.version,
        description: facts.description,
        licenses: [{ license: { id: "Apache-2.0" } }],
        hashes: [{ alg: "SHA-256", content: artifact.sha256 }],
        properties: [
          { name: "berth:artifact", value: artifact.name },
          { name: "berth:revision", value: facts.revision },
        ],
      },
    },
    components: components.map(describe),
    dependencies: [
      { ref: subject, dependsOn: inside() },
      ...owners.map((owner) => ({ ref: reference(owner), dependsOn: inside(owner.name) })),
    ],
  };
  return Buffer.from(`${JSON.stringify(bom, undefined, 2)}\n`);
}

function describe(component: Component): object {
  const { type, name, version, license, purl, source } = component;
  const isExpression = license.includes(" ");
  return {
    "bom-ref": reference(component),
    ...{ type, name, version },
    licenses: [isExpression ? { expression: license } : { license: { id: license } }],
    purl,
    ...(source && { externalReferences: [{ type: "source-distribution", url: source }] }),
  };
}

/** Unique in one SBOM: Node.js contains libraries that are also in the bundles. */
function reference({ name, version, purl, within }: Component): string {
  return purl ?? [within, name, version].filter(Boolean).join("/");
}

/** A UUID of version 8 (RFC 9562), made of a hash. */
function uuidOf(hash: string): string {
  const digits = `${hash.slice(0, 12)}8${hash.slice(13, 16)}8${hash.slice(17, 32)}`;
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
