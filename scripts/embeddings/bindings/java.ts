import type { AbiDescription, BindingFile } from "../abi-description.ts";

export function renderJavaBindings(_abi: AbiDescription): readonly BindingFile[] {
  return [];
}
