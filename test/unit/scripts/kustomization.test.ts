/** deploy/kustomization.yaml, which Kustomize and GitOps tools install from a checkout. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { root } from "../../../scripts/setup/paths.mjs";

const deploy = join(root, "deploy");
const namesIn = (folder: string) => readdirSync(folder).filter((name) => name.endsWith(".yaml"));

/** Manifests that not every cluster needs. */
const APART = ["host-agents.yaml", "kustomization.yaml"];

it("names every manifest that a cluster needs", () => {
  const { resources } = parse(readFileSync(join(deploy, "kustomization.yaml"), "utf8"));
  const manifests = namesIn(deploy).filter((name) => !APART.includes(name));
  const definitions = namesIn(join(deploy, "crds")).map((name) => `crds/${name}`);
  expect(resources.toSorted()).toEqual([...definitions, ...manifests].sort());
});
