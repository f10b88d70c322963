/**
 * Which machine this is according to its files, which are those that the kubelet reads for its Node object (cadvisor,
 * utils/sysfs and machine). Only for an agent that is a service of the host: a container's own machine-id is another.
 */
import { join } from "node:path";
import { readText } from "../../lib/regular-file.ts";
import { machineOf } from "../../resources/machine.ts";

const SYSTEM_UUID = [
  "sys/class/dmi/id/product_uuid",
  "proc/device-tree/system-id",
  "proc/device-tree/vm,uuid",
  "etc/machine-id",
];

const MACHINE_ID = ["etc/machine-id", "var/lib/dbus/machine-id"];

/** Returns {@link machineOf} the host; undefined if none of the files can be read. */
export function readHostMachine(root = "/"): string | undefined {
  const read = (files: readonly string[]): string => readFirst(files.map((file) => join(root, file)));
  return machineOf({ systemUuid: read(SYSTEM_UUID), machineId: read(MACHINE_ID) });
}

/** Returns the text of the first file that can be read, "" if none can. */
function readFirst(paths: readonly string[]): string {
  for (const path of paths) {
    try {
      return readText(path).replaceAll("\0", "").trim();
    } catch {
      // Another kind of machine has another file.
    }
  }
  return "";
}
