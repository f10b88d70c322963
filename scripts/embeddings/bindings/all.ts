/**
 * Every file that is written from assembly/abi.json for an embedding. test/unit/core/bindings.test.ts compares and, asked to, writes them.
 * Effects: none.
 */
import type { AbiDescription, BindingFile } from "../abi-description.ts";
import { renderBrowserBindings } from "./browser.ts";
import { renderCBindings } from "./c.ts";
import { renderGoBindings } from "./go.ts";
import { renderJavaBindings } from "./java.ts";
import { renderPythonBindings } from "./python.ts";
import { renderRustBindings } from "./rust.ts";

/** One per runtime. */
const RENDERERS: readonly ((abi: AbiDescription) => readonly BindingFile[])[] = [
  renderBrowserBindings,
  renderCBindings,
  renderGoBindings,
  renderJavaBindings,
  renderPythonBindings,
  renderRustBindings,
];

export function renderBindings(abi: AbiDescription): readonly BindingFile[] {
  return RENDERERS.flatMap((render) => render(abi));
}
