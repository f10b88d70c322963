/**
 * Nautobot for the long tests: its packages from PyPI in an environment of their own, and an empty database with its
 * accounts, made once. Each run works on a copy of the database (packages/segments/test/lab/nautobot.ts).
 * A cold set-up costs about ten minutes of one processor, most of them Nautobot's own migrations.
 * Effects: the user's cache, Debian packages (as root); a PostgreSQL and a Redis of its own while it works.
 */
import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findCommand, run, SetupError } from "./command.mjs";
import { NAUTOBOT_DATABASE, nautobotDir, nautobotSource, POSTGRES_PROGRAMS, REDIS_PROGRAM } from "./paths.mjs";

export function nautobotSteps() {
  return [packagesStep(), databaseStep()];
}

const inVenv = (name) => join(nautobotDir(), "venv", "bin", name);

function packagesStep() {
  return {
    name: "Nautobot (minutes, the first time)",
    isCurrent: () => existsSync(inVenv("nautobot-server")),
    run: () => {
      const python = findCommand("python3");
      if (python === undefined) throw new SetupError("Missing", "python3, which runs Nautobot");
      rmSync(nautobotDir(), { recursive: true, force: true });
      mkdirSync(nautobotDir(), { recursive: true });
      const temporary = join(nautobotDir(), "venv");
      try {
        run(python, ["-m", "venv", temporary]);
        const pip = [
          ...["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps"],
          ...["--no-build-isolation", "--require-hashes"],
        ];
        for (const list of ["requirements-build.txt", "requirements.txt"])
          run(join(temporary, "bin", "python"), [...pip, "-r", join(nautobotSource, list)]);
      } catch (error) {
        rmSync(temporary, { recursive: true, force: true });
        throw error;
      }
    },
  };
}

function databaseStep() {
  const archive = join(nautobotDir(), NAUTOBOT_DATABASE);
  return {
    name: "Nautobot's database (minutes, the first time)",
    isCurrent: () => existsSync(archive),
    run: async () => {
      const directory = mkdtempSync(join(tmpdir(), "nautobot-"));
      chmodSync(directory, 0o711);
      try {
        await makeDatabase(directory, archive);
      } finally {
        rmSync(directory, { recursive: true, force: true });
      }
    },
  };
}

/** The command line of a program as the user of Debian's PostgreSQL, which does not run as root. */
const asPostgres = (argv) =>
  process.getuid() === 0 ? ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", ...argv] : argv;

async function makeDatabase(directory, archive) {
  const data = join(directory, "data");
  mkdirSync(data);
  if (process.getuid() === 0) {
    run("chown", ["postgres:", data]);
    run("chown", ["root:postgres", directory]);
    chmodSync(directory, 0o770);
  }
  const call = (...argv) => {
    const [file, ...args] = asPostgres(argv);
    return run(file, args);
  };
  const postgres = (name) => join(POSTGRES_PROGRAMS, name);
  call(postgres("initdb"), "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C.UTF-8", data);
  // Data lost in a crash are made again.
  const options = `-c listen_addresses= -c unix_socket_directories=${directory} -c fsync=off`;
  const pgCtl = (...args) => call(postgres("pg_ctl"), "--pgdata", data, "--wait", "--silent", ...args);
  pgCtl("--log", join(data, "log"), "--options", options, "start");
  const redisOptions = ["--port", "0", "--unixsocket", join(directory, "redis.sock"), "--save", "", "--dir", directory];
  const redis = spawn(REDIS_PROGRAM, redisOptions, { argv0: "redis-server", stdio: "ignore" });
  try {
    call(postgres("createdb"), "--host", directory, "--username=postgres", "nautobot");
    const env = { NAUTOBOT_ROOT: directory, NAUTOBOT_STATIC_ROOT: join(nautobotDir(), "static") };
    const server = (...args) =>
      run(inVenv("nautobot-server"), ["--config", join(nautobotSource, "nautobot_config.py"), ...args], { env });
    server("migrate", "--no-input");
    server("collectstatic", "--no-input");
    const accounts = server(
      "shell",
      "--command",
      `exec(open(${JSON.stringify(join(nautobotSource, "accounts.py"))}).read())`,
    );
    writeFileSync(join(nautobotDir(), "tokens.json"), accounts.trim().split("\n").at(-1));
  } finally {
    redis.kill();
    pgCtl("--mode", "fast", "stop");
  }
  run("tar", ["--create", "--gzip", "--file", `${archive}.tmp`, "--directory", directory, "data"]);
  renameSync(`${archive}.tmp`, archive);
}
