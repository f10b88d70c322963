/**
 * The Python embedding, as its wheel is installed: conformance, its own tests, the README's program, and the core
 * inside.
 * Effects: starts Python.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../../scripts/setup/paths.mjs";
import { CORE, describeConformance } from "./conformance.ts";

const source = join(root, "embeddings", "python");
const output = join(root, "dist", "embeddings", "python");
const PYTHON = join(output, "venv", "bin", "python");

/** -I keeps the source tree and the user's packages out, -B leaves no compiled files behind. */
function python(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(PYTHON, ["-I", "-B", ...args], { encoding: "utf8", cwd: source });
  return { status, stdout, stderr };
}

describeConformance("Python", [join(output, "conformance")]);

describe("the Python embedding", () => {
  it("passes its own tests, from the wheel", () => {
    const { status, stderr } = python("-m", "unittest", "discover", "--start-directory", "tests");
    expect(stderr).toMatch(/^Ran (\d\d) tests in .*\n\nOK\n$/m);
    expect(status).toBe(0);
  });

  it("does what its README shows", () => {
    const readme = readFileSync(join(source, "README.md"), "utf8");
    const program = /```python\n([^`]+)```/.exec(readme)?.[1] ?? "";
    expect(python("-c", program)).toEqual({
      status: 0,
      stderr: "",
      stdout: ["10.0.0.0 10.0.0.5", "Claim.CLAIMED Release.RELEASED", "['10.0.0.5/32', '10.0.0.6/32'] 5", ""].join(
        "\n",
      ),
    });
  });

  it("has the core of dist/core inside, in the wheel and not in the source tree", () => {
    const program =
      "import berth_core, hashlib; print(berth_core.__file__, hashlib.sha256(berth_core.embedded()).hexdigest())";
    const { stdout } = python("-c", program);
    const [file, digest] = stdout.trim().split(" ");
    expect(digest).toBe(createHash("sha256").update(CORE).digest("hex"));
    expect(file).toContain(join(output, "venv"));
  });

  it("is typed: every module says so to a type checker", () => {
    expect(
      python("-c", "from importlib.resources import files; print((files('berth_core') / 'py.typed').is_file())"),
    ).toEqual({ status: 0, stderr: "", stdout: "True\n" });
  });
});
