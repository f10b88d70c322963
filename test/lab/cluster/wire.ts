/**
 * The segment of a world's pods, with an observer on it: each sandbox has a namespace of its own, and a NIC with the
 * addresses of its ADD, until its DEL.
 *
 *      sandbox  sandbox  observer      veth pairs to ports of `br0`; 10.0.0.0/8 is on the wire
 *         │        │        │
 *       ──┴────────┴────────┴──  br0   in a namespace of its own
 *
 * The agent of a node finds the sandboxes of its node, and no others, below /run/netns.
 * Effects: namespaces; a tmpfs below /run with a folder for each node; see observer.ts.
 */
import { mkdir, rmdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { requireCommand } from "../command.ts";
import { addBridge, createNetns, type Netns } from "../netns.ts";
import { type Observer, type ObserverOptions, startObserver } from "../observer/observer.ts";
import type { LabPod } from "./objects.ts";

export type WireOptions = Pick<ObserverOptions, "name" | "ranges" | "records"> &
  Partial<Pick<ObserverOptions, "graceMs">>;

/** A NIC on the wire, and its pod. */
export interface Nic {
  readonly pod: LabPod;
  readonly containerId: string;
  readonly ifName: string;
}

const AGENTS_FOLDER = "/run/netns";
/** Mounts of this folder that come later appear there, too. */
const SHOW_FOLDER = `
  set -e
  mount --rbind "$1" ${AGENTS_FOLDER}
  shift
  exec "$@"`;
const MAKE_NETNS = 'touch "$1" && unshare --net="$1" ip link set lo up';
const END_NETNS = 'umount -l "$1" && rm "$1"';
const PLUG = `printf '%s\\n' "$1" | nsenter --net="$2" ip -batch - && printf '%s\\n' "$3" | nsenter --net="$4" ip -batch -`;

interface WireParts {
  readonly segment: Netns;
  readonly observer: Observer;
  readonly folder: string;
  readonly pods: Map<string, string>;
  readonly stack: AsyncDisposableStack;
}

export class Wire {
  readonly segment: Netns;
  readonly observer: Observer;
  readonly #folder: string;
  /** UIDs of pods by the names of their namespaces. */
  readonly #pods: Map<string, string>;
  readonly #stack: AsyncDisposableStack;
  /** Names of namespaces that exist. */
  readonly #open = new Set<string>();
  readonly #ports = new Map<string, string>();
  #plugged = 0;

  /** `name` distinguishes worlds. */
  static async open(name: string, options: WireOptions): Promise<Wire> {
    await using stack = new AsyncDisposableStack();
    const segment = await createNetns(name);
    stack.defer(() => segment.delete());
    await addBridge(segment, "br0");
    const folder = join("/run", name);
    await mkdir(folder);
    stack.defer(() => rmdir(folder));
    await requireCommand(["mount", "-t", "tmpfs", name, folder]);
    stack.defer(async () => void (await requireCommand(["umount", "-R", "-l", folder])));
    await requireCommand(["mount", "--make-shared", folder]);
    const pods = new Map<string, string>();
    const podOf = (netns: string): string | undefined => pods.get(basename(netns));
    const observer = await startObserver({ ...options, segment: { path: segment.path, bridge: "br0" }, podOf });
    return new Wire({ segment, observer, folder, pods, stack: stack.move() });
  }

  private constructor({ segment, observer, folder, pods, stack }: WireParts) {
    this.segment = segment;
    this.observer = observer;
    this.#folder = folder;
    this.#pods = pods;
    this.#stack = stack;
  }

  /** Returns the words that go before the command line of the node's agent. */
  async wrapper(node: string): Promise<readonly string[]> {
    const folder = join(this.#folder, node);
    await mkdir(folder);
    this.observer.read(node, `${folder}/*`);
    return ["unshare", "--mount", "--propagation", "slave", "sh", "-c", SHOW_FOLDER, "sh", folder];
  }

  /** The sandbox's namespace, made if it is new. Returns its path as the node's agent has it. */
  async sandbox({ pod, containerId }: Omit<Nic, "ifName">): Promise<string> {
    const name = nameOf({ pod, containerId });
    if (!this.#open.has(name)) {
      this.#open.add(name);
      this.#pods.set(name, pod.uid);
      await run(MAKE_NETNS, this.pathOf({ pod, containerId }));
    }
    return join(AGENTS_FOLDER, name);
  }

  /** The same as this process has it. */
  pathOf(sandbox: Omit<Nic, "ifName">): string {
    return join(this.#folder, sandbox.pod.node, nameOf(sandbox));
  }

  /** A command inside; throws when it fails. */
  exec(sandbox: Omit<Nic, "ifName">, argv: readonly string[]): Promise<string> {
    return requireCommand(["nsenter", `--net=${this.pathOf(sandbox)}`, ...argv]);
  }

  /** The NIC comes up with these addresses, which have no length. Once: an ADD may be repeated. */
  async plug(nic: Nic, addresses: readonly string[]): Promise<void> {
    if (this.#ports.has(keyOf(nic))) return;
    const port = `p${++this.#plugged}`;
    const path = this.pathOf(nic);
    this.#ports.set(keyOf(nic), port);
    const switched = [
      `link add ${port} type veth peer name ${nic.ifName} netns ${path}`,
      `link set ${port} addrgenmode none`,
      `link set ${port} master br0 up`,
    ];
    const inside = [
      ...addresses.map(
        (address) => `addr add ${address}/${address.includes(":") ? "64 nodad" : "8"} dev ${nic.ifName}`,
      ),
      `link set ${nic.ifName} up`,
    ];
    await run(PLUG, switched.join("\n"), this.segment.path, inside.join("\n"), path);
  }

  /** As a runtime removes a sandbox with this NIC after its DEL. Nothing happens when it is gone. */
  async unplug(nic: Nic): Promise<void> {
    const port = this.#ports.get(keyOf(nic));
    if (this.#ports.delete(keyOf(nic))) await this.segment.ip(`link delete ${port}`);
    const name = nameOf(nic);
    const isLast = [...this.#ports.keys()].every((key) => !key.startsWith(`${name} `));
    if (isLast && this.#open.delete(name)) await run(END_NETNS, this.pathOf(nic));
  }

  /** Throws the observer's findings. */
  async close(): Promise<void> {
    try {
      await this.observer.stop();
    } finally {
      await this.#stack.disposeAsync();
    }
  }
}

const run = (script: string, ...words: readonly string[]): Promise<string> =>
  requireCommand(["sh", "-c", script, "sh", ...words]);

const nameOf = ({ pod, containerId }: Omit<Nic, "ifName">): string => `${pod.name}-${containerId.slice(0, 10)}`;

const keyOf = (nic: Nic): string => `${nameOf(nic)} ${nic.ifName}`;
