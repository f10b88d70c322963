/**
 * The raw layers of the embeddings that set-up builds, and that are not committed: C, Java, Python and Rust, and the core as Rust. Go's are committed,
 * because `go get` takes the tree as it is. Run as a program, this file writes them.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "../setup/paths.mjs";
import { ABI } from "./abi-description.ts";
import { renderCBindings } from "./bindings/c.ts";
import { renderJavaBindings } from "./bindings/java.ts";
import { renderPythonBindings } from "./bindings/python.ts";
import { renderRustBindings } from "./bindings/rust.ts";
import { renderRustModule } from "./bindings/rust-module.ts";
import { type GeneratedText, withHeader } from "./generated-text.ts";

export function builtBindings(): GeneratedText[] {
  return [renderCBindings, renderJavaBindings, renderPythonBindings, renderRustBindings]
    .flatMap((render) => render(ABI))
    .map((file) => withHeader("assembly/abi.json", file));
}

/** Returns the core as Rust, from the built core. */
function builtModule(): GeneratedText {
  const core = "dist/core/berth-core.wasm";
  return withHeader(core, renderRustModule(readFileSync(join(root, core))));
}

if (import.meta.main)
  for (const { path, text } of [...builtBindings(), builtModule()]) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
