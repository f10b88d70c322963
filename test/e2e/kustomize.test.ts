/** Kustomize on deploy: in another namespace it gives the same as the chart there. */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parseAllDocuments, stringify } from "yaml";
import { copyChart, PLAIN_RELEASE, renderChart } from "../../scripts/chart/helm.ts";
import { referenceTool, root } from "../../scripts/setup/paths.mjs";
import type { KubernetesObject } from "../unit/scripts/chart/kubernetes-schemas.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";

const place = temporaryDirectory("berth-kustomize-");
cpSync(join(root, "deploy"), join(place, "deploy"), { recursive: true });

const kubectl = join(referenceTool("kubectl").directory, "kubectl");

function kustomize(overlay: object, resources: object = {}): KubernetesObject[] {
  const folder = mkdtempSync(join(place, "overlay-"));
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "kustomization.yaml"), stringify(overlay));
  for (const [name, object] of Object.entries(resources)) writeFileSync(join(folder, name), stringify(object));
  const text = execFileSync(kubectl, ["kustomize", folder], { encoding: "utf8", stdio: "pipe", maxBuffer: 1 << 26 });
  return objectsOf(text);
}

const objectsOf = (text: string): KubernetesObject[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS())
    .filter((object) => object !== null);

const byName = (objects: readonly KubernetesObject[]) =>
  new Map(objects.map((each) => [`${each.kind} ${each.metadata.namespace ?? ""}/${each.metadata.name}`, each]));

it("an overlay with the component and a Namespace is the chart in that namespace", () => {
  const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "net-system" } };
  const built = kustomize(
    { resources: ["../deploy", "namespace.yaml"], components: ["../deploy/any-namespace"] },
    { "namespace.yaml": namespace },
  );
  const apart = ["Namespace", "CustomResourceDefinition"];
  using chart = copyChart();
  const rendered = renderChart(chart, { ...PLAIN_RELEASE, namespace: "net-system" });
  // The controller makes the Coordinator.
  const wanted = [...rendered].flatMap(([file, text]) => (file === "settings.yaml" ? [] : objectsOf(text)));
  const own = byName(built.filter(({ kind }) => !apart.includes(kind)));
  expect([...own.keys()].sort()).toEqual([...byName(wanted).keys()].sort());
  for (const [name, object] of byName(wanted)) expect(own.get(name), name).toEqual(object);
  expect(built.length - own.size).toBe(9);
});
