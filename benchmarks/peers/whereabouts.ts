/**
 * whereabouts with its objects in the API server: every call of the plugin reads and writes them itself, under a lease of the cluster.
 * Effects: objects in the API server.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { referenceTool } from "../../scripts/setup/paths.mjs";
import { type NodePodsOptions, openNodePods } from "../cluster/pods.ts";
import { type Contestant, callEnvironment } from "../ipam/contestant.ts";

export interface WhereaboutsOptions extends NodePodsOptions {
  /** Of the plugin. */
  readonly kubeconfig: string;
  /** `10.150.0.0/24` */
  readonly subnet: string;
}

export async function openWhereabouts(options: WhereaboutsOptions): Promise<Contestant> {
  const { place, node, kubeconfig, subnet } = options;
  const pods = await openNodePods(options);
  const { directory, version } = referenceTool("whereabouts");
  const stdinFile = join(place.directory, `whereabouts-${node}.json`);
  const settingsFile = join(place.directory, `whereabouts-${node}.conf`);
  await writeFile(settingsFile, JSON.stringify({ kubernetes: { kubeconfig } }));
  const ipam = {
    type: "whereabouts",
    range: subnet,
    // It wants a file, even an empty one.
    configuration_path: settingsFile,
    log_file: join(place.directory, "whereabouts.log"),
    log_level: "error",
  };
  await writeFile(stdinFile, JSON.stringify({ cniVersion: "1.0.0", name: "whereabouts", type: "bridge", ipam }));
  const subject = (command: "ADD" | "DEL") => ({
    path: join(directory, "whereabouts"),
    stdinFile,
    // It names the node whose pod it serves.
    env: callEnvironment(command, place, { ...pods.env, NODENAME: node }),
  });
  return {
    name: `whereabouts ${version}`,
    add: subject("ADD"),
    del: subject("DEL"),
    prepare: async (first, count) => void (await pods.create(first, count)),
    finish: async (first, count) => void (await pods.remove(first, count)),
    daemonPid: undefined,
    close: async () => {},
  };
}
