/**
 * The raw layers of the embeddings that set-up builds, and that are not committed: C, Java, Python and Rust, and the
 * core for Rust. Go's are committed, because `go get` takes the tree as it is. Run as a program, this file writes
 * them.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "../setup/paths.mjs";
import { ABI } from "./abi-description.ts";
import { renderCBindings } from "./bindings/c.ts";
import { renderJavaBindings } from "./bindings/java.ts";
import { renderPythonBindings } from "./bindings/python.ts";
import { renderRustBindings } from "./bindings/rust.ts";
import { type GeneratedText, withHeader } from "./generated-text.ts";

export function builtBindings(): GeneratedText[] {
  return [renderCBindings, renderJavaBindings, renderPythonBindings, renderRustBindings]
    .flatMap((render) => render(ABI))
    .map((file) => withHeader("assembly/abi.json", file));
}

if (import.meta.main) {
  const core = readFileSync(join(root, "dist", "core", "berth-core.wasm"));
  const place = "embeddings/rust/src/raw/berth-core";
  for (const { path, text } of [
    ...builtBindings(),
    { path: `${place}.wasm`, text: core },
    { path: `${place}.sha256`, text: createHash("sha256").update(core).digest("hex") },
  ]) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
}
