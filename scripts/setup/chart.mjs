/**
 * The plain manifests that the Helm chart renders to, and the API descriptions that it is checked against: of the
 * oldest and the newest promised Kubernetes. The set-up of the product, and Helm, come before.
 * Effects: deploy, the user's cache and Go's own caches.
 */
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { run } from "./command.mjs";
import { replaceFolder, requireGo } from "./go.mjs";
import { KUBERNETES_SCHEMAS, kubernetesSchemasDir, root } from "./paths.mjs";
import { buildStep } from "./stamp.mjs";

export function manifestsStep() {
  const templates = ["agent", "controller", "flowschema", "host-agents", "hub", "policies", "rbac"];
  const names = templates.map((name) => `${name}.yaml`);
  const program = join(root, "scripts", "chart", "manifests.ts");
  return buildStep({
    name: "plain manifests",
    inputs: [join(root, "deploy", "chart"), program],
    outputs: names.map((name) => join(root, "deploy", name)),
    build: () => run(join(root, "node_modules", ".bin", "node"), [program, ...names]),
  });
}

export const schemasSteps = () => KUBERNETES_SCHEMAS.map(schemasStep);

/** Only api/openapi-spec of the module is kept; Go's checksum database verifies the download. */
function schemasStep(version) {
  const directory = kubernetesSchemasDir(version);
  return {
    name: `API descriptions of Kubernetes ${version}`,
    isCurrent: () => existsSync(directory),
    run: () => {
      const answer = run(requireGo(), ["mod", "download", "-json", `k8s.io/kubernetes@v${version}`], {
        env: { GOFLAGS: "" },
      });
      mkdirSync(dirname(directory), { recursive: true });
      const temporary = mkdtempSync(`${directory}.`);
      try {
        cpSync(join(JSON.parse(answer).Dir, "api", "openapi-spec", "v3"), temporary, { recursive: true });
        run("chmod", ["-R", "u+w", temporary]);
        replaceFolder(directory, temporary);
      } finally {
        rmSync(temporary, { recursive: true, force: true });
      }
    },
  };
}
