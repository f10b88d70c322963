/**
 * The set-up of the embeddings: their tools, the core where their build files expect it, and each one built.
 * Effects: Debian packages, dist/embeddings, the user's cache.
 */
import { join } from "node:path";
import { run } from "./command.mjs";
import { browserStep } from "./embeddings/browser.mjs";
import { cStep } from "./embeddings/c.mjs";
import { goStep } from "./embeddings/go.mjs";
import { javaStep } from "./embeddings/java.mjs";
import { pythonStep } from "./embeddings/python.mjs";
import { rustStep } from "./embeddings/rust.mjs";
import { root } from "./paths.mjs";
import { buildStep } from "./stamp.mjs";

export function embeddingsSteps() {
  return [rawLayersStep(), browserStep(), cStep(), goStep(), javaStep(), pythonStep(), rustStep()];
}

/** Generates the files that come from the ABI and are not committed. */
function rawLayersStep() {
  const generators = join(root, "scripts", "generate");
  return buildStep({
    name: "raw layers of the embeddings",
    inputs: [join(root, "assembly", "abi.json"), join(root, "dist", "core", "berth-core.wasm"), generators],
    outputs: [
      "go/raw.go",
      "go/berth-core.wasm",
      "c/berth_raw.h",
      "c/raw.c",
      "c/berth-core.wasm",
      "java/src/main/java/io/vendor/berth/core/Raw.java",
      "python/src/berth_core/berth-core.wasm",
      "python/src/berth_core/raw.py",
      "rust/src/raw.rs",
      "rust/src/berth-core.wasm",
    ].map((path) => join(root, "embeddings", path)),
    build: () => run(join(root, "node_modules", ".bin", "node"), [join(generators, "built-bindings.ts")]),
  });
}
