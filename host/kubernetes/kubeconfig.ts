/**
 * Loads a kubeconfig, or a pod's service account, into the client library. This file has only the functions that the
 * library lacks: errors that name file and field and never show secrets, files that are merged as kubectl merges them,
 * and `tokenFile`.
 */
import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { KubeConfig } from "@kubernetes/client-node/dist/config.js";
import { newClusters, newUsers } from "@kubernetes/client-node/dist/config_types.js";
import * as z from "zod";
import { ConfigError, decodeConfig } from "../config/config-error.ts";
import { parseYaml } from "../config/yaml.ts";
import { describeValue, errnoOf, messageOf } from "../lib/describe.ts";
import { readText } from "../lib/regular-file.ts";
import { orAbsent } from "../lib/schema.ts";

/** The loaded value. */
export interface Origin {
  /** `file "/etc/berth/kubeconfig"`, for errors. */
  readonly source: string;
  /** Files whose change means new credentials. `field` is `users[0].user.tokenFile`; "" for a kubeconfig itself. */
  readonly files: readonly { readonly field: string; readonly path: string }[];
}

const text = orAbsent(z.string()).transform((value) => (value === "" ? undefined : value));
/** Text that errors must not show. */
const secret = orAbsent(
  z.unknown().transform((value, context) => {
    if (typeof value === "string") return value === "" ? undefined : value;
    const got = `a value of type ${Array.isArray(value) ? "list" : typeof value}`;
    context.addIssue({ code: "custom", message: "text", params: { got } });
    return z.NEVER;
  }),
);
const execSchema = z.looseObject({
  apiVersion: text,
  command: z.string().min(1, "the name of a program"),
  args: orAbsent(z.array(z.string())),
  env: orAbsent(z.array(z.object({ name: z.string(), value: z.string() }))),
});
const named = <K extends string, S extends z.ZodType>(key: K, schema: S) =>
  orAbsent(z.array(z.looseObject({ name: z.string(), [key]: schema } as { name: z.ZodString } & Record<K, S>)));

const isServer = (url: string): boolean => /^https?:\/\/[^/]/.test(url) && URL.canParse(url);

/** Returns the schema of a file in this directory, to which its paths are relative. */
function schemaIn(directory: string) {
  const path = text.transform((value) => (value === undefined ? undefined : resolve(directory, value)));
  // A name without a slash is looked for in PATH.
  const plugin = execSchema.transform(({ command, ...rest }) => {
    return { ...rest, command: command.includes("/") ? resolve(directory, command) : command };
  });
  const cluster = z.looseObject({
    server: z.string().refine(isServer, "a URL such as https://10.96.0.1:443 or https://[fd00::1]:443"),
    "certificate-authority": path,
    "certificate-authority-data": secret,
    "insecure-skip-tls-verify": orAbsent(z.boolean()),
    "tls-server-name": text,
    "proxy-url": text,
  });
  const user = z.looseObject({
    ...{ token: secret, tokenFile: path, username: text, password: secret, as: text },
    ...{ "client-certificate": path, "client-certificate-data": secret, "client-key": path, "client-key-data": secret },
    exec: orAbsent(plugin),
    "auth-provider": orAbsent(z.looseObject({ name: z.string() })),
  });
  return z.looseObject({
    "current-context": text,
    contexts: named("context", z.looseObject({ cluster: z.string(), user: text, namespace: text })),
    clusters: named("cluster", cluster),
    users: named("user", orAbsent(user)),
  });
}

type Content = z.output<ReturnType<typeof schemaIn>>;
type ClusterEntry = NonNullable<Content["clusters"]>[number]["cluster"];
type UserEntry = NonNullable<NonNullable<Content["users"]>[number]["user"]>;

/** A field of a source, for errors. */
interface Place {
  readonly source: string;
  /** `clusters[0].cluster` */
  readonly field: string;
}

/**
 * Several files are merged as kubectl merges those of the variable KUBECONFIG: the first one with a name decides, and
 * missing files do not matter. `chosen` is a context in place of the current one. Throws ConfigError for an unreadable
 * file, a wrong field and an unknown name.
 */
export async function loadKubeconfig(
  library: KubeConfig,
  path: string | readonly string[],
  chosen?: string,
): Promise<Origin> {
  const paths = typeof path === "string" ? [path] : path;
  const { source, all, field, names } = findContext(paths, chosen);
  const at = (what: string) => ({ source, field: `${field}.${what}` });
  const cluster = find("cluster", names.cluster, { at: at("cluster"), entries: all(({ clusters }) => clusters) });
  checkCluster(cluster.entry.cluster, cluster.at);
  const entries = all(({ users }) => users);
  const user = names.user === undefined ? undefined : find("user", names.user, { at: at("user"), entries });
  if (user?.entry.user !== undefined) checkUser(user.entry.user, user.at);
  loadInto(library, cluster.entry.cluster, user?.entry.user);
  const files = filesOf(library, `${cluster.at.field}.certificate-authority`, `${user?.at.field ?? ""}.`);
  return { source, files: [...paths.map((each) => ({ field: "", path: resolve(each) })), ...files] };
}

/** Returns the parts of the context, and its place. Throws ConfigError, as {@link loadKubeconfig}. */
export function findContext(paths: readonly string[], chosen: string | undefined) {
  const source = `file ${paths.map(describeValue).join(", ")}`;
  const found = paths.filter((each) => existsSync(each));
  // With none the error names the first.
  const contents = (found.length > 0 ? found : paths.slice(0, 1)).map(readContent);
  const all = <T>(of: (content: Content) => readonly T[] | undefined) => contents.flatMap((each) => of(each) ?? []);
  const current = chosen ?? contents.map((content) => content["current-context"]).find((name) => name !== undefined);
  const top = { source, field: chosen === undefined ? "current-context" : "--context" };
  const { at, entry } = find("context", current ?? "", { at: top, entries: all(({ contexts }) => contexts) });
  return { source, all, field: at.field, names: entry.context };
}

/** Throws ConfigError, in which `source` names the file, if it cannot be read. */
export function readNamed(path: string, source: string, wanted: string): string {
  try {
    return readText(path);
  } catch (error) {
    const got = `a file that cannot be read (${errnoOf(error) ?? messageOf(error)})`;
    throw new ConfigError(source, [{ path: "", got, wanted }]);
  }
}

function readContent(path: string): Content {
  const source = `file ${describeValue(path)}`;
  const yaml = readNamed(path, source, "a kubeconfig");
  const [first] = parseYaml(yaml, source);
  return decodeConfig(schemaIn(dirname(resolve(path))), first?.value, source);
}

/** Returns the entry with the name that `at` has, and its own place. */
function find<T extends { readonly name: string }>(
  what: "context" | "cluster" | "user",
  name: string,
  { at: { source, field }, entries }: { readonly at: Place; readonly entries: readonly T[] },
): { readonly entry: T; readonly at: Place } {
  const index = entries.findIndex((entry) => entry.name === name);
  const entry = entries[index];
  if (entry !== undefined) return { entry, at: { source, field: `${what}s[${index}].${what}` } };
  const names = entries.map((one) => describeValue(one.name)).join(", ");
  const wanted = names === "" ? `a ${what}, and the file has none` : `the name of a ${what}: ${names}`;
  throw new ConfigError(source, [{ path: field, got: describeValue(name), wanted }]);
}

function checkCluster(entry: ClusterEntry, at: Place): void {
  const { server, "proxy-url": proxy, "insecure-skip-tls-verify": isInsecure } = entry;
  if (proxy !== undefined)
    refuse(at, "proxy-url", [describeValue(proxy), "no proxy: Berth calls the API server directly"]);
  if (server.startsWith("http:") && isInsecure !== true)
    refuse(at, "server", [describeValue(server), "https://, or insecure-skip-tls-verify: true"]);
}

function checkUser(entry: UserEntry, at: Place): void {
  const provider = entry["auth-provider"];
  if (provider !== undefined)
    refuse(at, "auth-provider", [describeValue(provider.name), "token, tokenFile, exec or a certificate"]);
  // The library sends none of these, and the API server would grant other rights.
  for (const key of ["as-groups", "as-uid", "as-user-extra"])
    if (entry[key] != null) refuse(at, key, [describeValue(entry[key]), '"as" alone']);
  // The server does not say that a client certificate lacks its key, or the other way round.
  const certificate = entry["client-certificate"] ?? entry["client-certificate-data"];
  const key = entry["client-key"] ?? entry["client-key-data"];
  if ((certificate === undefined) !== (key === undefined))
    refuse(at, key === undefined ? "client-key" : "client-certificate", ["nothing", "what belongs to the other"]);
}

function refuse({ source, field }: Place, name: string, [got, wanted]: readonly [string, string]): never {
  throw new ConfigError(source, [{ path: `${field}.${name}`, got, wanted }]);
}

/** The library has another name for a `tokenFile`, which is read again, and does not tell plugins what is wanted. */
function loadInto(library: KubeConfig, cluster: ClusterEntry, user: UserEntry | undefined): void {
  const { tokenFile, exec, ...others } = user ?? {};
  const wanted = { kind: "ExecCredential", apiVersion: exec?.apiVersion, spec: { interactive: false } };
  const env = [...(exec?.env ?? []), { name: "KUBERNETES_EXEC_INFO", value: JSON.stringify(wanted) }];
  const rest = exec === undefined ? others : { ...others, exec: { ...exec, env } };
  const read = { ...rest, token: undefined, "auth-provider": { name: "tokenFile", config: { tokenFile } } };
  const [newCluster] = newClusters([{ name: "cluster", cluster }]);
  const [newUser] = newUsers([{ name: "user", user: tokenFile === undefined ? rest : read }]);
  if (newCluster !== undefined && newUser !== undefined) library.loadFromClusterAndUser(newCluster, newUser);
}

/** The files that the library reads. */
function filesOf(library: KubeConfig, authority: string, user: string): Origin["files"] {
  const { certFile, keyFile, authProvider } = library.getCurrentUser() ?? {};
  const files = [
    { field: authority, path: library.getCurrentCluster()?.caFile },
    { field: `${user}client-certificate`, path: certFile },
    { field: `${user}client-key`, path: keyFile },
    { field: `${user}tokenFile`, path: authProvider?.config?.tokenFile },
  ];
  return files.flatMap(({ field, path }) => (typeof path === "string" ? [{ field, path }] : []));
}

/** As the kubelet presents it to the container; `root` is the root of its folder. */
export function loadServiceAccount(library: KubeConfig, root: string): Origin {
  const source = "service account of the pod";
  const wanted = "an address: outside a cluster name a kubeconfig";
  for (const name of ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"])
    if ((process.env[name] ?? "") === "") throw new ConfigError(source, [{ path: name, got: "nothing", wanted }]);
  library.loadFromCluster(root);
  // The library takes ports such as 8080 for plain HTTP, which would show the token.
  const encrypted = (server: string) => server.replace(/^http:/, "https:");
  library.clusters = library.clusters.map((cluster) => ({ ...cluster, server: encrypted(cluster.server) }));
  return { source, files: filesOf(library, "ca.crt", "") };
}
