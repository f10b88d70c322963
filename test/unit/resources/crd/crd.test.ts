import { readdirSync } from "node:fs";
import { expect, it } from "vitest";
import { crdFiles } from "../../../../host/resources/crd/crd.ts";
import { expectCommitted } from "../../house/committed-page.ts";

const DIRECTORY = "deploy/crds";

it.each(crdFiles())("$name is what the schemas say", ({ name, text }) => {
  expectCommitted(`${DIRECTORY}/${name}`, text);
});

it("deploy/crds has no other file", () => {
  expect(readdirSync(DIRECTORY).sort()).toEqual(
    crdFiles()
      .map(({ name }) => name)
      .sort(),
  );
});
