/** The tests of kind `uml` with the cases that are left out of the gate. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { runInMachine, umlVitest } from "../../scripts/uml/machine.ts";
import { LONG_VARIABLE } from "../world/long-cases.ts";

it("the coordinator serves pods with all kinds of NICs, and the ifacer undoes the longest ADD", async () => {
  const directory = mkdtempSync(join(tmpdir(), "berth-uml-"));
  try {
    const lines: string[] = [];
    const options = { directory, deadlineMs: 900_000, print: (line: string) => void lines.push(line) };
    const command = ["env", `${LONG_VARIABLE}=1`, ...umlVitest(["test/uml/coordinator-", "test/uml/ifacer-"])];
    const exitCode = await runInMachine(command, options);
    const text = lines.join("\n");
    expect(exitCode, text).toBe(0);
    expect(text).toContain("an underlay pod with ipvlan mode l3s");
    expect(text).toContain("macvlan on a VLAN (2)");
  } finally {
    rmSync(directory, { recursive: true });
  }
});
