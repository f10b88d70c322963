import type { AbiDescription, BindingFile } from "../abi-description.ts";

export function renderGoBindings(_abi: AbiDescription): readonly BindingFile[] {
  return [];
}
