/**
 * The reference IPAM plugin host-local on a pool of a given shape.
 * host-local keeps a file per address in use (content: container ID, CR LF, interface), one for the
 * last address given, and a lock.
 * Effects: writes the store below the benchmark's folder.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { referenceBin } from "../../test/lab/cnitool.ts";
import { type Contestant, type Place, pluginCalls } from "./contestant.ts";
import { type PoolShape, takenAddresses, usableRange6 } from "./pool-shape.ts";

export function openHostLocal(shape: PoolShape, place: Place): Contestant {
  const network = `host-local-${shape.subnet.replace("/", "-")}`;
  const dataDir = join(place.directory, "host-local");
  const store = join(dataDir, network);
  mkdirSync(store, { recursive: true });
  let last = "";
  for (const address of takenAddresses(shape)) {
    writeFileSync(join(store, address), `other-${address}\r\neth0`);
    last = address;
  }
  if (last !== "") writeFileSync(join(store, "last_reserved_ip.0"), last);

  const stdinFile = join(place.directory, `${network}.json`);
  const ipam = { type: "host-local", dataDir, ranges: rangesOf(shape) };
  writeFileSync(stdinFile, JSON.stringify({ cniVersion: "1.0.0", name: network, type: "bridge", ipam }));
  return {
    name: `host-local, ${shape.name}`,
    ...pluginCalls(join(referenceBin, "host-local"), stdinFile, place),
    daemonPid: undefined,
    close: () => rm(store, { recursive: true, force: true }),
  };
}

function rangesOf({ subnet, subnet6 }: PoolShape): object[][] {
  if (subnet6 === undefined) return [[{ subnet }]];
  const { first, last } = usableRange6(subnet6);
  return [[{ subnet }], [{ subnet: subnet6, rangeStart: first, rangeEnd: last }]];
}
