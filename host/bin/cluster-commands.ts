/** `berth-controller pull-image`, `apply-crds`, `uninstall` and `delete-crds`: the hooks of the Helm chart. */
import { type Command, Option } from "commander";
import { applyCrds, deleteCrds } from "../install/crds.ts";
import { decodeDaemonSet } from "../install/node-pods.ts";
import { pullImage } from "../install/pull-image.ts";
import { uninstallFromCluster } from "../install/uninstall-cluster.ts";
import { openKubeClient } from "../kubernetes/client.ts";
import { loadCredentials } from "../kubernetes/credentials.ts";
import type { KubeApi } from "../kubernetes/kube-api.ts";
import { messageOf } from "../lib/describe.ts";
import { readText } from "../lib/regular-file.ts";

interface AccessFlags {
  /** Default: the service account of the pod. */
  readonly kubeconfig?: string;
}

interface UninstallFlags extends AccessFlags {
  readonly namespace: string;
  readonly agent: string;
  readonly controller: string;
  readonly selector: string;
  readonly cleaner: string;
  readonly force?: boolean;
  readonly keepState?: boolean;
  readonly limit: string;
}

interface PullFlags extends AccessFlags {
  readonly puller: string;
  readonly limit: string;
}

const print = (line: string): void => console.log(line);

async function withApi({ kubeconfig }: AccessFlags, work: (api: KubeApi) => Promise<void>): Promise<void> {
  try {
    const credentials = await loadCredentials({ kubeconfig });
    const api = openKubeClient({ credentials, userAgent: "berth-hook", random: Math.random });
    await work(api).finally(() => api.close());
  } catch (error) {
    console.error(`berth-controller: ${messageOf(error)}`);
    process.exitCode = 1;
  }
}

function uninstall(flags: UninstallFlags): Promise<void> {
  const { force = false, keepState = false, limit, cleaner, kubeconfig: _, ...rest } = flags;
  return withApi(flags, (api) => {
    const options = { ...rest, force, keepState, limitMs: Number(limit) * 1000 };
    return uninstallFromCluster({ ...options, api, print, cleaner: decodeDaemonSet(readText(cleaner)) });
  });
}

function pull({ puller, limit, ...access }: PullFlags): Promise<void> {
  return withApi(access, (api) =>
    pullImage({ api, puller: decodeDaemonSet(readText(puller)), limitMs: Number(limit) * 1000, print }),
  );
}

export function addClusterCommands(program: Command): Command {
  const kubeconfig = new Option("--kubeconfig <file>", "path of a kubeconfig file; default: the pod's service account");
  for (const [name, description, work] of [
    ["apply-crds", "Create or upgrade the custom resource definitions, and wait until they are served", applyCrds],
    ["delete-crds", "Delete the custom resource definitions with all their objects", deleteCrds],
  ] as const)
    program
      .command(name)
      .description(description)
      .argument("<directory>", "directory of the definitions, one YAML file each")
      .addOption(kubeconfig)
      .action((directory: string, flags: AccessFlags) => withApi(flags, (api) => work({ api, directory, print })));
  program
    .command("pull-image")
    .description("Wait until all nodes have the image of a DaemonSet, which exists meanwhile")
    .requiredOption("--puller <file>", "the DaemonSet, as JSON")
    .requiredOption("--limit <seconds>", "longest time to wait")
    .addOption(kubeconfig)
    .action(pull);
  program
    .command("uninstall")
    .description(
      "Stop agents and controller, clean all nodes and delete Berth's objects; refused while addresses are in use",
    )
    .requiredOption("--namespace <name>", "namespace of the release")
    .requiredOption("--agent <name>", "name of the agents' DaemonSet")
    .requiredOption("--controller <name>", "name of the controller's Deployment and Lease")
    .requiredOption("--selector <labels>", "label selector of the pods of both")
    .requiredOption("--cleaner <file>", "DaemonSet, as JSON, whose pods are Ready when their node is clean")
    .requiredOption("--limit <seconds>", "longest time of everything together")
    .option("--force", "although addresses are in use")
    .option("--keep-state", "keep Berth's objects")
    .addOption(kubeconfig)
    .action(uninstall);
  return program;
}
