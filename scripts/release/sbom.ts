/** The bill of materials of one artifact, in CycloneDX 1.6. */
import { Enums, Models, Serialize, Spec } from "@cyclonedx/cyclonedx-library";
import type { Facts } from "./facts.ts";
import type { Component } from "./inventory.ts";

const { ExternalReferenceType, HashAlgorithm } = Enums;

interface Artifact {
  readonly name: string;
  readonly type: "application" | "container";
  readonly sha256: string;
}

/** Returns JSON that is the same for the same artifact. */
export function writeSbom(artifact: Artifact, components: readonly Component[], facts: Facts): Buffer {
  const models = new Map(components.map((component) => [component, modelOf(component)]));
  const inside = (name?: string) =>
    [...models].filter(([{ within }]) => within === name).map(([, { bomRef }]) => bomRef);
  for (const [{ name, within }, { dependencies }] of models)
    if (within === undefined) for (const each of inside(name)) dependencies.add(each);
  const subject = new Models.Component(artifact.type as Enums.ComponentType, "berth", {
    ...{ bomRef: `berth@${facts.version}`, version: facts.version, description: facts.description },
    licenses: new Models.LicenseRepository([new Models.SpdxLicense("Apache-2.0")]),
    hashes: new Models.HashDictionary([[HashAlgorithm["SHA-256"], artifact.sha256]]),
    properties: new Models.PropertyRepository([
      new Models.Property("berth:artifact", artifact.name),
      new Models.Property("berth:revision", facts.revision),
    ]),
    dependencies: new Models.BomRefRepository(inside()),
  });
  const bom = new Models.Bom({
    serialNumber: `urn:uuid:${uuidOf(artifact.sha256)}`,
    metadata: new Models.Metadata({ timestamp: new Date(facts.timeSeconds * 1000), component: subject }),
    components: new Models.ComponentRepository(models.values()),
  });
  const serializer = new Serialize.JsonSerializer(new Serialize.JSON.Normalize.Factory(Spec.Spec1dot6));
  return Buffer.from(`${serializer.serialize(bom, { space: 2 })}\n`);
}

function modelOf({ type, name, version, license, purl, source, within }: Component): Models.Component {
  const { SpdxLicense, LicenseExpression, ExternalReference } = Models;
  const spdx = (id: string) => (id.includes(" ") ? new LicenseExpression(id) : new SpdxLicense(id));
  return new Models.Component(type as Enums.ComponentType, name, {
    // Unique in one SBOM: Node.js contains libraries that are also in the bundles.
    bomRef: purl ?? [within, name, version].filter(Boolean).join("/"),
    ...{ version, purl, licenses: new Models.LicenseRepository(license === undefined ? [] : [spdx(license)]) },
    externalReferences: new Models.ExternalReferenceRepository(
      source === undefined ? [] : [new ExternalReference(source, ExternalReferenceType.SourceDistribution)],
    ),
  });
}

/** A UUID of version 8 (RFC 9562), made of a hash. */
function uuidOf(hash: string): string {
  const digits = `${hash.slice(0, 12)}8${hash.slice(13, 16)}8${hash.slice(17, 32)}`;
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
