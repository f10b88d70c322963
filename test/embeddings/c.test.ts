import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../../scripts/setup/paths.mjs";
import { CORE, describeConformance } from "./conformance.ts";

const FOLDER = join(root, "embeddings", "c");
const BUILD = join(root, "dist", "embeddings", "c");

describeConformance("C", [join(BUILD, "conformance")]);

/** Runs a command in the embedding's folder; gives what it prints. */
function run(file: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): string {
  const options = { cwd: FOLDER, env: { ...process.env, ...env }, encoding: "utf8" } as const;
  const { status, signal, stdout, stderr } = spawnSync(file, args, options);
  if (status !== 0) throw new Error(`${file} ${args.join(" ")} ended with ${status ?? signal}\n${stdout}${stderr}`);
  return stdout;
}

function withFolder(use: (folder: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), "berth-c-"));
  try {
    use(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe("the C embedding", () => {
  const readme = readFileSync(join(FOLDER, "README.md"), "utf8");
  const [, program = ""] = /^```c\n(.*?)^```$/ms.exec(readme) ?? [];

  it.each(["core", "set", "pool"])("passes its tests of %s, plain and under the sanitizers", (name) => {
    for (const build of [BUILD, join(BUILD, "sanitized")]) {
      expect(run(join(build, `${name}_test`), [])).toBe(`${name}: passed\n`);
    }
  });

  it("has a README whose program is the example", () => {
    expect(program).toBe(readFileSync(join(FOLDER, "examples", "first.c"), "utf8"));
  });

  it.each([
    ["shared", ["--libs"]],
    ["static", ["--libs-only-L"]],
  ])("as installed, by pkg-config, makes the README's program with the %s library", (kind, libs) => {
    withFolder((folder) => {
      run("make", [`BUILD=${BUILD}`, `DESTDIR=${folder}`, "install"]);
      const env = {
        PKG_CONFIG_PATH: join(folder, "usr/local/lib/pkgconfig"),
        PKG_CONFIG_SYSROOT_DIR: folder,
        LD_LIBRARY_PATH: join(folder, "usr/local/lib"),
      };
      const flags = run("pkg-config", ["--cflags", ...libs, "berth-core"], env)
        .trim()
        .split(/\s+/);
      if (kind === "static") flags.push("-l:libberth_core.a");
      const path = join(folder, "first");
      writeFileSync(`${path}.c`, program);
      run("cc", ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", `${path}.c`, ...flags, "-o", path]);
      const [, wanted] = /prints `(.*?)`/.exec(readme) ?? [];
      expect(run(path, [], kind === "shared" ? env : {})).toBe(`${wanted}\n`);
    });
  });

  it("shows no symbol but its own", () => {
    const names = (file: string, ...flags: string[]) =>
      [...run("nm", [...flags, "--defined-only", "-P", join(BUILD, file)]).matchAll(/^(\w+) [A-Z] /gm)].map(
        ([, name]) => name ?? "",
      );
    const shown = names("libberth_core.so", "-D");
    expect(shown.length).toBeGreaterThan(100);
    expect(shown.filter((name) => !name.startsWith("berth_"))).toEqual([]);
    const linked = names("libberth_core.a", "-g");
    expect(linked.filter((name) => !/^(berth_|Z_berth_core)/.test(name))).toEqual([]);
  });

  it("is made of the core as it is built", () => {
    const sum = createHash("sha256").update(CORE).digest("hex");
    const source = `#include <berth_core.h>\n#include <stdio.h>\nint main(void) { return !puts(berth_core_sha256()); }\n`;
    withFolder((folder) => {
      const path = join(folder, "sum");
      writeFileSync(`${path}.c`, source);
      run("cc", [`-I${FOLDER}/include`, `${path}.c`, join(BUILD, "libberth_core.a"), "-o", path]);
      expect(run(path, [])).toBe(`${sum}\n`);
    });
  });

  it("opens no core of another ABI", () => {
    const version = Buffer.from("418080040b", "hex"); // i32.const 1 << 16, end
    const other = Buffer.from(CORE);
    expect(other.lastIndexOf(version)).toBe(other.indexOf(version));
    Buffer.from("41808008", "hex").copy(other, other.indexOf(version)); // 2 << 16
    const source = `#include <berth_core.h>\n#include <errno.h>\nint main(void) { return berth_core_open() || errno != ENOTSUP; }\n`;
    withFolder((folder) => {
      writeFileSync(join(folder, "other.wasm"), other);
      writeFileSync(join(folder, "open.c"), source);
      const library = join(folder, "libberth_core.a");
      run("make", [`BUILD=${folder}`, `WASM=${folder}/other.wasm`, "CFLAGS=-O0", "INLINE=-O1", library]);
      run("cc", [`-I${FOLDER}/include`, join(folder, "open.c"), library, "-o", join(folder, "open")]);
      run(join(folder, "open"), []);
    });
  });

  it("refuses a wasm2c whose code it does not know", () => {
    withFolder((folder) => {
      writeFileSync(join(folder, "wasm2c"), "#!/bin/sh\necho 9.9.9\n", { mode: 0o755 });
      const args = [`BUILD=${folder}/build`, `WASM2C=${folder}/wasm2c`, "all"];
      expect(() => run("make", args)).toThrow("wasm2c is 9.9.9, wanted 1.0.32");
    });
  });
});
