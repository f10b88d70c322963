import { tmpdir } from "node:os";
import { expect, it } from "vitest";
import { openIfacer } from "../../host/agent/ifacer/plugin.ts";
import { noFaults } from "../../host/lib/fault.ts";
import { recordLog } from "../world/recorded-log.ts";

it("the agent restores a device with permission, and needs none for one that is there", async () => {
  using ifacer = await openIfacer({
    ...{ stateDirectory: tmpdir(), bootId: "", faults: noFaults, log: recordLog().log },
    permission: () => ({ interfaces: ["eth9"], vlanIDs: [] }),
  });
  expect(await ifacer.restore({ type: "ifacer", interfaces: ["lo"] })).toEqual([]);
  const missing = ifacer.restore({ type: "ifacer", interfaces: ["lo"], vlanID: 5 });
  await expect(missing).rejects.toThrow('may not use interface "lo"');
});
