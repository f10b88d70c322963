/**
 * The process of `berthctl`: queries the agent of this node and prints its answer. Exits with 0 when all is well, with 1 on problems or without an answer,
 * with 2 on wrong usage.
 */
import { Command, Option } from "commander";
import {
  type ExplainOptions,
  explainPod,
  explainPool,
  type Outcome,
  probeHealth,
  type RecoverOptions,
  recover,
  showAllocations,
  showHealth,
  showPools,
} from "../cli/commands.ts";
import { COORDINATOR_FLAGS, FlagError, formatNetwork, NETWORK_TYPES, type NetworkFlags } from "../cli/network-conf.ts";
import { messageOf } from "../lib/describe.ts";
import { endsOnUsage } from "./life.ts";
import { VERSION } from "./version.ts";

const program = endsOnUsage(
  new Command("berthctl").description("Inspect and recover the Berth agent of this node").version(VERSION),
);
const socket = new Option("--socket <path>", "path of the agent's unix socket")
  .default("/run/berth/agent.sock")
  .env("BERTH_SOCKET");

async function print(outcome: Promise<Outcome>): Promise<void> {
  try {
    const { text, ok } = await outcome;
    console.log(text);
    process.exitCode = ok ? 0 : 1;
  } catch (error) {
    console.error(`berthctl: ${messageOf(error)}`);
    process.exitCode = 1;
  }
}

program
  .command("health")
  .description("Show whether the agent is ready, and its problems")
  .addOption(
    new Option("--probe <what>", "only ask whether the agent answers (live) or can attach pods (ready)").choices([
      "live",
      "ready",
    ]),
  )
  .addOption(socket)
  .action(({ socket: path, probe }: { socket: string; probe?: "live" | "ready" }) =>
    print(probe === undefined ? showHealth(path) : probeHealth(path, probe)),
  );

const simple: readonly [name: string, description: string, show: (socket: string) => Promise<Outcome>][] = [
  ["pools", "List pools and their usage, as known to this node", showPools],
  ["allocations", "List the addresses in use on this node, and their pods", showAllocations],
];
for (const [name, description, show] of simple) {
  program
    .command(name)
    .description(description)
    .addOption(socket)
    .action((options: { socket: string }) => print(show(options.socket)));
}

program
  .command("explain")
  .description("Explain which pools a pod may use and why others are excluded, or the owner and the size of a pool")
  .usage("[options] <pod> | explain [options] pool <pool>")
  .argument("<pod>", 'name of the pod, or "pool" and the name of a pool')
  .argument("[name]", 'name of the pool, or of a pod after "pod"')
  .option("-n, --namespace <name>", "namespace of the pod", "default")
  .option("-i, --interface <name>", "interface of the pod", "eth0")
  .option("--network <name>", "name of the network configuration", "")
  .addOption(socket)
  .action(
    (subject: string, name: string | undefined, { socket: path, ...options }: ExplainOptions & { socket: string }) => {
      if (name === undefined) return print(explainPod(path, subject, options));
      if (subject === "pod") return print(explainPod(path, name, options));
      if (subject === "pool") return print(explainPool(path, name));
      return program.error(`error: expected "pool" or "pod" before "${name}", found "${subject}"`, { exitCode: 2 });
    },
  );

program
  .command("recover")
  .description("Recover lost registry rows from the cached results of runtimes and the NICs of pods (docs/recovery.md)")
  .option("--results <directory...>", "directories with cached results of runtimes", ["/var/lib/cni/results"])
  .option("--netns <directory...>", "directories with network namespaces of pods", ["/run/netns", "/run/docker/netns"])
  .option("--dry-run", "print what would be recovered without writing anything")
  .addOption(socket)
  .action(({ socket: path, ...options }: RecoverOptions & { socket: string }) => print(recover(path, options)));

const network = program
  .command("network")
  .description("Print a NetworkAttachmentDefinition, or with --conflist a CNI configuration list (docs/network.md)")
  .argument("<name>", "name of the network")
  .addOption(new Option("--type <plugin>", "main plugin").choices(NETWORK_TYPES).makeOptionMandatory())
  .option("--conflist", "print a CNI configuration list for /etc/cni/net.d")
  .option("-n, --namespace <name>", "namespace of the NetworkAttachmentDefinition")
  .option("--master <interface...>", "interface of the node for macvlan and ipvlan; several are joined in a bond")
  .option("--vlan <id>", "VLAN ID")
  .option("--bond-name <name>", "name of the bond")
  .option("--bond-mode <mode>", "mode of the bond, active-backup by default")
  .option("--bond-options <options>", 'options of the bond, such as "miimon=100;updelay=200"')
  .option("--bridge <name>", "name of the bridge")
  .option("--ipv4-pool <name...>", "IPv4 pools, tried in this order")
  .option("--ipv6-pool <name...>", "IPv6 pools, tried in this order")
  .option("--resource-name <name>", "resource of the SR-IOV device plugin")
  .option("--cni-version <version>", "version of the configuration", "1.0.0")
  .option("--no-coordinator", "leave out the coordinator");
for (const { key, description } of COORDINATOR_FLAGS) network.option(`--${key} <value>`, `coordinator: ${description}`);
network.action((name: string, options: NetworkFlags & Readonly<Record<string, string>>) => {
  const settings = COORDINATOR_FLAGS.flatMap(({ key }) => (options[key] === undefined ? [] : [[key, options[key]]]));
  try {
    console.log(formatNetwork(name, { ...options, settings: Object.fromEntries(settings) }));
  } catch (error) {
    if (!(error instanceof FlagError)) throw error;
    program.error(`berthctl: ${error.message}`, { exitCode: 2 });
  }
});

await program.parseAsync();
