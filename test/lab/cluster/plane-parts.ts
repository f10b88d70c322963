/**
 * Start parameters of the control plane's two servers: ports, command lines, the files that they read, and the files
 * for their clients.
 * Effects: files below the plane's folder.
 */
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { referenceTool } from "../../../scripts/setup/paths.mjs";
import { findPort } from "../free-port.ts";

/** Folder of kube-apiserver and kube-proxy. */
export const kubernetesBin = referenceTool("kubernetes").directory;
/** Services get their addresses from here; given ones must be inside. */
export const SERVICE_CIDRS = { 4: "10.96.0.0/16", 6: "fd00:96::/112" } as const;

/** Versions of Kubernetes: the one of all tests, and the oldest that is promised (set-up target `versions`). */
export type KubernetesVersion = "1.34" | "1.31";

/** An account that the API server knows by a token. */
export interface Account {
  /** `system:node:n1` */
  readonly name: string;
  /** `["system:nodes"]`; those of `system:masters` may do everything. */
  readonly groups: readonly string[];
}

/** Plain JSON: another process may use the plane by it. */
export interface PlaneParts {
  readonly directory: string;
  readonly address: string;
  readonly ports: { readonly etcd: number; readonly peer: number; readonly api: number };
  /** Those of etcd's members but the first. */
  readonly others: readonly PlaneParts["ports"][];
  /** By the account's name. */
  readonly tokens: Readonly<Record<string, string>>;
  readonly accounts: readonly Account[];
  readonly serverArgs: readonly string[];
  /** See ControlPlaneOptions. */
  readonly hasManagers: boolean;
  /** Version of kube-apiserver; etcd is the same for all. */
  readonly kubernetes: KubernetesVersion;
}

const ADMIN: Account = { name: "admin", groups: ["system:masters"] };

/** The parts of a plane in an empty folder. `ports`: undefined for ones that are free on loopback now. */
export async function makeParts(
  directory: string,
  options: Pick<PlaneParts, "address" | "accounts" | "serverArgs" | "hasManagers" | "kubernetes"> & {
    ports: PlaneParts["ports"] | undefined;
    members: number;
  },
): Promise<PlaneParts> {
  const accounts = [ADMIN, ...options.accounts];
  const tokens = Object.fromEntries(accounts.map(({ name }) => [name, randomBytes(16).toString("hex")]));
  const others: PlaneParts["ports"][] = [];
  while (others.length < options.members - 1) others.push(await findPorts());
  return { ...options, directory, accounts, tokens, ports: options.ports ?? (await findPorts()), others };
}

/** The administrator's, or that of an account that the plane was started with. */
export function requireToken({ tokens }: PlaneParts, account = ADMIN.name): string {
  const token = tokens[account];
  if (token === undefined) throw new Error(`The control plane has no account "${account}"`);
  return token;
}

async function findPorts(): Promise<PlaneParts["ports"]> {
  const [etcd, peer, api] = [await findPort(), await findPort(), await findPort()];
  return { etcd, peer, api };
}

export function urlOf({ address, ports }: Pick<PlaneParts, "address" | "ports">): string {
  return `https://${address.includes(":") ? `[${address}]` : address}:${ports.api}`;
}

/** Of each member of etcd, the first one's are the plane's. */
export const membersOf = (parts: PlaneParts): PlaneParts[] =>
  [parts.ports, ...parts.others].map((ports) => ({ ...parts, ports }));

export const etcdDirectory = ({ directory, ports }: PlaneParts): string => join(directory, `etcd-${ports.etcd}`);

/** Returns the URL of that member for clients on its machine. */
export const etcdUrl = ({ ports }: PlaneParts): string => `http://127.0.0.1:${ports.etcd}`;
export const peerUrl = ({ ports }: PlaneParts): string => `http://127.0.0.1:${ports.peer}`;

/** `members`: all of them, itself too. */
export function etcdCommand(parts: PlaneParts, members: readonly PlaneParts[], flags: readonly string[]): string[] {
  const urls = [
    `--name=${parts.ports.etcd}`,
    `--listen-client-urls=${etcdUrl(parts)}`,
    `--advertise-client-urls=${etcdUrl(parts)}`,
    `--listen-peer-urls=${peerUrl(parts)}`,
    `--initial-advertise-peer-urls=${peerUrl(parts)}`,
    `--initial-cluster=${members.map((each) => `${each.ports.etcd}=${peerUrl(each)}`).join()}`,
  ];
  // Nothing here is to survive a power loss.
  const settings = ["--unsafe-no-fsync", "--log-level=warn", `--data-dir=${etcdDirectory(parts)}`];
  return [
    join(referenceTool("etcd").directory, "etcd"),
    ...urls,
    ...settings,
    "--strict-reconfig-check=false",
    ...flags,
  ];
}

const tokenFile = (directory: string): string => join(directory, "tokens.csv");
/** Signs the tokens of service accounts. */
export const accountKey = (directory: string): string => join(directory, "accounts.key");
export const certificateFile = (directory: string): string => join(directory, "certificates", "apiserver.crt");

/** Writes the files that the API server reads at its start. It makes its own certificate, once. */
export async function writeServerFiles({ directory, accounts, tokens }: PlaneParts): Promise<void> {
  const lines = accounts.map(({ name, groups }) => `${tokens[name]},${name},${name},"${groups.join(",")}"\n`);
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  await writeFile(tokenFile(directory), lines.join(""), { mode: 0o600 });
  await writeFile(accountKey(directory), privateKey.export({ type: "sec1", format: "pem" }), { mode: 0o600 });
}

/** The rights of kubelets for their own node and its pods. */
const FOR_NODES = ["--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction"];
/** Pods need service accounts, and no controller creates them. */
const FOR_OBJECTS = ["--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount"];

export function serverCommand(parts: PlaneParts): string[] {
  const { directory, address, ports, serverArgs, hasManagers, kubernetes } = parts;
  const bin = kubernetes === "1.34" ? kubernetesBin : referenceTool(`kubernetes-${kubernetes}`).directory;
  const first = address.includes(":") ? 6 : 4;
  return [
    // Its start and each new kind leave much garbage: without it, a quarter less of the processor for 200 MB more.
    ...["env", "GOGC=400"],
    join(bin, "kube-apiserver"),
    `--etcd-servers=${membersOf(parts).map(etcdUrl).join()}`,
    `--bind-address=${address}`,
    `--advertise-address=${address}`,
    `--secure-port=${ports.api}`,
    `--cert-dir=${join(directory, "certificates")}`,
    `--token-auth-file=${tokenFile(directory)}`,
    "--service-account-issuer=https://kubernetes.default.svc",
    `--service-account-key-file=${accountKey(directory)}`,
    `--service-account-signing-key-file=${accountKey(directory)}`,
    `--service-cluster-ip-range=${SERVICE_CIDRS[first]},${SERVICE_CIDRS[first === 4 ? 6 : 4]}`,
    "--endpoint-reconciler-type=none",
    ...(hasManagers ? FOR_NODES : FOR_OBJECTS),
    ...serverArgs,
  ];
}

/** The API server's certificate with its authority's behind it, and its key. Undefined until both are complete. */
export async function findServerPair(parts: PlaneParts): Promise<{ cert: string; key: string } | undefined> {
  const path = certificateFile(parts.directory);
  const read = (file: string): Promise<string> => readFile(file, "utf8").catch(() => "");
  const [cert, key] = [await read(path), await read(path.replace(/crt$/, "key"))];
  const isWhole = cert.trimEnd().endsWith("-----END CERTIFICATE-----") && key.trimEnd().endsWith("PRIVATE KEY-----");
  return isWhole ? { cert, key } : undefined;
}

export interface KubeconfigOptions {
  /** Default: the administrator. */
  readonly account?: string;
  /** In place of the account's: of a service account. */
  readonly token?: string;
  /** A file with the token in place of the token itself. */
  readonly tokenFile?: string;
  /** Default: the API server's. */
  readonly server?: string;
  /** Believes any certificate: for a client whose clock is before the certificate's first day. */
  readonly isUnverified?: boolean;
}

/** Writes `<name>` into the plane's folder and gives its path. */
export async function writeKubeconfig(parts: PlaneParts, name: string, options: KubeconfigOptions = {}) {
  const path = join(parts.directory, name);
  const { account = ADMIN.name, server = urlOf(parts), isUnverified = false } = options;
  const trust = isUnverified
    ? { "insecure-skip-tls-verify": true }
    : { "certificate-authority": certificateFile(parts.directory) };
  const { token = requireToken(parts, account), tokenFile } = options;
  const config = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "lab",
    contexts: [{ name: "lab", context: { cluster: "lab", user: account } }],
    clusters: [{ name: "lab", cluster: { server, ...trust } }],
    users: [{ name: account, user: tokenFile === undefined ? { token } : { tokenFile } }],
  };
  await writeFile(path, JSON.stringify(config), { mode: 0o600 });
  return path;
}
