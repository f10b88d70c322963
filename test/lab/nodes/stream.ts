/**
 * Traffic that goes on while a test changes things: pings from the network namespace of a pod, ten a second, each one
 * awaited.
 *
 *   const stream = await startStream(node, ownerOf(pod), other.status.podIP);
 *   // ...
 *   await stream.stop();                 // { sent: 812, lost: 0 }
 *
 * Effects: a child, which ends with the pod's namespace at the latest.
 */
import { startDaemon } from "../daemon.ts";
import type { RealNode } from "./node.ts";

export interface Stream {
  readonly to: string;
  stop(): Promise<{ readonly sent: number; readonly lost: number }>;
}

const INTERVAL_S = "0.1";
const ANSWER_MS = 5_000;

/** Resolves when the first answer has come. */
export async function startStream(node: RealNode, uid: string, to: string): Promise<Stream> {
  const pid = await node.findPodProcess(uid);
  const argv = ["nsenter", `--net=/proc/${pid}/ns/net`, "ping", "-n", "-O", "-i", INTERVAL_S, "-W", "1", to];
  const ping = await startDaemon(`ping ${to}`, argv);
  const answers = (): number => ping.output().split(" bytes from ").length - 1;
  await ping.until(async () => answers() > 0, ANSWER_MS);
  return {
    to,
    stop: async () => {
      process.kill(ping.pid, "SIGINT");
      await ping.until(async () => / packets transmitted/.test(ping.output()), ANSWER_MS).catch(() => {});
      await ping.kill();
      const [, sent = "0", received = "0"] = /(\d+) packets transmitted, (\d+) received/.exec(ping.output()) ?? [];
      if (sent === "0") throw new Error(`ping ${to} has no summary: ${ping.output().slice(-2_000)}`);
      return { sent: Number(sent), lost: Number(sent) - Number(received) };
    },
  };
}
