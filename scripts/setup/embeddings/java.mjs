/**
 * The Java embedding: the jars and classes of a class path. Maven's repository is in the user's cache; its contents
 * need no network.
 * Effects: embeddings/java/target, dist/embeddings/java, the user's cache.
 */
import { copyFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../command.mjs";
import { cacheDir } from "../paths.mjs";
import { embeddingStep, readmeProgram, sourceOf, writeLauncher } from "./embedding.mjs";

const source = sourceOf("java");
const jars = "org.apache.maven.plugins:maven-dependency-plugin:3.10.0:copy-dependencies";

/** For short runs: only the quick compiler of the virtual machine. */
const quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC";

/** Runs Maven on the embedding. */
export function maven(...args) {
  const repository = `-Dmaven.repo.local=${join(cacheDir(), "embeddings", "maven")}`;
  return run("mvn", ["--batch-mode", "--quiet", repository, ...args], { cwd: source, env: { MAVEN_OPTS: quick } });
}

export function javaStep() {
  return embeddingStep("java", { files: ["Conformance.java", "README.md", "pom.xml", "src"], build });
}

function build(output) {
  rmSync(join(source, "target"), { recursive: true, force: true });
  const goals = ["package", jars, `-DoutputDirectory=${output}`, "-DincludeScope=runtime"];
  try {
    maven("--offline", ...goals);
  } catch {
    maven(...goals);
  }
  const [jar] = readdirSync(join(source, "target")).filter((name) => name.endsWith(".jar"));
  copyFileSync(join(source, "target", jar), join(output, "berth-core.jar"));
  writeFileSync(join(output, "Example.java"), readmeProgram("java"));
  const programs = [join(source, "Conformance.java"), join(output, "Example.java")];
  run("javac", ["-cp", join(output, "*"), "-d", output, ...programs]);
  const java = `java ${quick} -cp "$HERE:$HERE/*"`;
  writeLauncher(join(output, "conformance"), `${java} Conformance`);
  writeLauncher(join(output, "readme"), `${java} Example`);
}
