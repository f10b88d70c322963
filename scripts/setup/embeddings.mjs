/**
 * What the embeddings need: their tools, the core where their build files look for it, and each one built.
 * Effects: Debian packages, dist/embeddings, the user's cache.
 */
import { debianStep } from "./debian.mjs";
import { browserSteps } from "./embeddings/browser.mjs";
import { cSteps } from "./embeddings/c.mjs";
import { goSteps } from "./embeddings/go.mjs";
import { javaSteps } from "./embeddings/java.mjs";
import { pythonSteps } from "./embeddings/python.mjs";
import { rustSteps } from "./embeddings/rust.mjs";

export function embeddingsSteps() {
  return [
    debianStep("embeddings"),
    ...browserSteps(),
    ...cSteps(),
    ...goSteps(),
    ...javaSteps(),
    ...pythonSteps(),
    ...rustSteps(),
  ];
}
