/** A node whose kernel runs without IPv6 (`ipv6.disable=1`), in User-Mode Linux: only a kernel can be started so. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { hasMachine, runInMachine } from "../../scripts/uml/machine.ts";

const inMachine = async () => {
  const directory = mkdtempSync(join(tmpdir(), "berth-uml-"));
  try {
    const lines: string[] = [];
    const print = (line: string) => void lines.push(line);
    const options = { directory, kernel: ["ipv6.disable=1"], deadlineMs: 170_000, print };
    const exitCode = await runInMachine(["node", "test/netns/without-ipv6-guest.ts"], options);
    const said = lines.filter((line) => !line.startsWith("User-Mode Linux: "));
    expect([exitCode, said.join("\n")]).toEqual([
      0,
      "a second NIC: served\na first NIC: as far as this kernel goes\nan IPv6 pool: refused",
    ]);
  } finally {
    rmSync(directory, { recursive: true });
  }
};

if (hasMachine) it("attaches, checks and detaches pods, and refuses IPv6 pools in words", inMachine, 180_000);
