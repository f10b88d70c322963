/**
 * The floors: an empty static executable, and the shim in front of an agent that does nothing. A figure means something
 * only beside the floor of the same run.
 * Effects: starts the echo agent, which serves a socket in the benchmark's folder.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../scripts/setup/paths.mjs";
import { berthBin } from "../../test/lab/cnitool.ts";
import { until } from "../../test/lab/waiting.ts";
import { type Contestant, callEnvironment, type Place, pluginCalls } from "./contestant.ts";

const bench = (name: string): string => join(root, "dist", "bench", name);

export function openEmptyProgram(place: Place): Contestant {
  const subject = { path: bench("empty"), stdinFile: "/dev/null", env: callEnvironment("ADD", place) };
  return { name: "empty static program", add: subject, del: subject, daemonPid: undefined, close: async () => {} };
}

/** The shim with a trivial agent: the floor of any agent. */
export async function openEchoAgent(place: Place, stdinFile: string): Promise<Contestant> {
  const socket = join(place.directory, "echo.sock");
  const child = spawn(bench("echo-agent"), [socket], { stdio: ["ignore", "ignore", "inherit"] });
  await until(`echo-agent serves ${socket}`, () => existsSync(socket));
  return {
    name: "shim + trivial agent in C",
    ...pluginCalls(join(berthBin, "berth"), stdinFile, place, { BERTH_SOCKET: socket, BERTH_SPOOL: place.directory }),
    daemonPid: child.pid,
    close: async () => {
      const ended = once(child, "exit");
      if (child.kill("SIGKILL")) await ended;
    },
  };
}
