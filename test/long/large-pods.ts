/**
 * A tenant that creates pods with metadata as large as the API server takes, one after the other, in a process of its
 * own: what encoding them costs is no part of the latencies that the test measures.
 * Effects: a child process; TLS connections to the API server.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { createKubeClient } from "../lab/kube-client.ts";

interface Tenant {
  readonly url: string;
  readonly token: string;
  readonly ca: string;
  /** Path of the collection in the tenant's namespace. */
  readonly path: string;
}

export interface LargePods {
  readonly pid: number;
  /**
   * Creates them, bound to that node, until `isOver`; resolves to their number. `perSecond`: at most so many;
   * default: one after the other.
   */
  attack(nodeName: string, isOver: () => boolean, perSecond?: number): Promise<number>;
  close(): Promise<void>;
}

const ARGUMENT = "tenant-of-large-pods";

export function startLargePods(tenant: Tenant): LargePods {
  const child = fork(import.meta.filename, [ARGUMENT]);
  child.send(tenant);
  return {
    pid: child.pid ?? 0,
    attack: async (nodeName, isOver, perSecond = Number.POSITIVE_INFINITY) => {
      let count = 0;
      for (; !isOver(); count++) {
        const next = sleep(1_000 / perSecond);
        child.send(nodeName);
        const [failure] = await once(child, "message");
        if (failure !== "created") throw new Error(failure);
        await next;
      }
      return count;
    },
    close: async () => {
      const ended = once(child, "exit");
      child.disconnect();
      await ended;
    },
  };
}

async function serve(): Promise<void> {
  const [tenant] = await once(process, "message");
  const { url, token, ca, path } = tenant as Tenant;
  const { hostname, port } = new URL(url);
  const client = createKubeClient({ address: hostname, port: Number(port), token, ca });
  const owners = Array.from({ length: 4_500 }, (_, at) => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    name: `${at}-${"n".repeat(200)}`,
    uid: `u${at}`,
  }));
  const labels = Object.fromEntries(
    Array.from({ length: 6_000 }, (_, at) => [`l${at}-${"k".repeat(50)}`, "v".repeat(60)]),
  );
  let count = 0;
  process.on("message", (nodeName) => {
    const metadata = { name: `large-${count}`, ...(count++ % 2 === 0 ? { ownerReferences: owners } : { labels }) };
    const spec = { nodeName, containers: [{ name: "main", image: "local/pause:1" }] };
    client.create(path, { apiVersion: "v1", kind: "Pod", metadata, spec }).then(
      () => process.send?.("created"),
      (error) => process.send?.(String(error)),
    );
  });
  process.on("disconnect", () => client.close());
}

if (process.argv.includes(ARGUMENT)) await serve();
