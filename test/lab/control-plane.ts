/**
 * A real control plane: etcd and kube-apiserver, in a machine of the test network or on this machine's loopback.
 *
 *   const plane = await startControlPlane({ machine: await fabric.addHost("control", 5), address: "10.60.0.5" });
 *   await plane.client.create("/api/v1/nodes", { … });
 *   await plane.server.stop(); await plane.server.start();     // the same port, certificate and objects
 *   const copy = await plane.snapshot(); await plane.restore(copy);     // resource versions go back, as with a backup
 *   await plane.stop();
 *
 * There is no controller manager, so there are no endpoints, service accounts, or pods of Deployments. Without
 * further `accounts` the one user is an administrator. The executables come from `npm run setup`.
 * Effects: two children; a folder below the system's temporary folder, which `stop` removes.
 */
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tryOr } from "../../host/lib/try-or.ts";
import {
  type Account,
  accountKey,
  certificateFile,
  etcdCommand,
  etcdDirectory,
  etcdUrl,
  findServerPair,
  type KubeconfigOptions,
  type KubernetesVersion,
  makeParts,
  membersOf,
  type PlaneParts,
  peerUrl,
  requireToken,
  serverCommand,
  urlOf,
  writeKubeconfig,
  writeServerFiles,
} from "./cluster/plane-parts.ts";
import { type Daemon, startDaemon } from "./daemon.ts";
import { openEtcd } from "./history/etcd.ts";
import { createKubeClient, type KubeClient } from "./kube-client.ts";
import type { Netns } from "./netns.ts";

export interface ControlPlaneOptions {
  /** Machine that it runs on; default: on loopback of this process's own namespace, with ports that are free. */
  readonly machine?: Netns;
  /** Address of that machine at which the API server is reached. */
  readonly address?: string;
  /** Longest time of a start. Default: 60,000. */
  readonly readyMs?: number;
  /** Users besides the administrator. */
  readonly accounts?: readonly Account[];
  /** Added to kube-apiserver's command line: `["--watch-cache=false"]`. */
  readonly serverArgs?: readonly string[];
  /**
   * Whether a controller manager will run: then pods have service accounts, and kubelets their own rights. Default: no.
   */
  readonly hasManagers?: boolean;
  /** Default: 1.34. */
  readonly kubernetes?: KubernetesVersion;
  /** Of etcd, on loopback. Default: 1. */
  readonly members?: number;
}

/** etcd or the API server. */
export interface PlaneServer {
  /** Throws while it is stopped. */
  readonly pid: number;
  /** With the same port and data; resolves when it answers. Nothing happens when it runs. */
  start(): Promise<void>;
  /** SIGKILL: committed data stay. Does nothing if it is stopped. */
  stop(): Promise<void>;
}

export interface ControlPlane {
  /** For {@link attachControlPlane} in another process. */
  readonly parts: PlaneParts;
  /** `https://10.60.0.5:6443` */
  readonly url: string;
  /** URL of etcd, which only that machine reaches: `http://127.0.0.1:2379`; its JSON gateway is below /v3. */
  readonly etcdUrl: string;
  /** A file for programs that run where the address can be reached. */
  readonly kubeconfig: string;
  /**
   * Files that a controller manager needs: the key that signs tokens of accounts, and the authority that pods trust.
   */
  readonly files: { readonly accountKey: string; readonly ca: string };
  readonly client: KubeClient;
  readonly server: PlaneServer;
  /** All members, and the first one's process. Without it the API server answers reads of its memory at best. */
  readonly etcd: PlaneServer;
  /** Process IDs of those that run, etcd's first. */
  readonly pids: readonly number[];
  /** Returns the output of both. */
  output(): string;
  /** Another kubeconfig in the plane's folder. */
  writeKubeconfig(name: string, options: KubeconfigOptions): Promise<string>;
  /** A client with that account's rights, or with a token's; the caller closes it. */
  openClient(account: string | { readonly token: string }): Promise<KubeClient>;
  /**
   * The API server's certificate with its authority's behind it, and its key, PEM: for a stand-in on the same address.
   */
  pair(): Promise<{ readonly cert: string; readonly key: string }>;
  /**
   * A copy of etcd's data as it is at one moment, in a folder that `stop` removes. Calls in flight wait for some
   * milliseconds.
   */
  snapshot(): Promise<string>;
  /**
   * Both servers end, the data become those of the copy, both start. Later writes are lost, and resource versions are
   * given out again; `raisedBy`: so many later ones, as with `etcdutl snapshot restore --bump-revision`, `isCompacted`:
   * and `--mark-compacted`. That is not for a borrowed plane.
   */
  restore(copy: string, raisedBy?: number, isCompacted?: boolean): Promise<void>;
  /** The last member of etcd loses its data, is removed, and joins again. Not for a borrowed plane. */
  replaceMember(): Promise<void>;
  /**
   * Drops etcd's history, and restarts the API server, which has a history of its own: a watch from before is
   * answered with 410. Loopback only.
   */
  compact(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Resolves when the API server says that it is ready. Rejects with the end of their output, and leaves nothing. A port
 * that was free may be another process's by then: once more with others.
 */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const isTaken = (error: unknown) => options.machine === undefined && /address already in use/.test(String(error));
  return tryControlPlane(options).catch((error: unknown) => {
    if (!isTaken(error)) throw error;
    return tryControlPlane(options);
  });
}

async function tryControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const {
    machine,
    address = "127.0.0.1",
    readyMs = 60_000,
    accounts = [],
    serverArgs = [],
    hasManagers = false,
    kubernetes = "1.34",
    members = 1,
  } = options;
  const directory = await mkdtemp(join(tmpdir(), "berth-plane-"));
  const ports = machine === undefined ? undefined : { etcd: 2379, peer: 2380, api: 6443 };
  let running: Running | undefined;
  try {
    const servers = { serverArgs, hasManagers, kubernetes, members };
    const parts = await makeParts(directory, { address, accounts, ports, ...servers });
    await writeServerFiles(parts);
    running = await run(parts, machine, readyMs);
    return await planeOf(parts, running);
  } catch (error) {
    await running?.stop();
    await rm(directory, { recursive: true, force: true });
    throw error;
  }
}

/**
 * Actions that a process may request of another one's control plane, by {@link attachControlPlane}; the answer is
 * text.
 */
const ACTIONS = {
  "start the server": ({ server }: ControlPlane) => server.start(),
  "stop the server": ({ server }: ControlPlane) => server.stop(),
  "start etcd": ({ etcd }: ControlPlane) => etcd.start(),
  "stop etcd": ({ etcd }: ControlPlane) => etcd.stop(),
  snapshot: (plane: ControlPlane) => plane.snapshot(),
  restore: (plane: ControlPlane, copy: string) => plane.restore(copy),
  compact: (plane: ControlPlane) => plane.compact(),
} as const;

export type PlaneAction = keyof typeof ACTIONS;

export async function actOnPlane(plane: ControlPlane, action: PlaneAction, copy: string): Promise<string> {
  return (await ACTIONS[action](plane, copy)) ?? "";
}

/** The process that started a plane. */
export interface PlaneOwner {
  /** {@link actOnPlane} there. */
  act(action: PlaneAction, copy?: string): Promise<string>;
  /** The plane is no longer used here. */
  giveBack(): Promise<void>;
}

/**
 * Another process's control plane on loopback. Process IDs and output of its servers are unknown here. `stop` closes
 * the client and gives it back.
 */
export async function attachControlPlane(parts: PlaneParts, owner: PlaneOwner): Promise<ControlPlane> {
  const open = opener(parts, undefined);
  const client = await open();
  const refuse = (): never => {
    throw new Error("The control plane's servers belong to another process");
  };
  const serverOf = (name: "the server" | "etcd") => ({
    get pid() {
      return refuse();
    },
    start: async () => void (await owner.act(`start ${name}`)),
    stop: async () => void (await owner.act(`stop ${name}`)),
    output: refuse,
    rewrite: refuse,
    replace: refuse,
  });
  const stop = async (): Promise<void> => {
    client.close();
    await owner.giveBack();
  };
  const plane = await planeOf(parts, {
    parts,
    etcd: serverOf("etcd"),
    server: serverOf("the server"),
    client,
    open,
    stop,
  });
  return {
    ...plane,
    get pids() {
      return refuse();
    },
    snapshot: () => owner.act("snapshot"),
    restore: async (copy) => void (await owner.act("restore", copy)),
    compact: async () => void (await owner.act("compact")),
    stop,
  };
}

/** The two servers, and their clients. */
interface Running {
  readonly parts: PlaneParts;
  readonly etcd: Etcd;
  readonly server: PlaneServer & { output(): string };
  readonly client: KubeClient;
  /** A client of that account. */
  open(account?: string | { readonly token: string }): Promise<KubeClient>;
  stop(): Promise<void>;
}

async function run(parts: PlaneParts, machine: Netns | undefined, readyMs: number): Promise<Running> {
  let client: KubeClient | undefined;
  const open = opener(parts, machine);
  const isReady = async (): Promise<boolean> => {
    client ??= await open();
    return (await client.text("/readyz")) === "ok";
  };
  const etcd = etcdOf(parts, machine, readyMs);
  const server = serverOf(
    () => startDaemon("kube-apiserver", serverCommand(parts), machine),
    // It gives up by itself when etcd does.
    (daemon) => daemon.until(isReady, readyMs),
  );
  const stop = async (): Promise<void> => {
    client?.close();
    await server.stop();
    await etcd.stop();
  };
  try {
    await etcd.start();
    await server.start();
  } catch (error) {
    await stop();
    throw error;
  }
  client ??= await open();
  return { parts, etcd, server, client, open, stop };
}

interface Etcd extends PlaneServer {
  output(): string;
  /** All members start with the copy's data. */
  rewrite(copy: string): Promise<void>;
  replace(): Promise<void>;
}

function etcdOf(parts: PlaneParts, machine: Netns | undefined, readyMs: number): Etcd {
  const all = membersOf(parts);
  const spawn = (at: number, known = all.length, ...flags: readonly string[]): Running["server"] => {
    const member = all[at] as PlaneParts;
    const isHealthy = async (): Promise<boolean> => (await fetch(`${etcdUrl(member)}/health`)).ok;
    return serverOf(
      () => startDaemon("etcd", etcdCommand(member, all.slice(0, known), flags), machine),
      // In another network namespace it cannot be asked from here; the API server asks it.
      (daemon) => (machine === undefined ? daemon.until(isHealthy, readyMs) : Promise.resolve()),
    );
  };
  const servers = all.map((_, at) => spawn(at));
  const [first] = servers as [Running["server"]];
  const stop = async (): Promise<void> => void (await Promise.all(servers.map((each) => each.stop())));
  const join = async (at: number): Promise<void> => {
    const member = all[at] as PlaneParts;
    await rm(etcdDirectory(member), { recursive: true, force: true });
    await askEtcd(parts, "cluster/member/add", { peerURLs: [peerUrl(member)] });
    servers[at] = spawn(at, at + 1, "--initial-cluster-state=existing");
    await servers[at].start();
  };
  return {
    get pid() {
      return first.pid;
    },
    start: async () => void (await Promise.all(servers.map((each) => each.start()))),
    stop,
    output: () => servers.map((each) => each.output()).join("\n"),
    rewrite: async (copy) => {
      await stop();
      await rm(etcdDirectory(parts), { recursive: true, force: true });
      await cp(copy, etcdDirectory(parts), { recursive: true });
      // As `etcdutl snapshot restore` does, it forgets the other members, which get its data.
      const alone = spawn(0, 1, "--force-new-cluster");
      await alone.start();
      await alone.stop();
      await first.start();
      for (const at of all.keys()) if (at > 0) await join(at);
    },
    replace: async () => {
      const at = all.length - 1;
      await servers[at]?.stop();
      const { members } = await askEtcd(parts, "cluster/member/list", {});
      const lost = members.find(({ name }: { name: string }) => name === `${all[at]?.ports.etcd}`);
      await askEtcd(parts, "cluster/member/remove", { ID: lost.ID });
      await join(at);
    },
  };
}

function opener(parts: PlaneParts, machine: Netns | undefined): Running["open"] {
  return async (account) => {
    // Its own authority signed it, and is the second certificate of the file.
    const { cert } = await requirePair(parts);
    const { address, ports } = parts;
    return createKubeClient({
      netnsPath: machine?.path,
      address,
      port: ports.api,
      token: typeof account === "object" ? account.token : requireToken(parts, account),
      ca: cert,
    });
  };
}

async function requirePair(parts: PlaneParts): Promise<{ cert: string; key: string }> {
  const pair = await findServerPair(parts);
  if (pair === undefined) throw new Error("The API server has written no certificate yet");
  return pair;
}

function serverOf(spawn: () => Promise<Daemon>, ready: (daemon: Daemon) => Promise<void>): Running["server"] {
  let daemon: Daemon | undefined;
  let before = "";
  return {
    get pid() {
      if (daemon === undefined) throw new Error("This server of the control plane is stopped");
      return daemon.pid;
    },
    output: () => `${before}${daemon?.output() ?? ""}`,
    start: async () => {
      if (daemon !== undefined) return;
      daemon = await spawn();
      await ready(daemon);
    },
    stop: async () => {
      const ending = daemon;
      daemon = undefined;
      if (ending === undefined) return;
      await ending.kill();
      before += ending.output();
    },
  };
}

async function planeOf(parts: PlaneParts, running: Running): Promise<ControlPlane> {
  const { etcd, server, client, open } = running;
  let copies = 0;
  return {
    parts,
    url: urlOf(parts),
    etcdUrl: etcdUrl(parts),
    kubeconfig: await writeKubeconfig(parts, "kubeconfig"),
    files: { accountKey: accountKey(parts.directory), ca: certificateFile(parts.directory) },
    client,
    server,
    etcd,
    get pids() {
      return [etcd, server].flatMap(findPid);
    },
    output: () => `${etcd.output()}\n${server.output()}`,
    writeKubeconfig: (name, options) => writeKubeconfig(parts, name, options),
    openClient: open,
    pair: () => requirePair(parts),
    snapshot: async () => {
      const copy = join(parts.directory, `copy-${++copies}`);
      // A stopped process leaves the same data in the kernel as a killed one.
      process.kill(etcd.pid, "SIGSTOP");
      try {
        await cp(etcdDirectory(parts), copy, { recursive: true });
      } finally {
        process.kill(etcd.pid, "SIGCONT");
      }
      return copy;
    },
    restore: async (copy, raisedBy = 0, isCompacted = false) => {
      await server.stop();
      await etcd.rewrite(copy);
      const store = openEtcd(etcdUrl(parts));
      for (let version = 0; version < raisedBy; version++) await store.put("/raised", `${version}`);
      store.close();
      if (isCompacted) await compactEtcd(parts);
      await server.start();
    },
    replaceMember: () => etcd.replace(),
    compact: async () => {
      await compactEtcd(parts);
      await server.stop();
      await server.start();
    },
    stop: async () => {
      await running.stop();
      await rm(parts.directory, { recursive: true, force: true });
    },
  };
}

function findPid(server: PlaneServer): number[] {
  return tryOr(() => [server.pid], []);
}

/** By etcd's JSON gateway, of the first member. */
// biome-ignore lint/suspicious/noExplicitAny: callers look into it by name, and a wrong name gives undefined.
async function askEtcd(parts: PlaneParts, path: string, body: object): Promise<any> {
  const answer = await fetch(`${etcdUrl(parts)}/v3/${path}`, { method: "POST", body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`etcd answered POST ${path} with ${answer.status}: ${await answer.text()}`);
  return answer.json();
}

async function compactEtcd(parts: PlaneParts): Promise<void> {
  const { header } = await askEtcd(parts, "kv/range", { key: btoa("/registry/compact") });
  await askEtcd(parts, "kv/compaction", { revision: header.revision, physical: true });
}
