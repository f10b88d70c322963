import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { readHostMachine } from "../../../../host/agent/cluster/host-machine.ts";
import { machineOf } from "../../../../host/resources/machine.ts";
import { temporaryDirectory } from "../../../world/temporary-directory.ts";

const DMI = "sys/class/dmi/id/product_uuid";
const SYSTEM_ID = "proc/device-tree/system-id";
const VM_UUID = "proc/device-tree/vm,uuid";
const ID = "etc/machine-id";
const DBUS_ID = "var/lib/dbus/machine-id";

it.each<[what: string, files: Readonly<Record<string, string>>, names: readonly [string, string]]>([
  ["the firmware's UUID", { [DMI]: "UUID-1\n", [SYSTEM_ID]: "other", [ID]: "id\n" }, ["UUID-1", "id"]],
  ["the device tree's", { [SYSTEM_ID]: "IBM,1\0", [VM_UUID]: "other", [ID]: "id" }, ["IBM,1", "id"]],
  ["a guest's", { [VM_UUID]: "UUID-2\0\n", [ID]: "id" }, ["UUID-2", "id"]],
  ["without any the machine-id, as on s390", { [ID]: "id\n" }, ["id", "id"]],
  ["the machine-id of D-Bus", { [DMI]: "UUID-1", [DBUS_ID]: "dbus" }, ["UUID-1", "dbus"]],
  ["none", {}, ["", ""]],
])("the host says which machine it is as its kubelet would: %s", (_what, files, [systemUuid, machineId]) => {
  const root = temporaryDirectory("berth-host-", onTestFinished);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  expect(readHostMachine(root)).toBe(machineOf({ systemUuid, machineId }));
});
