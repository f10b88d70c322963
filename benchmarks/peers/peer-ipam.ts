/** An IPAM of a cluster whose pods may be on many nodes, and whose records can be counted. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Contestant, Place } from "../ipam/contestant.ts";

export interface PeerIpam extends Contestant {
  /** Process IDs of the daemons of all nodes and of the whole cluster. */
  readonly daemonPids: readonly number[];
  /** Returns the number of addresses that it has recorded as in use, including those of the pool's shape. */
  records(): Promise<number>;
}

/** Numbers of pods measured on many nodes are below it. */
const MOST_PODS = 1_000;

interface PerPodFile {
  readonly place: Place;
  readonly node: string;
  readonly spread?: number | undefined;
  /** Name of the files. */
  readonly name: string;
  /** One for each node. */
  readonly texts: readonly string[];
}

/** The path, for the runner, of a file that has for the pod {n} the text of the pod's node. */
export async function perPodFile({ place, node, spread, name, texts }: PerPodFile): Promise<string> {
  const path = join(place.directory, `${name}-${node}`);
  if (spread === undefined) {
    await writeFile(path, texts[0] ?? "");
    return path;
  }
  for (let number = 0; number < MOST_PODS; number++)
    await writeFile(`${path}-${number}`, texts[number % texts.length] ?? "");
  return `${path}-{n}`;
}
