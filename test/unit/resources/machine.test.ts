import { expect, it } from "vitest";
import { areTwoMachines, isOfMachine, machineOf } from "../../../host/resources/machine.ts";
import { decodeNode } from "../../../host/resources/node.ts";

const UUID = "4C4C4544-0051-4A10-8057-B7C04F4D32";
const MACHINE = "3d1219c7c4c5404aaa1f6d2a48adfda4";

it.each<[what: string, systemUuid: string, machineId: string, machine: string | undefined]>([
  ["both", `${UUID}33`, MACHINE, "2639f9f5424f4686"],
  ["both in another case", `${UUID}33`.toLowerCase(), MACHINE.toUpperCase(), "2639f9f5424f4686"],
  ["another system of the same image", `${UUID}34`, MACHINE, ""],
  ["nothing", "", "", undefined],
])("a machine is named by its systemUUID and its machineID: %s", (_what, systemUUID, machineID, machine) => {
  const found = machineOf({ systemUuid: systemUUID, machineId: machineID });
  const status = { nodeInfo: { machineID, systemUUID } };
  expect(decodeNode({ metadata: { name: "n1" }, status }, "").machine).toBe(found);
  if (machine !== "") expect(found).toBe(machine);
  else expect(found).toMatch(/^(?!2639f9f5424f4686)[0-9a-f]{16}$/);
});

it("a Node that has reported nothing yet names no machine", () => {
  expect(decodeNode({ metadata: { name: "n1" } }, "")).toMatchObject({ machine: undefined, bootId: "" });
  const nodeInfo = { bootID: "b1" };
  expect(decodeNode({ metadata: { name: "n1" }, status: { nodeInfo } }, "")).toMatchObject({ bootId: "b1" });
});

it.each<[named: string | undefined, machine: string | undefined, isOf: boolean, areTwo: boolean]>([
  ["m1", "m1", true, false],
  ["m1", "m2", false, true],
  [undefined, "m2", true, false],
  ["m1", undefined, false, false],
  [undefined, undefined, true, false],
])("a record of machine %s is of machine %s: %s", (named, machine, isOf, areTwo) => {
  expect(isOfMachine({ machine: named }, machine)).toBe(isOf);
  expect(areTwoMachines({ machine: named }, { machine })).toBe(areTwo);
});
