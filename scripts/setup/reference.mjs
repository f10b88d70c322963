/**
 * The reference plugins and cnitool, whose exact versions the modules in scripts/reference fix.
 * Effects: the user's cache; nothing in the repository.
 */
import { goStep } from "./go.mjs";

export function referenceSteps() {
  return ["plugins", "cnitool"].map((tool) => goStep({ tool }));
}
