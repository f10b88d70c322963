/**
 * Reads a kubeconfig: the cluster and user of its current context in the client library's terms, and the files that they name. Errors name file and
 * field, and never show secrets.
 */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { Cluster, User } from "@kubernetes/client-node/dist/config_types.js";
import * as z from "zod";
import { ConfigError, decodeConfig } from "../config/config-error.ts";
import { parseYaml } from "../config/yaml.ts";
import { describeValue, errnoOf, messageOf } from "../lib/describe.ts";
import { orAbsent } from "../lib/schema.ts";

/** Parameters of a connection, with absolute paths. */
export interface Connection {
  /** `file "/etc/berth/kubeconfig"`, for errors. */
  readonly source: string;
  readonly cluster: Cluster;
  readonly user: User;
  /** Files whose change means new credentials. */
  readonly files: readonly NamedFile[];
}

interface NamedFile {
  /** `users[0].user.tokenFile`; "" is the kubeconfig itself. */
  readonly field: string;
  readonly path: string;
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

const clusterSchema = z.looseObject({
  server: z.string().regex(/^https?:\/\/[^/]/, "a URL that begins with https:// or http://"),
  "certificate-authority": text,
  "certificate-authority-data": secret,
  "insecure-skip-tls-verify": orAbsent(z.boolean()),
  "tls-server-name": text,
  "proxy-url": text,
});
const execSchema = z.looseObject({
  command: z.string().min(1, "the name of a program"),
  args: orAbsent(z.array(z.string())),
  env: orAbsent(z.array(z.object({ name: z.string(), value: z.string() }))),
});
const userSchema = z.looseObject({
  token: secret,
  tokenFile: text,
  username: text,
  password: secret,
  as: text,
  "client-certificate": text,
  "client-certificate-data": secret,
  "client-key": text,
  "client-key-data": secret,
  exec: orAbsent(execSchema),
  "auth-provider": orAbsent(z.looseObject({ name: z.string() })),
});
const named = <K extends string, S extends z.ZodType>(key: K, schema: S) =>
  z.array(z.looseObject({ name: z.string(), [key]: schema } as { name: z.ZodString } & Record<K, S>));
const schema = z.looseObject({
  "current-context": z.string().min(1, "the name of a context"),
  contexts: named("context", z.looseObject({ cluster: z.string(), user: text })),
  clusters: named("cluster", clusterSchema),
  users: orAbsent(named("user", orAbsent(userSchema))),
});

/**
 * Several files are merged as kubectl merges those of the variable KUBECONFIG: the first one that has a name decides, and missing files do not matter.
 * `chosen` is a context in place of the current one. Throws ConfigError for a file that cannot be read, a field that is wrong and a name that is not there.
 */
export async function readKubeconfig(path: string | readonly string[], chosen?: string): Promise<Connection> {
  const files = typeof path === "string" ? [path] : path;
  const source = `file ${files.map(describeValue).join(", ")}`;
  const content = files.length === 1 ? await readYaml(files[0] ?? "", source) : await mergeFiles(files);
  const isObject = typeof content === "object" && content !== null && !Array.isArray(content);
  const value = decodeConfig(
    schema,
    chosen === undefined || !isObject ? content : { ...content, "current-context": chosen },
    source,
  );
  const directory = dirname(files[0] ?? "");
  const absolute = (file: string | undefined) => (file === undefined ? undefined : resolve(directory, file));

  const context = find(value.contexts, value["current-context"], { source, field: "current-context", what: "context" });
  const contextField = `contexts[${context.index}].context`;
  const cluster = find(value.clusters, context.entry.context.cluster, {
    source,
    field: `${contextField}.cluster`,
    what: "cluster",
  });
  const of = cluster.entry.cluster;
  const clusterField = `clusters[${cluster.index}].cluster`;
  refuse(source, `${clusterField}.proxy-url`, of["proxy-url"], "no proxy: Berth calls the API server directly");
  if (of.server.startsWith("http:") && of["insecure-skip-tls-verify"] !== true)
    refuse(source, `${clusterField}.server`, of.server, "https://, or insecure-skip-tls-verify: true");

  const userName = context.entry.context.user;
  const user =
    userName === undefined
      ? undefined
      : find(value.users ?? [], userName, { source, field: `${contextField}.user`, what: "user" });
  const by = user?.entry.user;
  const userField = `users[${user?.index ?? 0}].user`;
  if (by?.["auth-provider"] !== undefined)
    refuse(source, `${userField}.auth-provider`, by["auth-provider"].name, "token, tokenFile, exec or a certificate");
  requireKey(source, userField, by ?? {});

  const paths = [
    ...files.map((file) => ({ field: "", path: resolve(file) })),
    { field: `${clusterField}.certificate-authority`, path: absolute(of["certificate-authority"]) },
    { field: `${userField}.client-certificate`, path: absolute(by?.["client-certificate"]) },
    { field: `${userField}.client-key`, path: absolute(by?.["client-key"]) },
    { field: `${userField}.tokenFile`, path: absolute(by?.tokenFile) },
  ];
  const tokenFile = absolute(by?.tokenFile);
  return {
    source,
    cluster: dropUndefined({
      name: cluster.entry.name,
      server: of.server.replace(/\/+$/, ""),
      skipTLSVerify: of["insecure-skip-tls-verify"] === true,
      caData: of["certificate-authority-data"],
      caFile: absolute(of["certificate-authority"]),
      tlsServerName: of["tls-server-name"],
    }),
    user: dropUndefined({
      name: user?.entry.name ?? "",
      token: tokenFile === undefined ? by?.token : undefined,
      username: by?.username,
      password: by?.password,
      impersonateUser: by?.as,
      certData: by?.["client-certificate-data"],
      certFile: absolute(by?.["client-certificate"]),
      keyData: by?.["client-key-data"],
      keyFile: absolute(by?.["client-key"]),
      exec: by?.exec,
      // The library's name for a token that is read from a file, and read again.
      authProvider: tokenFile === undefined ? undefined : { name: "tokenFile", config: { tokenFile } },
    }),
    files: paths.flatMap(({ field, path }) => (path === undefined ? [] : [{ field, path }])),
  };
}

async function readYaml(path: string, source: string): Promise<unknown> {
  const content = await readFile(path, "utf8").catch((error: unknown) => {
    const got = `a file that cannot be read (${errnoOf(error) ?? messageOf(error)})`;
    throw new ConfigError(source, [{ path: "", got, wanted: "a kubeconfig" }]);
  });
  const [first] = parseYaml(content, source);
  return first?.value;
}

/** Keys of clusters and users that are paths, relative to their own file. */
const PATHS = ["certificate-authority", "client-certificate", "client-key", "tokenFile"];

const mergeable = z.looseObject({ "current-context": text });

/** Rejects with ConfigError if none of the files exists. */
async function mergeFiles(files: readonly string[]): Promise<unknown> {
  const found = files.filter((file) => existsSync(file));
  // With none the error names the first.
  const contents = await Promise.all(
    (found.length > 0 ? found : files.slice(0, 1)).map(async (file) => {
      const source = `file ${describeValue(file)}`;
      return absolutePaths(decodeConfig(mergeable, await readYaml(file, source), source), dirname(resolve(file)));
    }),
  );
  const all = (key: string) => contents.flatMap((content) => (Array.isArray(content[key]) ? content[key] : []));
  return {
    "current-context": contents.map((content) => content["current-context"]).find((name) => name !== undefined),
    contexts: all("contexts"),
    clusters: all("clusters"),
    users: all("users"),
  };
}

/** Entries with the wrong form stay: the schema reports them. */
function absolutePaths<T>(value: T, directory: string): T {
  if (Array.isArray(value)) return value.map((entry) => absolutePaths(entry, directory)) as T;
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, entry]) => {
    const isPath = PATHS.includes(key) && typeof entry === "string" && entry !== "";
    return [key, isPath ? resolve(directory, entry) : absolutePaths(entry, directory)];
  });
  return Object.fromEntries(entries) as T;
}

interface Reference {
  readonly source: string;
  /** The field that has the name. */
  readonly field: string;
  readonly what: "context" | "cluster" | "user";
}

function find<T extends { readonly name: string }>(entries: readonly T[], name: string, reference: Reference) {
  const index = entries.findIndex((entry) => entry.name === name);
  const entry = entries[index];
  if (entry !== undefined) return { entry, index };
  const names = entries.map((one) => describeValue(one.name)).join(", ");
  const { source, field, what } = reference;
  const wanted = names === "" ? `a ${what}, and the file has none` : `the name of a ${what}: ${names}`;
  throw new ConfigError(source, [{ path: field, got: describeValue(name), wanted }]);
}

function refuse(source: string, field: string, found: string | undefined, wanted: string): void {
  if (found !== undefined) throw new ConfigError(source, [{ path: field, got: describeValue(found), wanted }]);
}

/** The server does not say that a client certificate lacks its key, or the other way round. */
function requireKey(source: string, field: string, user: Readonly<Record<string, unknown>>): void {
  const has = (name: string) => user[name] !== undefined || user[`${name}-data`] !== undefined;
  if (has("client-certificate") === has("client-key")) return;
  const missing = has("client-key") ? "client-certificate" : "client-key";
  throw new ConfigError(source, [{ path: `${field}.${missing}`, got: "nothing", wanted: "what belongs to the other" }]);
}

type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> };

/** The library has optional fields that may not be undefined. */
function dropUndefined<T extends object>(value: T): Defined<T> {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as Defined<T>;
}
