/** The reference plugin `static`: it answers with the address of its configuration and keeps nothing. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { referenceBin } from "../../test/lab/cnitool.ts";
import { type Contestant, type Place, pluginCalls } from "../ipam/contestant.ts";

export async function openStatic(place: Place): Promise<Contestant> {
  const stdinFile = join(place.directory, "static.json");
  const ipam = { type: "static", addresses: [{ address: "10.152.0.9/24" }] };
  await writeFile(stdinFile, JSON.stringify({ cniVersion: "1.0.0", name: "static", type: "bridge", ipam }));
  return {
    name: "static",
    ...pluginCalls(join(referenceBin, "static"), stdinFile, place),
    daemonPid: undefined,
    close: async () => {},
  };
}
