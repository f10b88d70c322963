import type { AbiDescription, BindingFile } from "../abi-description.ts";

export function renderBrowserBindings(_abi: AbiDescription): readonly BindingFile[] {
  return [];
}
