/**
 * The built controller as a process of its own.
 *
 *   const controller = await startControllerProcess({ kubeconfig: plane.kubeconfig, name: "a", args: ["--lease-duration", "3"] });
 *   (await controller.status()).isLeading
 *   await controller.kill();                       // SIGKILL: the lease runs out
 *   expect(await controller.stop()).toBe(0);       // SIGTERM: the lease is given back
 *
 * Effects: a child, which ends with this process at the latest; a port on loopback.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { ControllerStatus } from "../../../host/controller/controller-process.ts";
import { root } from "../../../scripts/setup/paths.mjs";
import { controllerOptions } from "../service-environment.ts";
import { pauseSince } from "../waiting.ts";

export interface ControllerProcessOptions {
  readonly kubeconfig: string;
  /** The beginning of its identity. */
  readonly name: string;
  readonly args?: readonly string[];
  /** The folder of the build. Default: dist. */
  readonly dist?: string;
  /** How long it may take until it can be asked. Default: 60,000, for other work may load the machine. */
  readonly readyMs?: number;
}

export interface ControllerProcess {
  readonly name: string;
  readonly pid: number;
  /** Its log: JSON lines. */
  output(): string;
  status(): Promise<ControllerStatus & { readonly version: string }>;
  ask(path: string, method?: string): Promise<{ readonly status: number; readonly body: string }>;
  /** SIGKILL, and waits for the end. Nothing happens when it has ended. */
  kill(): Promise<void>;
  /** SIGTERM, and the exit code. */
  stop(): Promise<number | null>;
}

const LISTENING = /"listen":"(?<url>http[^"]+)"/;

/** Resolves when it can be asked. Rejects with its log when it ends before. */
export async function startControllerProcess(options: ControllerProcessOptions): Promise<ControllerProcess> {
  const { kubeconfig, name, args = [], dist = join(root, "dist"), readyMs = 60_000 } = options;
  const flags = ["--kubeconfig", kubeconfig, "--identity", name, "--listen", "127.0.0.1:0", ...args];
  const bin = join(root, "node_modules", ".bin", "node");
  // The kernel ends the child with us.
  const argv = ["--pdeathsig", "KILL", "--", bin, ...controllerOptions(), join(dist, "berth-controller.mjs"), ...flags];
  const child = spawn("setpriv", argv, { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  const ended = once(child, "close");
  const isRunning = () => child.exitCode === null && child.signalCode === null;
  const url = () => LISTENING.exec(output)?.groups?.url;
  const start = performance.now();
  while (url() === undefined) {
    if (!isRunning() || performance.now() - start > readyMs) {
      child.kill("SIGKILL");
      throw new Error(`The controller "${name}" does not listen (exit code ${child.exitCode}):\n${output}`);
    }
    await pauseSince(start);
  }
  const ask: ControllerProcess["ask"] = async (path, method = "GET") => {
    const answer = await fetch(`${url()}${path}`, { method });
    return { status: answer.status, body: await answer.text() };
  };
  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    if (isRunning()) child.kill(signal);
    await ended;
    return child.exitCode;
  };
  return {
    name,
    pid: child.pid ?? 0,
    output: () => output,
    status: async () => JSON.parse((await ask("/v1/status")).body),
    ask,
    kill: async () => void (await end("SIGKILL")),
    stop: () => end("SIGTERM"),
  };
}
