import { describe, expect, it } from "vitest";
import { ABI } from "../../../scripts/embeddings/abi-description.ts";
import { renderBindings } from "../../../scripts/embeddings/bindings/all.ts";
import { expectCommitted } from "../house/committed-page.ts";

const FILES = renderBindings(ABI);

describe("the bindings of the embeddings", () => {
  it.each(FILES.map(({ path, text }) => [path, text] as const))("%s is what assembly/abi.json says", (path, text) => {
    expectCommitted(path, text);
  });

  it.each(FILES.map(({ path, text }) => [path, text] as const))(
    "%s has every export and every status",
    (_path, text) => {
      expect(ABI.exports.filter(({ name }) => !text.includes(name)).map(({ name }) => name)).toEqual([]);
      expect(ABI.statuses.filter(({ code }) => !text.includes(String(code))).map(({ code }) => code)).toEqual([]);
    },
  );
});
