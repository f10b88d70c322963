/**
 * A node's own /run/netns. Nodes of the lab share one machine, and an agent that looks at its node's pods must not
 * find those of the other node.
 * Effects: a folder below /run, mounts.
 */
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { requireCommand } from "../command.ts";
import type { Netns } from "../netns.ts";

export class NodePods {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async open(node: string): Promise<NodePods> {
    const folder = `/run/berth-lab-${process.pid}-${node}`;
    await mkdir(folder);
    await requireCommand(["mount", "--bind", folder, folder]);
    // The agent's copy of the mount follows this one.
    await requireCommand(["mount", "--make-shared", folder]);
    return new NodePods(folder);
  }

  /** Goes before the agent's command line. */
  get wrapper(): readonly string[] {
    const script = 'mount --rbind "$0" /run/netns && exec "$@"';
    return ["unshare", "--mount", "--propagation", "slave", "sh", "-c", script, this.#folder];
  }

  async add({ name, path }: Netns): Promise<void> {
    const place = join(this.#folder, name);
    await writeFile(place, "");
    await requireCommand(["mount", "--bind", path, place]);
  }

  /** Before the namespace is deleted. */
  async remove({ name }: Netns): Promise<void> {
    const place = join(this.#folder, name);
    // The node's agent may look into it at this moment.
    await requireCommand(["umount", "--lazy", place]);
    await rm(place);
  }

  async close(): Promise<void> {
    await requireCommand(["umount", "--recursive", this.#folder]);
    await rm(this.#folder, { recursive: true });
  }
}
