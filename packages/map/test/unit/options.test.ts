import { Command } from "commander";
import { expect, it } from "vitest";
import { addAgentsOptions } from "../../options.ts";

it("the agents' port is one", () => {
  const program = new Command().exitOverride().configureOutput({ writeErr: () => {} });
  addAgentsOptions(program);
  const parse = () => program.parse(["--agents-port", "65536"], { from: "user" });
  expect(parse).toThrow(/expected a port, found "65536"/);
});
