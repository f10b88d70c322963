/**
 * The built controller as a process of its own.
 *
 *   const controller = await startControllerProcess({ kubeconfig: plane.kubeconfig, name: "a" });
 *   (await controller.status()).isLeading
 *   await controller.kill();                       // SIGKILL: the lease runs out
 *   expect(await controller.stop()).toBe(0);       // SIGTERM: the lease is given back
 *
 * Effects: a child, which ends with this process at the latest; a port on loopback.
 */
import { join } from "node:path";
import type { ControllerStatus } from "../../../host/controller/controller-process.ts";
import { root } from "../../../scripts/setup/paths.mjs";
import { type Daemon, startDaemon } from "../daemon.ts";
import { controllerOptions } from "../service-environment.ts";

export interface ControllerProcessOptions {
  /** The folder of the build. Default: dist. */
  readonly dist?: string | undefined;
  readonly kubeconfig: string;
  /** The beginning of its identity. */
  readonly name: string;
  readonly args?: readonly string[];
  /** Longest time until it can be asked. Default: 60,000, for other work may load the machine. */
  readonly readyMs?: number;
}

/** Its output is a log of JSON lines; after `stop` the lease is given back, after `kill` it runs out. */
export interface ControllerProcess extends Pick<Daemon, "name" | "pid" | "output" | "kill" | "stop"> {
  status(): Promise<ControllerStatus & { readonly version: string }>;
  ask(path: string): Promise<{ readonly status: number; readonly body: string }>;
}

const LISTENING = /"listen":"(?<url>http[^"]+)"/;

/** For a leader that is taken over from within seconds. */
export const QUICK_LEASE = ["--lease-duration", "3", "--lease-renew-deadline", "2", "--lease-retry", "0.4"];

/** Resolves when it can be asked. Rejects with its log when it ends before. */
export async function startControllerProcess(options: ControllerProcessOptions): Promise<ControllerProcess> {
  const { kubeconfig, name, args = [], readyMs = 60_000, dist = join(root, "dist") } = options;
  const flags = ["--kubeconfig", kubeconfig, "--identity", name, "--listen", "127.0.0.1:0", ...args];
  const bin = join(root, "node_modules", ".bin", "node");
  const program = join(dist, "berth-controller.mjs");
  const daemon = await startDaemon(name, [bin, ...controllerOptions(), program, ...flags]);
  let url: string | undefined;
  const isListening = async (): Promise<boolean> => {
    url = LISTENING.exec(daemon.output())?.groups?.url;
    return url !== undefined;
  };
  try {
    await daemon.until(isListening, readyMs);
  } catch (error) {
    await daemon.kill();
    throw error;
  }
  const ask: ControllerProcess["ask"] = async (path) => {
    const answer = await fetch(`${url}${path}`);
    return { status: answer.status, body: await answer.text() };
  };
  const status = async () => JSON.parse((await ask("/v1/status")).body);
  return { name, pid: daemon.pid, output: daemon.output, kill: daemon.kill, stop: daemon.stop, status, ask };
}
