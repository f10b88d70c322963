/**
 * Network namespaces, made and removed: the hosts and the pods of tests and of the demo.
 *
 *   const pod = await createNetns("demo-web-0");      // /run/netns/demo-web-0, loopback up
 *   await pod.ip("addr add 10.0.0.2/24 dev eth0");    // throws when ip refuses
 *   (await pod.exec(["ping", "-c1", "10.0.0.1"])).exitCode
 *   await addVeth({ netns: node, name: "v0" }, { netns: pod, name: "eth0" });
 *   await addBridge(node, "br0", ["v0"]);
 *   await pod.delete();                               // twice is fine
 *
 * Commands run through nsenter, not `ip netns exec`: /sys stays mounted as it is, and it is quicker. `ip` itself
 * enters a namespace for less.
 * Effects: creates and removes namespaces and links below /run/netns; never changes the caller's own namespace.
 */
import { join } from "node:path";
import { type CommandOptions, type CommandOutcome, requireCommand, runCommand } from "./command.ts";

export interface Netns {
  readonly name: string;
  /** Path that a runtime passes as CNI_NETNS. */
  readonly path: string;
  /** Puts `nsenter` in front of a command line. */
  enter(argv: readonly string[]): string[];
  /** Runs a command inside, whatever its exit code. */
  exec(argv: readonly string[], options?: CommandOptions): Promise<CommandOutcome>;
  /** `ip <text>` inside, words split at blanks; throws when it fails, returns its output. */
  ip(text: string): Promise<string>;
  /** `ip -json <text>` inside, decoded; `T`: the fields that the caller reads. */
  ipJson<T = unknown>(text: string): Promise<T[]>;
  /** Removes the namespace with the links in it; nothing happens when it is gone already. */
  delete(): Promise<void>;
}

const DIRECTORY = "/run/netns";

/** The namespace of that name below /run/netns, which exists. */
export function openNetns(name: string): Netns {
  const path = join(DIRECTORY, name);
  const enter = (argv: readonly string[]): string[] => ["nsenter", `--net=${path}`, ...argv];
  const ip = (text: string): Promise<string> => requireCommand(["ip", "-n", name, ...words(text)]);
  return {
    name,
    path,
    enter,
    exec: (argv, options) => runCommand(enter(argv), options),
    ip,
    ipJson: async <T>(text: string) => JSON.parse((await ip(`-json ${text}`)) || "[]") as T[],
    delete: async () => {
      const { exitCode, stderr } = await runCommand(["ip", "netns", "delete", name]);
      if (exitCode !== 0 && !stderr.includes("No such file"))
        throw new Error(`Cannot delete ${path}: ${stderr.trim()}`);
    },
  };
}

/** Creates a namespace with its loopback up. Throws when the name is taken. */
export async function createNetns(name: string): Promise<Netns> {
  await requireCommand(["ip", "netns", "add", name]);
  const netns = openNetns(name);
  await netns.ip("link set lo up");
  return netns;
}

export interface LinkPlace {
  readonly netns: Netns;
  readonly name: string;
}

/** A veth pair with one end in each place, both up. */
export async function addVeth(a: LinkPlace, b: LinkPlace): Promise<void> {
  await a.netns.ip(`link add ${a.name} type veth peer name ${b.name} netns ${b.netns.name}`);
  await a.netns.ip(`link set ${a.name} up`);
  await b.netns.ip(`link set ${b.name} up`);
}

/** A bridge that is up, with `members` enslaved and up. */
export async function addBridge(netns: Netns, name: string, members: readonly string[] = []): Promise<void> {
  await netns.ip(`link add ${name} type bridge`);
  await netns.ip(`link set ${name} up`);
  for (const member of members) await netns.ip(`link set ${member} master ${name} up`);
}

function words(text: string): string[] {
  return text.split(" ").filter((word) => word !== "");
}
