/**
 * The packages of the core as their registries would take them, without sending anything: npm, PyPI, crates.io, the
 * proxy of Go modules, Maven Central. Each has the version of package.json, the licence and the repository.
 * Effects: Maven's target folder in embeddings/java, cargo's in dist, temporary folders.
 */
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { pythonVersion } from "../../scripts/generate/package-versions.ts";
import { readTar } from "../../scripts/release/archive.ts";
import { maven } from "../../scripts/setup/embeddings/java.mjs";
import { requireRust } from "../../scripts/setup/embeddings/rust.mjs";
import { GO_ENVIRONMENT, requireGo } from "../../scripts/setup/go.mjs";
import { referenceTool, root } from "../../scripts/setup/paths.mjs";
import { type CommandOptions, requireCommand, runCommand } from "../lab/command.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";

const { version, license, homepage } = manifest;
const directory = temporaryDirectory("berth-packages-");

/** A dry run asks no registry. */
const NOWHERE = ["--fetch-retries=0", "--registry", "http://127.0.0.1:9"];

const folder = (language: string): string => join(root, "embeddings", language);
const run = (argv: readonly string[], options: CommandOptions) =>
  requireCommand(argv, { timeoutMs: 900_000, ...options });

it.each(["browser", "c", "go", "java", "python", "rust"])("the README for %s names licence and repository", (name) => {
  const last = readFileSync(join(folder(name), "README.md"), "utf8")
    .trimEnd()
    .split("\n")
    .at(-1);
  expect(last).toBe(`Apache License 2.0; a part of [Berth](${homepage}), folder \`embeddings/${name}\`.`);
});

it.each(["browser", "java", "python", "rust"])(
  "the README for %s has no links that its registry does not know",
  (name) => expect(readFileSync(join(folder(name), "README.md"), "utf8")).not.toMatch(/\]\((?!https:)/),
);

it("npm takes the package for browsers and Node.js", async () => {
  const cwd = join(root, "dist/embeddings/browser/node_modules/berth-core");
  const [packed] = JSON.parse(await run(["npm", "pack", "--dry-run", "--json"], { cwd }));
  expect(packed).toMatchObject({ name: "berth-core", version });
  const paths = packed.files.map(({ path }: { path: string }) => path);
  expect(paths).toEqual(expect.arrayContaining(["LICENSE", "README.md", "berth-core.js", "berth-core.wasm"]));
  const { repository } = JSON.parse(readFileSync(join(cwd, "package.json"), "utf8"));
  expect(repository).toEqual({ ...manifest.repository, directory: "embeddings/browser" });
  const { exitCode, stderr } = await runCommand(["npm", "publish", "--dry-run", "--tag", "next", ...NOWHERE], { cwd });
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: expect.stringContaining("(dry-run)") });
});

it("PyPI takes the wheel", () => {
  const number = pythonVersion(version);
  const output = join(root, "dist/embeddings/python");
  expect(readdirSync(output)).toContain(`berth_core-${number}-py3-none-any.whl`);
  const about = readFileSync(join(output, `site/berth_core-${number}.dist-info/METADATA`), "utf8").split("\n");
  expect(about).toEqual(
    expect.arrayContaining([`License-Expression: ${license}`, `Project-URL: Repository, ${homepage}`]),
  );
});

it("crates.io takes the crate, which builds from its package alone", async () => {
  const { cargo, env } = requireRust();
  const cwd = folder("rust");
  await run([cargo, "package", "--offline", "--locked", "--allow-dirty"], { cwd, env });
  const archive = join(String(env.CARGO_TARGET_DIR), "package", `berth-core-${version}.crate`);
  const files = await readTar(readFileSync(archive));
  const about = files.get(`berth-core-${version}/Cargo.toml`)?.toString() ?? "";
  for (const line of [`license = "${license}"`, `repository = "${homepage}"`, `version = "${version}"`])
    expect(about).toContain(line);
});

it("a proxy of Go modules takes the module", async () => {
  const cwd = folder("go");
  const go = requireGo();
  const env = { ...GO_ENVIRONMENT, GOPROXY: "off" };
  await run([go, "vet", "./..."], { cwd, env });
  await run([go, "mod", "verify"], { cwd, env });
  const modzip = join(referenceTool("modzip").directory, "modzip");
  const archive = join(directory, "go.zip");
  const words = ["vendor.io/berth/core", `v${version}`, cwd];
  await run(["sh", "-c", 'exec "$0" "$@" > "$OUTPUT"', modzip, ...words], { env: { OUTPUT: archive } });
  const names = await run(["python3", "-m", "zipfile", "--list", archive], {});
  expect(names).toContain(`vendor.io/berth/core@v${version}/berth-core.wasm`);
  const wrong = ["vendor.io/berth/core", `v2.0.0`, cwd];
  expect((await runCommand([modzip, ...wrong])).stderr).toContain("should be v0 or v1");
});

it("Maven Central takes the jar with its sources and its documentation", () => {
  const cwd = folder("java");
  rmSync(join(cwd, "target"), { recursive: true, force: true });
  const plugin = (name: string, goal: string) => `org.apache.maven.plugins:maven-${name}-plugin:${goal}`;
  maven("package", plugin("source", "3.3.1:jar-no-fork"), plugin("javadoc", "3.12.0:jar"));
  const jars = readdirSync(join(cwd, "target")).filter((name) => name.endsWith(".jar"));
  const wanted = ["", "-javadoc", "-sources"].map((kind) => `berth-core-${version}${kind}.jar`);
  expect(jars.sort()).toEqual(wanted.sort());
  const pom = readFileSync(join(cwd, "pom.xml"), "utf8");
  for (const part of [`<url>${homepage}</url>`, "<name>Apache-2.0</name>", "<developer>", "<scm>"])
    expect(pom).toContain(part);
});
