/** `berthctl network`: prints the configuration of a network from flags. Asks no agent. */
import { Option } from "commander";
import type { NetworkFlags } from "../../config/network-flags.ts";
import { splitList } from "../arguments.ts";
import type { CommandLine } from "../command-line.ts";
import { ExitCode, UsageError } from "../exit-code.ts";

const NAME = "network";

/**
 * Its options come from the schemas of the configuration, which take as long to load as everything else: only if it
 * is called or described.
 */
export async function addNetwork(cli: CommandLine): Promise<void> {
  const network = cli
    .command(NAME, "Print a NetworkAttachmentDefinition, or with --conflist a CNI configuration list")
    .argument("<name>", "name of the network");
  if (!cli.mentions(NAME)) return;
  const { COORDINATOR_FLAGS, FlagError, NETWORK_TYPES } = await import("../../config/network-flags.ts");
  const { formatNetwork } = await import("./network-conf.ts");
  network
    .addOption(new Option("--type <plugin>", "main plugin").choices(NETWORK_TYPES).makeOptionMandatory())
    .option("--conflist", "print a CNI configuration list for /etc/cni/net.d")
    .option("-n, --namespace <name>", "namespace of the NetworkAttachmentDefinition")
    .option(
      "--master <interface...>",
      "interface of the node for macvlan and ipvlan; several are joined in a bond",
      splitList,
    )
    .option("--vlan <id>", "VLAN ID")
    .option("--bond-name <name>", "name of the bond")
    .option("--bond-mode <mode>", "mode of the bond, active-backup by default")
    .option("--bond-options <options>", 'options of the bond, such as "miimon=100;updelay=200"')
    .option("--bridge <name>", "name of the bridge")
    .option("--ipv4-pool <name...>", "IPv4 pools, tried in this order", splitList)
    .option("--ipv6-pool <name...>", "IPv6 pools, tried in this order", splitList)
    .option("--resource-name <name>", "resource of the SR-IOV device plugin")
    .option("--cni-version <version>", "version of the configuration", "1.0.0")
    .option("--no-coordinator", "leave out the coordinator");
  for (const { key, description } of COORDINATOR_FLAGS)
    network.option(`--${key} <value>`, `coordinator: ${description}`);
  network.action((name: string, flags: NetworkFlags & Readonly<Record<string, string>>) =>
    cli.run({}, async ({ out }) => {
      const settings = COORDINATOR_FLAGS.flatMap(({ key }) => (flags[key] === undefined ? [] : [[key, flags[key]]]));
      try {
        out.text(formatNetwork(name, { ...flags, settings: Object.fromEntries(settings) }));
      } catch (error) {
        throw error instanceof FlagError ? new UsageError(error.message) : error;
      }
      return ExitCode.Success;
    }),
  );
}
