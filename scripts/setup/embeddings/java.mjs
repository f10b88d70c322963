/**
 * The Java embedding: Maven builds the library and its conformance runner, and puts the jars of a class path into one
 * folder. Maven's repository is in the user's cache; what is there already needs no network.
 * Effects: embeddings/java/target, dist/embeddings/java, the user's cache.
 */
import { copyFileSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { run } from "../command.mjs";
import { cacheDir, root } from "../paths.mjs";
import { buildStep } from "../stamp.mjs";

const project = join(root, "embeddings", "java");
const output = join(root, "dist", "embeddings", "java");

/** For short runs: only the quick compiler of the virtual machine. */
export const mavenEnvironment = { MAVEN_OPTS: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" };

/** Runs Maven on the embedding; from the network only when the cache lacks something. */
export const mavenArguments = [
  "--batch-mode",
  "--quiet",
  `-Dmaven.repo.local=${join(cacheDir(), "embeddings", "maven")}`,
];

export function javaSteps() {
  return [
    buildStep({
      name: "Java embedding",
      inputs: [join(project, "pom.xml"), join(project, "src"), join(root, "dist", "core", "berth-core.wasm")],
      outputs: [join(output, "berth-core.jar"), join(output, "berth-core-tools.jar")],
      build: () => {
        rmSync(join(project, "target"), { recursive: true, force: true });
        buildJars();
        publishJars();
      },
    }),
  ];
}

function buildJars() {
  const maven = (...options) =>
    run("mvn", [...mavenArguments, ...options, "-DskipTests", "package"], { cwd: project, env: mavenEnvironment });
  try {
    maven("--offline");
  } catch {
    maven();
  }
}

/** The library and the tools lose their version, so that commands need not know it; what they depend on keeps it. */
function publishJars() {
  const temporary = `${output}.tmp`;
  rmSync(temporary, { recursive: true, force: true });
  mkdirSync(temporary, { recursive: true });
  for (const folder of [join(project, "target"), join(project, "target", "dependency")]) {
    for (const name of readdirSync(folder).filter((entry) => entry.endsWith(".jar"))) {
      const to = name.replace(/^berth-core-\d.*?(-tools)?\.jar$/, "berth-core$1.jar");
      copyFileSync(join(folder, name), join(temporary, to));
    }
  }
  rmSync(output, { recursive: true, force: true });
  renameSync(temporary, output);
}
