/**
 * The tests' needs beside the product, and the demo's, which are fewer: Debian packages, and the program that searches
 * for a legal order of calls.
 * Effects: Debian packages (as root), dist/test and Go's own caches.
 */
import { debianStep } from "./debian.mjs";
import { goProgramStep } from "./go.mjs";

export function demoSteps() {
  return [debianStep("demo")];
}

export function testSteps() {
  const source = "test/lab/history/linearizable";
  return [
    ...demoSteps(),
    debianStep("test"),
    goProgramStep({ name: "checker of small pools", source, program: "test/linearizable" }),
  ];
}
