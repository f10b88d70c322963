/**
 * The process of `kubectl berth`: calls berthctl in the agents' pods, on one node or on all. Exits with the highest exit code of the calls, with 1 if there
 * is no agent, with 2 on wrong usage.
 */
import { Command } from "commander";
import { AGENT_LABELS, type ClusterOptions, callAgents } from "../cli/cluster-agents.ts";
import { messageOf } from "../lib/describe.ts";
import { endsOnUsage } from "./life.ts";
import { VERSION } from "./version.ts";

const EXAMPLES = `
Examples:
  kubectl berth health                               every agent
  kubectl berth --node worker-1 allocations          the addresses in use on a node
  kubectl berth --node worker-1 explain web-0 -n shop
  kubectl berth network lan --type macvlan --master eth0    prints a definition, asks no agent

The commands are those of berthctl; "kubectl berth --node NODE COMMAND --help" describes one.`;

const program = endsOnUsage(
  new Command("kubectl berth")
    .description("Call berthctl in the pods of the Berth agents")
    .version(VERSION)
    .argument("<command>", "command of berthctl: health, pools, allocations, explain, recover, network")
    .argument("[arguments...]", "its arguments")
    .option("--node <name>", "only the agent of this node; default: all agents, one after the other")
    .option("--selector <labels>", "labels of the agents' pods", AGENT_LABELS)
    .option("--kubeconfig <file>", "kubeconfig for kubectl")
    .option("--context <name>", "context of the kubeconfig")
    .passThroughOptions()
    .addHelpText("after", EXAMPLES),
);

program.action(async (command: string, words: readonly string[], options: ClusterOptions) => {
  if (command === "network") {
    process.argv.splice(2, Number.POSITIVE_INFINITY, command, ...words);
    await import("./berthctl-main.ts");
    return;
  }
  try {
    process.exitCode = callAgents([command, ...words], options);
  } catch (error) {
    console.error(`kubectl berth: ${messageOf(error)}`);
    process.exitCode = 1;
  }
});

await program.parseAsync();
