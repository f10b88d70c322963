/**
 * The tests' needs beside the product, and the demo's, which are fewer: Debian packages, the program that searches
 * for a legal order of calls, and registries of images.
 * Effects: Debian packages (as root), dist/test, the user's cache and Go's own caches.
 */
import { debianStep } from "./debian.mjs";
import { goProgramStep, goStep } from "./go.mjs";

/** With the product's packages, so that a newcomer reads first what will be installed. */
export function demoSteps() {
  return [debianStep("product", "demo")];
}

export function testSteps() {
  const source = "test/lab/history/linearizable";
  return [
    ...demoSteps(),
    debianStep("test"),
    goProgramStep({ name: "checker of small pools", source, program: "test/linearizable" }),
    goStep({ tool: "registry", title: "registries of images, distribution" }),
  ];
}
