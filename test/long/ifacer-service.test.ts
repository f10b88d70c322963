/**
 * ifacer in the agent of the hardened systemd unit: its filters and capabilities permit VLANs and bonds. In User-Mode
 * Linux, whose kernel has both.
 */
import { expect, it, onTestFinished } from "vitest";
import { runInMachine } from "../../scripts/uml/machine.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";

it("the service makes a VLAN on a bond of two interfaces", async () => {
  const directory = temporaryDirectory("berth-uml-", onTestFinished);
  const lines: string[] = [];
  const options = { directory, deadlineMs: 900_000, print: (line: string) => void lines.push(line) };
  const exitCode = await runInMachine(["node", "test/long/ifacer-service-guest.ts"], options);
  expect([exitCode, lines.join("\n")]).toEqual([0, expect.stringContaining("active: VLAN b0.100 on bond b0")]);
});
