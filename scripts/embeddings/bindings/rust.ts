import type { AbiDescription, BindingFile } from "../abi-description.ts";

export function renderRustBindings(_abi: AbiDescription): readonly BindingFile[] {
  return [];
}
