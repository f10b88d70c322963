/**
 * The raw layers of the embeddings, which set-up builds and git ignores, and the copies of the core beside them. Run as
 * a program, this file writes them.
 */
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "../setup/paths.mjs";
import { ABI } from "./abi-description.ts";
import { bindingOf } from "./bindings/binding.ts";
import { renderCBindings } from "./bindings/c.ts";
import { renderGoBindings } from "./bindings/go.ts";
import { renderJavaBindings } from "./bindings/java.ts";
import { renderPythonBindings } from "./bindings/python.ts";
import { renderRustBindings } from "./bindings/rust.ts";
import { type GeneratedText, withHeader } from "./generated-text.ts";

export function builtBindings(): GeneratedText[] {
  const texts = [renderCBindings, renderGoBindings, renderJavaBindings, renderPythonBindings, renderRustBindings];
  return texts.flatMap((render) => render(bindingOf(ABI))).map((file) => withHeader("assembly/abi.json", file));
}

const COPIES = [
  "embeddings/c/berth-core.wasm",
  "embeddings/go/berth-core.wasm",
  "embeddings/python/src/berth_core/berth-core.wasm",
  "embeddings/rust/src/berth-core.wasm",
];

if (import.meta.main) {
  for (const { path, text } of builtBindings()) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  const core = join(root, "dist", "core", "berth-core.wasm");
  for (const path of COPIES) copyFileSync(core, join(root, path));
}
