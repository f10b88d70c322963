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
    .command(NAME, "Print a NetworkAttachmentDefinition, or with --conflist a CNI configuration list", [
      "network lan --type macvlan --master eth0 --vlan 120 --ipv4-pool blue",
      "network lan --type bridge --conflist",
    ])
    .argument("<name>", "name of the network");
  if (!cli.mentions(NAME)) return;
  const { COORDINATOR_FLAGS, FlagError, NETWORK_TYPES } = await import("../../config/network-flags.ts");
  const { formatNetwork } = await import("./network-conf.ts");
  network
    .addOption(new Option("--type <plugin>", "main plugin").choices(NETWORK_TYPES).makeOptionMandatory())
    .option("--conflist", "print a CNI configuration list for /etc/cni/net.d")
    .option("-n, --namespace <name>", "namespace of the NetworkAttachmentDefinition")
    .option(
      "--master <interfaces>",
      "interface of the node for macvlan and ipvlan; several, with commas, are joined in a bond",
      splitList,
    )
    .option("--mtu <bytes>", "MTU of the pods' NIC; default: that of the interface below it")
    .option("--vlan <id>", "VLAN ID")
    .option("--bond-name <name>", "name of the bond")
    .option("--bond-mode <mode>", "mode of the bond, active-backup by default")
    .option("--bond-options <options>", 'options of the bond, such as "miimon=100;updelay=200"')
    .option("--bridge <name>", "name of the bridge")
    .option("--ipv4-pool <names>", "IPv4 pools with commas, tried in this order", splitList)
    .option("--ipv6-pool <names>", "IPv6 pools with commas, tried in this order", splitList)
    .option("--resource-name <name>", "resource of the SR-IOV device plugin")
    .option("--cni-version <version>", "version of the configuration", "1.0.0")
    .option("--no-coordinator", "leave out the coordinator");
  for (const { flag, description } of COORDINATOR_FLAGS)
    network.option(`--${flag} <value>`, `coordinator: ${description}`);
  // Its name before: that of the main plugin is another one.
  network.addOption(new Option("--mode <value>").hideHelp());
  network.action((name: string, flags: NetworkFlags & Readonly<Record<string, string>>) =>
    cli.run({}, async ({ out }) => {
      const given: Readonly<Record<string, unknown>> = { ...flags, mode: flags.coordinatorMode ?? flags.mode };
      const settings = COORDINATOR_FLAGS.flatMap(({ key }) => (given[key] === undefined ? [] : [[key, given[key]]]));
      try {
        out.text(formatNetwork(name, { ...flags, settings: Object.fromEntries(settings) }));
      } catch (error) {
        throw error instanceof FlagError ? new UsageError(error.message) : error;
      }
      return ExitCode.Success;
    }),
  );
}
