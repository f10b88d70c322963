import { readSysctls } from "../../host/kernel/sysctl.ts";

/** Returns the value of the setting in the namespace; undefined if there is no such setting. */
export function readSysctl(netnsPath: string, key: string): string | undefined {
  return readSysctls(netnsPath, [key]).get(key);
}
