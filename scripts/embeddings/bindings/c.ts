import type { AbiDescription, BindingFile } from "../abi-description.ts";

export function renderCBindings(_abi: AbiDescription): readonly BindingFile[] {
  return [];
}
