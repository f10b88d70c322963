/**
 * Whatever value stands wherever in a configuration: it is accepted or refused by the decoder's own error,
 * never by a crash inside a rule that took the value for granted.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CniError } from "../../../host/cni/error.ts";
import { decodeNamespaceAnnotations, decodePodAnnotations } from "../../../host/config/annotations.ts";
import { ConfigError } from "../../../host/config/config-error.ts";
import { decodeManifests } from "../../../host/resources/manifest.ts";
import { times } from "../../world/long-cases.ts";
import { subjects } from "./hostile-subjects.ts";

type Path = readonly (string | number)[];

/** The paths of all values inside `value`, itself first. */
function pathsOf(value: unknown, path: Path = []): Path[] {
  if (typeof value !== "object" || value === null) return [path];
  const inner = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  return [path, ...inner.flatMap(([key, child]) => pathsOf(child, [...path, key]))];
}

/** A copy of `value` with `patch` at the path. */
function replaceAt(value: unknown, [step, ...rest]: Path, patch: unknown): unknown {
  if (step === undefined) return patch;
  const inner = value as Record<string | number, unknown>;
  const child = replaceAt(inner[step], rest, patch);
  return Array.isArray(value) ? value.with(Number(step), child) : { ...inner, [step]: child };
}

const telling = fc.constantFrom<unknown[]>(
  ...[undefined, null, true, -1, 0, 4, 6, 1.5, 1e300, [], {}, [[]], [null]],
  ...["", " ", "a", "a".repeat(100), "a".repeat(300), "__proto__", "[", "1s", "\u0000"],
  ...["10.0.0.1", "fd00::1", "10.0.0.1-fd00::1", "10.0.0.9-10.0.0.1", "0.0.0.0/0", "::/0"],
);
const hostile = fc.oneof(telling, fc.jsonValue(), fc.array(telling), fc.dictionary(fc.string(), telling));

function accepts(decode: (value: unknown) => unknown, value: unknown): boolean {
  try {
    decode(value);
    return true;
  } catch (error) {
    if (error instanceof ConfigError || error instanceof CniError) return false;
    throw error;
  }
}

describe.each(subjects)("%s", (_title, decode, valid) => {
  it("is accepted when it is right", () => {
    expect(accepts(decode, valid)).toBe(true);
  });
  it("is never a crash when two of its values are replaced", () => {
    const paths = fc.constantFrom(...pathsOf(valid));
    fc.assert(
      fc.property(paths, hostile, paths, hostile, (path, patch, otherPath, otherPatch) => {
        const once = replaceAt(valid, path, patch);
        const reachable = pathsOf(once).some((inner) => inner.join("\n") === otherPath.join("\n"));
        accepts(decode, reachable ? replaceAt(once, otherPath, otherPatch) : once);
      }),
      { numRuns: times(100) },
    );
  });
});

it("any text is a manifest or refused", () => {
  const piece = fc.constantFrom("---\n", "kind: Pod\n", "*a", "&a ", ...'a: \n\t-[{]}"#!|');
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
      accepts((text) => decodeManifests(String(text), "x"), pieces.join(""));
    }),
    { numRuns: 2_000 },
  );
});

it("any annotations are accepted or refused", () => {
  const key = fc.oneof(
    fc.constantFrom("ippool", "default-ipv4-ippool", "default-route-nic", "ippool-ip-number"),
    fc.string(),
  );
  const some = fc.dictionary(
    key.map((name) => `ipam.vendor.io/${name}`),
    fc.oneof(fc.string(), fc.json()),
  );
  fc.assert(
    fc.property(some, fc.string(), (own, networks) => {
      accepts(() => decodePodAnnotations({ ...own, "k8s.v1.cni.cncf.io/networks": networks }), undefined);
      accepts(() => decodeNamespaceAnnotations(own), undefined);
    }),
  );
});
