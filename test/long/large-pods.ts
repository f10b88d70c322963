/**
 * A tenant that creates pods with metadata as large as the API server takes, one after the other, in a thread of its own: what it spends on encoding
 * is not part of the latencies that the test's thread measures.
 * Effects: a thread; TLS connections to the API server.
 */
import { once } from "node:events";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { createKubeClient } from "../../scripts/lab/kube-client.ts";

interface Tenant {
  readonly url: string;
  readonly token: string;
  readonly ca: string;
  /** Of the collection in the tenant's namespace. */
  readonly path: string;
}

export interface LargePods {
  /** Creates them, bound to that node, until `isOver`; resolves to how many. */
  attack(nodeName: string, isOver: () => boolean): Promise<number>;
  close(): Promise<void>;
}

export function startLargePods(tenant: Tenant): LargePods {
  const worker = new Worker(new URL(import.meta.url), { workerData: tenant });
  return {
    attack: async (nodeName, isOver) => {
      let count = 0;
      for (; !isOver(); count++) {
        worker.postMessage(nodeName);
        const [failure] = await once(worker, "message");
        if (failure !== undefined) throw new Error(failure);
      }
      return count;
    },
    close: async () => void (await worker.terminate()),
  };
}

function serve({ url, token, ca, path }: Tenant): void {
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
  parentPort?.on("message", (nodeName: string) => {
    const metadata = { name: `large-${count}`, ...(count++ % 2 === 0 ? { ownerReferences: owners } : { labels }) };
    const spec = { nodeName, containers: [{ name: "main", image: "local/pause:1" }] };
    client.create(path, { apiVersion: "v1", kind: "Pod", metadata, spec }).then(
      () => parentPort?.postMessage(undefined),
      (error) => parentPort?.postMessage(String(error)),
    );
  });
}

if (!isMainThread && workerData?.path !== undefined) serve(workerData);
