import type { AbiDescription, BindingFile } from "../abi-description.ts";

export function renderPythonBindings(_abi: AbiDescription): readonly BindingFile[] {
  return [];
}
