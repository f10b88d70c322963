/**
 * The Java embedding: conformance, its own tests, the program of its README, and whose bytes it embeds.
 * Effects: Maven's target folder in embeddings/java; starts Java; temporary folders.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { mavenArguments, mavenEnvironment } from "../../scripts/setup/embeddings/java.mjs";
import { root } from "../../scripts/setup/paths.mjs";
import { describeConformance } from "./conformance.ts";

const PROJECT = join(root, "embeddings", "java");
const CLASS_PATH = join(root, "dist", "embeddings", "java", "*");
const JAVA = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", CLASS_PATH] as const;

describeConformance("java", [...JAVA, "io.vendor.berth.core.tools.Conformance"]);

/** Runs a program from its text, as `java Example.java` does; what it prints. */
function runProgram(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), "berth-java-"));
  try {
    writeFileSync(join(folder, "Example.java"), text);
    const [file, ...options] = [...JAVA, join(folder, "Example.java")];
    const { status, stdout, stderr } = spawnSync(file, options, { encoding: "utf8" });
    expect(stderr).toBe("");
    expect(status).toBe(0);
    return stdout;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe("the Java embedding", () => {
  it("passes its own tests, without the network", () => {
    const options = { encoding: "utf8", cwd: PROJECT, env: { ...process.env, ...mavenEnvironment } } as const;
    const { status, stdout } = spawnSync("mvn", [...mavenArguments, "--offline", "test"], options);
    expect({ status, stdout: status === 0 ? "" : stdout }).toEqual({ status: 0, stdout: "" });
    const reports = readdirSync(join(PROJECT, "target", "surefire-reports")).filter((name) => name.endsWith(".xml"));
    const classes = readdirSync(join(PROJECT, "src/test/java/io/vendor/berth/core")).filter((name) =>
      name.endsWith("Test.java"),
    );
    expect(reports).toHaveLength(classes.length);
  });

  it("runs the program of its README to what the README says", () => {
    const readme = readFileSync(join(PROJECT, "README.md"), "utf8");
    const program = /```java\n(.*?)```/s.exec(readme)?.[1] ?? "";
    const output = /prints\n\n```\n(.*?)```/s.exec(readme)?.[1];
    expect(runProgram(program)).toBe(output);
  });

  it("embeds the bytes of dist/core", () => {
    const wasm = readFileSync(join(root, "dist", "core", "berth-core.wasm"));
    const printHash = `public class Example {
      public static void main(String[] args) throws Exception {
        var digest = java.security.MessageDigest.getInstance("SHA-256").digest(io.vendor.berth.core.Core.wasm());
        System.out.print(java.util.HexFormat.of().formatHex(digest));
      }
    }`;
    expect(runProgram(printHash)).toBe(createHash("sha256").update(wasm).digest("hex"));
  });
});
