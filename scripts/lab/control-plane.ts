/**
 * A real control plane: etcd and kube-apiserver, in a machine of the test network or on this machine's loopback.
 *
 *   const plane = await startControlPlane({ machine: await fabric.addHost("control", 5), address: "10.60.0.5" });
 *   await plane.client.create("/api/v1/nodes", { … });
 *   await plane.stop();
 *
 * There is no controller manager: nobody makes endpoints, service accounts, or pods out of deployments. The one user is an administrator.
 * The executables come from `npm run setup`.
 * Effects: two children; a folder below the system's temporary folder, which `stop` removes.
 */
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { referenceTool } from "../setup/paths.mjs";
import { type Daemon, startDaemon } from "./daemon.ts";
import { createKubeClient, type KubeClient } from "./kube-client.ts";
import type { Netns } from "./netns.ts";

/** Where etcd, kube-apiserver and kube-proxy are. */
export const kubernetesBin = referenceTool("kubernetes").directory;
/** Services get their addresses from here; given ones must be inside. */
export const SERVICE_CIDRS = { 4: "10.96.0.0/16", 6: "fd00:96::/112" } as const;

export interface ControlPlaneOptions {
  /** Where it runs; default: on loopback of this process's own namespace, with ports that are free. */
  readonly machine?: Netns;
  /** Of that machine, where the API server is reached. */
  readonly address?: string;
  /** Default: 60,000. */
  readonly readyMs?: number;
}

export interface ControlPlane {
  /** `https://10.60.0.5:6443` */
  readonly url: string;
  /** Of etcd's client port, where only that machine reaches it: `http://127.0.0.1:2379`; its JSON gateway is below /v3. */
  readonly etcdUrl: string;
  /** A file for programs that run where the address can be reached. */
  readonly kubeconfig: string;
  readonly client: KubeClient;
  /** Process IDs of etcd and of the API server. */
  readonly pids: readonly number[];
  /** What both wrote. */
  output(): string;
  stop(): Promise<void>;
}

/** Resolves when the API server says that it is ready. Rejects with the end of their output, and leaves nothing. */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const { machine, address = "127.0.0.1", readyMs = 60_000 } = options;
  const directory = await mkdtemp(join(tmpdir(), "berth-plane-"));
  const daemons: Daemon[] = [];
  const stopAll = async (): Promise<void> => {
    for (const daemon of daemons.reverse()) await daemon.kill();
    await rm(directory, { recursive: true, force: true });
  };
  try {
    const ports = machine === undefined ? await findPorts() : { etcd: 2379, peer: 2380, api: 6443 };
    const place: PlaneParts = { directory, address, ports, token: randomBytes(16).toString("hex") };
    daemons.push(await startDaemon("etcd", etcdCommand(place), machine));
    const server = await startDaemon("kube-apiserver", await serverCommand(place), machine);
    daemons.push(server);
    const client = await readyClient(place, server, { netnsPath: machine?.path, readyMs });
    return {
      url: `https://${formatHost(address)}:${ports.api}`,
      etcdUrl: etcdUrl(place),
      kubeconfig: await writeKubeconfig(place),
      client,
      pids: daemons.map(({ pid }) => pid),
      output: () => daemons.map((daemon) => daemon.output()).join("\n"),
      stop: async () => {
        client.close();
        await stopAll();
      },
    };
  } catch (error) {
    await stopAll();
    throw error;
  }
}

interface PlaneParts {
  readonly directory: string;
  readonly address: string;
  readonly ports: { readonly etcd: number; readonly peer: number; readonly api: number };
  readonly token: string;
}

/** Ports that were free a moment ago. */
async function findPorts(): Promise<PlaneParts["ports"]> {
  const servers = [createServer(), createServer(), createServer()];
  const ports = await Promise.all(
    servers.map(async (server) => {
      await once(server.listen(0, "127.0.0.1"), "listening");
      const bound = server.address();
      return typeof bound === "object" && bound !== null ? bound.port : 0;
    }),
  );
  for (const server of servers) await once(server.close(), "close");
  const [etcd = 0, peer = 0, api = 0] = ports;
  return { etcd, peer, api };
}

function formatHost(address: string): string {
  return address.includes(":") ? `[${address}]` : address;
}

const etcdUrl = ({ ports }: Pick<PlaneParts, "ports">): string => `http://127.0.0.1:${ports.etcd}`;

function etcdCommand({ directory, ports }: PlaneParts): string[] {
  const client = etcdUrl({ ports });
  const peer = `http://127.0.0.1:${ports.peer}`;
  const urls = [
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
  ];
  // Nothing here is to survive a power loss.
  const settings = ["--unsafe-no-fsync", "--log-level=warn", `--data-dir=${join(directory, "etcd")}`];
  return [join(kubernetesBin, "etcd"), ...urls, ...settings];
}

/** Writes what the API server reads at its start. It makes its own certificate. */
async function serverCommand({ directory, address, ports, token }: PlaneParts): Promise<string[]> {
  const tokens = join(directory, "tokens.csv");
  const accountKey = join(directory, "accounts.key");
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  await writeFile(tokens, `${token},admin,admin,"system:masters"\n`, { mode: 0o600 });
  await writeFile(accountKey, privateKey.export({ type: "sec1", format: "pem" }), { mode: 0o600 });
  const first = address.includes(":") ? 6 : 4;
  return [
    join(kubernetesBin, "kube-apiserver"),
    `--etcd-servers=${etcdUrl({ ports })}`,
    `--bind-address=${address}`,
    `--advertise-address=${address}`,
    `--secure-port=${ports.api}`,
    `--cert-dir=${join(directory, "certificates")}`,
    `--token-auth-file=${tokens}`,
    "--authorization-mode=RBAC",
    "--service-account-issuer=https://kubernetes.default.svc",
    `--service-account-key-file=${accountKey}`,
    `--service-account-signing-key-file=${accountKey}`,
    `--service-cluster-ip-range=${SERVICE_CIDRS[first]},${SERVICE_CIDRS[first === 4 ? 6 : 4]}`,
    "--endpoint-reconciler-type=none",
    // Pods need accounts, and nobody makes them here.
    "--disable-admission-plugins=ServiceAccount",
  ];
}

const certificateOf = (directory: string): string => join(directory, "certificates", "apiserver.crt");

/** A client whose /readyz is answered with "ok". The API server gives up by itself when etcd does. */
async function readyClient(
  { directory, address, ports, token }: PlaneParts,
  server: Daemon,
  { netnsPath, readyMs }: { netnsPath: string | undefined; readyMs: number },
): Promise<KubeClient> {
  // Its own authority signed it, and is the second certificate of the file.
  const certificate = () => readFile(certificateOf(directory), "utf8");
  const isThere = async () => (await certificate()).trimEnd().endsWith("-----END CERTIFICATE-----");
  await server.until(isThere, readyMs);
  const client = createKubeClient({ netnsPath, address, port: ports.api, token, ca: await certificate() });
  try {
    await server.until(async () => (await client.text("/readyz")) === "ok", readyMs);
    return client;
  } catch (error) {
    client.close();
    throw error;
  }
}

async function writeKubeconfig({ directory, address, ports, token }: PlaneParts): Promise<string> {
  const path = join(directory, "kubeconfig");
  const server = `https://${formatHost(address)}:${ports.api}`;
  const cluster = { server, "certificate-authority": certificateOf(directory) };
  const config = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "lab",
    contexts: [{ name: "lab", context: { cluster: "lab", user: "admin" } }],
    clusters: [{ name: "lab", cluster }],
    users: [{ name: "admin", user: { token } }],
  };
  await writeFile(path, JSON.stringify(config), { mode: 0o600 });
  return path;
}
