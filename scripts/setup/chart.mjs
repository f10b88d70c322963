/**
 * The tools that render and check the Helm chart: Helm, and the API descriptions of the oldest and the newest
 * Kubernetes that is promised.
 * Effects: the user's cache and Go's own caches.
 */
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { findCommand, run, SetupError } from "./command.mjs";
import { goStep, replaceFolder } from "./go.mjs";
import { KUBERNETES_SCHEMAS, kubernetesSchemasDir } from "./paths.mjs";

export function chartSteps() {
  return [goStep({ tool: "helm", title: "Helm (minutes, the first time)" }), ...KUBERNETES_SCHEMAS.map(schemasStep)];
}

/** Only api/openapi-spec of the module is kept; Go's checksum database verifies the download. */
function schemasStep(version) {
  const directory = kubernetesSchemasDir(version);
  return {
    name: `API descriptions of Kubernetes ${version}`,
    isCurrent: () => existsSync(directory),
    run: () => {
      const go = findCommand("go", ["/usr/local/go/bin"]);
      if (go === undefined) throw new SetupError("API descriptions", 'there is no "go" in PATH', "install Go 1.25");
      const answer = run(go, ["mod", "download", "-json", `k8s.io/kubernetes@v${version}`], { env: { GOFLAGS: "" } });
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
