/** Compares a release directory with its own statements, without network. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { readRegular } from "../../host/lib/regular-file.ts";
import { tryOr } from "../../host/lib/try-or.ts";
import { PREDICATE, STATEMENT } from "./provenance.ts";
import { sha256 } from "./sources.ts";

const SUMS = "SHA256SUMS";
const SUM = /^([0-9a-f]{64}) {2}(\w[\w.+-]*)$/;
/** By cosign, of SHA256SUMS: the publisher puts it there. */
const SIGNATURE = `${SUMS}.sigstore.json`;
const PROVENANCE = ".provenance.json";
const SBOM = ".cdx.json";
/** Artifacts with software of others, each with an SBOM. */
const WITH_SBOM = /^berthctl-.*\.tgz$|-(?:image-\w+\.tar|linux-\w+\.(?:tar\.gz|deb|rpm))$/;
const MAX_FILE_BYTES = 500_000_000;

const Sbom = z.object({
  metadata: z.object({
    component: z.object({
      properties: z.array(z.object({ name: z.string(), value: z.string() })),
      hashes: z.array(z.object({ alg: z.string(), content: z.string() })),
    }),
  }),
});
const Statement = z.object({
  _type: z.literal(STATEMENT),
  predicateType: z.literal(PREDICATE),
  subject: z.array(z.object({ name: z.string(), digest: z.object({ sha256: z.string() }) })),
});

type Sums = ReadonlyMap<string, string>;

/**
 * Returns the problems of `directory`, a sentence for each, with the name of the file. Folders do not belong to a
 * release.
 */
export function findProblems(directory: string): string[] {
  const content = read(directory, SUMS);
  if (content === undefined) return [`${SUMS} is missing`];
  const lines = content.toString().trimEnd().split("\n");
  const sums = new Map(lines.flatMap((line) => (SUM.test(line) ? [[line.slice(66), line.slice(0, 64)] as const] : [])));
  const files = readdirSync(directory, { withFileTypes: true }).filter((entry) => !entry.isDirectory());
  const known = new Set([SUMS, SIGNATURE, ...sums.keys()]);
  return [
    ...(sums.size === lines.length ? [] : [`${SUMS} has lines that are no sum of a file, or two of one file`]),
    ...[...sums].flatMap(([name, wanted]) => fileProblems(directory, name, wanted)),
    ...files.flatMap(({ name }) => (known.has(name) ? [] : [`${name} is not in ${SUMS}`])),
    ...[...sums.keys()].flatMap((name) => sbomProblems(directory, name, sums)),
    ...provenanceProblems(directory, sums),
  ];
}

/** Returns the bytes of a regular file, undefined if there is none. */
function read(directory: string, name: string): Buffer | undefined {
  return tryOr(() => readRegular(join(directory, name), MAX_FILE_BYTES).bytes, undefined);
}

/** Returns the JSON of a file, undefined if it has another shape. */
function decode<T extends z.ZodType>(directory: string, name: string, schema: T): z.infer<T> | undefined {
  return tryOr(() => schema.parse(JSON.parse(String(read(directory, name)))), undefined);
}

function fileProblems(directory: string, name: string, wanted: string): string[] {
  const content = read(directory, name);
  if (content === undefined) return [`${name} is missing or no regular file`];
  const found = sha256(content);
  return found === wanted ? [] : [`${name} has the SHA-256 ${found}, and ${SUMS} says ${wanted}`];
}

/** Each image, tarball and package has an SBOM of its name, with its hash; there is no other. */
function sbomProblems(directory: string, name: string, sums: Sums): string[] {
  if (name.endsWith(SBOM)) {
    const artifacts = ["", ".tar", ".tar.gz", ".tgz"].map((end) => `${name.slice(0, -SBOM.length)}${end}`);
    return artifacts.some((artifact) => sums.has(artifact)) ? [] : [`${name} is the SBOM of no file in ${SUMS}`];
  }
  if (!WITH_SBOM.test(name)) return [];
  const sbom = `${name.replace(/\.(?:tar(?:\.gz)?|tgz)$/, "")}${SBOM}`;
  if (!sums.has(sbom)) return [`${name} has no SBOM: ${sbom} is not in ${SUMS}`];
  const component = decode(directory, sbom, Sbom)?.metadata.component;
  if (component === undefined) return [`${sbom} names no artifact and hash`];
  const of = component.properties.find((each) => each.name === "berth:artifact")?.value;
  const digest = component.hashes.find(({ alg }) => alg === "SHA-256")?.content;
  if (of === name && digest === sums.get(name)) return [];
  return [`${sbom} is the SBOM of ${of} with SHA-256 ${digest}, not of ${name} with ${sums.get(name)}`];
}

/** The provenance names all other files of SHA256SUMS, and no more. */
function provenanceProblems(directory: string, sums: Sums): string[] {
  const [provenance, ...more] = [...sums.keys()].filter((name) => name.endsWith(PROVENANCE));
  if (provenance === undefined || more.length > 0)
    return [`${SUMS} has ${provenance ? more.length + 1 : 0} files *${PROVENANCE}, not one`];
  const subject = decode(directory, provenance, Statement)?.subject;
  if (subject === undefined) return [`${provenance} is no in-toto statement with SLSA's provenance`];
  const named = new Map(subject.map(({ name, digest }) => [name, digest.sha256]));
  const wanted = new Map([...sums].filter(([name]) => name !== provenance));
  return [
    ...[...wanted].flatMap(([name, digest]) => {
      const found = named.get(name);
      if (found === undefined) return [`${provenance} does not name ${name}`];
      return found === digest ? [] : [`${provenance} names ${name} with SHA-256 ${found}, and ${SUMS} says ${digest}`];
    }),
    ...[...named.keys()].flatMap((name) =>
      wanted.has(name) ? [] : [`${provenance} names ${name}, which is not released`],
    ),
  ];
}
