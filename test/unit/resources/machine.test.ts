import { expect, it } from "vitest";
import { areTwoMachines, isOfMachine, machineOf } from "../../../host/resources/machine.ts";
import { decodeNode } from "../../../host/resources/node.ts";

it.each<[what: string, systemUuid: string, machineId: string, machine: string | undefined]>([
  ["both", "4C4C4544-0051-4A10-8057-B7C04F4D3233", "3d1219c7c4c5404aaa1f6d2a48adfda4", "2639f9f5424f4686"],
  [
    "both in another case",
    "4c4c4544-0051-4a10-8057-b7c04f4d3233",
    "3D1219C7C4C5404AAA1F6D2A48ADFDA4",
    "2639f9f5424f4686",
  ],
  ["another system of the same image", "4C4C4544-0051-4A10-8057-B7C04F4D3234", "3d1219c7c4c5404aaa1f6d2a48adfda4", ""],
  ["no UUID", "", "3d1219c7c4c5404aaa1f6d2a48adfda4", ""],
  ["nothing", "", "", undefined],
])("a machine is named by its systemUUID and its machineID: %s", (_what, systemUUID, machineID, machine) => {
  const found = machineOf({ systemUuid: systemUUID, machineId: machineID });
  const { machine: ofNode } = decodeNode(
    { metadata: { name: "n1" }, status: { nodeInfo: { machineID, systemUUID } } },
    "",
  );
  expect(ofNode).toBe(found);
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
