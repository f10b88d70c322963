/**
 * A real Nautobot on loopback, with a PostgreSQL and a Redis of its own that only it reaches: versions of
 * scripts/reference/nautobot, made by `npm run setup nautobot`.
 *
 *   await using nautobot = await startNautobot();
 *   nautobot.url;                 // http://127.0.0.1:40123
 *   nautobot.tokens.admin;        // a superuser's; tokens.berth has the documented rights
 *   await nautobot.call("POST", "/api/ipam/prefixes/", { prefix: "10.6.0.0/16", status: "Active" });
 *
 * Effects: children, a port, a folder below the system's temporary folder with a copy of the cache's database.
 */
import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  NAUTOBOT_DATABASE,
  nautobotDir,
  nautobotSource,
  POSTGRES_PROGRAMS,
  REDIS_PROGRAM,
} from "../../../../scripts/setup/paths.mjs";
import { requireCommand } from "../../../../test/lab/command.ts";
import { type Daemon, startDaemon } from "../../../../test/lab/daemon.ts";
import { findPort } from "../../../../test/lab/free-port.ts";

const READY_MS = 180_000;

export interface Nautobot extends AsyncDisposable {
  readonly url: string;
  /** Tokens of a superuser, and of an account with the documented rights. */
  readonly tokens: { readonly admin: string; readonly berth: string };
  /** For a browser: a superuser. */
  readonly login: { readonly user: string; readonly password: string };
  /** Calls the API with the superuser's token. Throws with the answer unless it is 2xx. */
  call<T = unknown>(method: string, path: string, body?: unknown): Promise<T>;
  /** The output of its web server. */
  log(): string;
}

const isRoot = process.getuid?.() === 0;

/** PostgreSQL refuses to run as root. With another user a process forgets that it should end with its parent. */
const asPostgres = (argv: readonly string[]): string[] => {
  const user = ["--reuid=postgres", "--regid=postgres", "--clear-groups"];
  return isRoot ? ["setpriv", ...user, "--pdeathsig", "KILL", ...argv] : [...argv];
};

export async function startNautobot({ workers = 2 }: { readonly workers?: number } = {}): Promise<Nautobot> {
  const directory = mkdtempSync(join(tmpdir(), "berth-nautobot-"));
  const daemons: Daemon[] = [];
  const stop = async (): Promise<void> => {
    for (const daemon of daemons.reverse()) await daemon.kill();
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    return await start(directory, daemons, { workers, stop });
  } catch (error) {
    await stop();
    throw error;
  }
}

async function start(
  directory: string,
  daemons: Daemon[],
  { workers, stop }: { readonly workers: number; readonly stop: () => Promise<void> },
): Promise<Nautobot> {
  const begin = async (name: string, argv: readonly string[]): Promise<Daemon> => {
    const daemon = await startDaemon(name, argv);
    daemons.push(daemon);
    return daemon;
  };
  await startStores(directory, begin);
  const url = `http://127.0.0.1:${await findPort()}`;
  const server = await begin("Nautobot", [
    "env",
    `NAUTOBOT_ROOT=${directory}`,
    `NAUTOBOT_STATIC_ROOT=${join(nautobotDir(), "static")}`,
    join(nautobotDir(), "venv", "bin", "nautobot-server"),
    `--config=${join(nautobotSource, "nautobot_config.py")}`,
    "start",
    `--http=${new URL(url).host}`,
    `--processes=${workers}`,
    "--threads=1",
    // Its default is 10 s, which a bulk call may need here.
    "--http-timeout=300",
    "--buffer-size=65535",
    "--die-on-term",
    "--master",
    "--no-orphans",
    "--need-app",
    "--disable-logging",
    `--static-map=/static=${join(nautobotDir(), "static")}`,
  ]);
  const tokens = JSON.parse(readFileSync(join(nautobotDir(), "tokens.json"), "utf8")) as Nautobot["tokens"];
  const call = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Token ${tokens.admin}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path} failed with ${answer.status}: ${text.slice(0, 2_000)}`);
    return (text === "" ? undefined : JSON.parse(text)) as T;
  };
  await server.until(async () => (await call("GET", "/api/status/")) !== undefined, READY_MS);
  const login = { user: "admin", password: "admin" };
  return { url, tokens, login, call, log: () => server.output(), [Symbol.asyncDispose]: stop };
}

/** PostgreSQL and Redis on unix sockets in the folder, unsafe against crashes: the data end with the folder. */
async function startStores(
  directory: string,
  begin: (name: string, argv: readonly string[]) => Promise<Daemon>,
): Promise<void> {
  const archive = join(nautobotDir(), NAUTOBOT_DATABASE);
  await requireCommand(["tar", "--extract", "--file", archive, "--directory", directory], { timeoutMs: 120_000 });
  chmodSync(directory, 0o770);
  if (isRoot) {
    await requireCommand(["chown", "root:postgres", directory]);
    await requireCommand(["chown", "--recursive", "postgres:", join(directory, "data")]);
  }
  const settings = ["listen_addresses=", `unix_socket_directories=${directory}`, "fsync=off", "full_page_writes=off"];
  const postgres = [join(POSTGRES_PROGRAMS, "postgres"), "-D", join(directory, "data")];
  const database = await begin("PostgreSQL", asPostgres([...postgres, ...settings.flatMap((each) => ["-c", each])]));
  await database.until(async () => /ready to accept connections/.test(database.output()), READY_MS);
  const socket = join(directory, "redis.sock");
  const options = ["--port", "0", "--unixsocket", socket, "--save", "", "--dir", directory];
  const redis = await begin("Redis", ["bash", "-c", `exec -a redis-server ${REDIS_PROGRAM} "$@"`, "redis", ...options]);
  await redis.until(async () => /ready to accept connections/i.test(redis.output()), READY_MS);
}
