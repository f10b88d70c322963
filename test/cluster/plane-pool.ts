/**
 * Lends control planes to the files of tests: one serves many files, one after the other. Runs in vitest's own
 * process, before the first file (`setup`) and after the last one.
 */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestProject } from "vitest/node";
import { PlaneReset, startPlane } from "../lab/cluster/plane.ts";
import { actOnPlane, type ControlPlane, type ControlPlaneOptions, type PlaneAction } from "../lab/control-plane.ts";
import { STORED_AS_JSON } from "../lab/history/stored.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** `http://127.0.0.1:40123`: see borrow-plane.ts. */
    planePool: string;
  }
}

/** The controller manager's, an account of each plane. */
export const GARBAGE_COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector";

const PLANE: ControlPlaneOptions = {
  accounts: [{ name: GARBAGE_COLLECTOR, groups: [] }],
  serverArgs: [
    // As text, so that a test can read the history of pods and their workloads from etcd.
    STORED_AS_JSON,
    "--feature-gates=MutatingAdmissionPolicy=true",
    "--runtime-config=admissionregistration.k8s.io/v1beta1=true",
  ],
};

interface Pooled {
  readonly plane: ControlPlane;
  readonly reset: PlaneReset;
}

export async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const pool = new PlanePool();
  const server = createServer((request, response) => {
    answer(response, () => pool.serve(request.url ?? ""));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  provide("planePool", `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  return async () => {
    server.close();
    await pool.stop();
  };
}

function answer(response: ServerResponse, serve: () => Promise<object>): void {
  serve().then(
    (body) => response.end(JSON.stringify(body)),
    (error: unknown) => response.writeHead(500).end(String(error)),
  );
}

class PlanePool {
  readonly #all = new Map<string, Pooled>();
  readonly #free: Pooled[] = [];
  /** Planes that were given back and are being reset. */
  readonly #resets = new Set<Promise<void>>();

  /** `/borrow`; `/act` and `/return` with the plane's `directory`. */
  async serve(url: string): Promise<object> {
    const { pathname, searchParams } = new URL(url, "http://pool");
    const parameter = (name: string): string => searchParams.get(name) ?? "";
    if (pathname === "/borrow") return (await this.#borrow()).plane.parts;
    const lent = this.#all.get(parameter("directory"));
    if (lent === undefined) throw new Error(`No control plane is lent in ${parameter("directory")}`);
    if (pathname === "/act")
      return { answer: await actOnPlane(lent.plane, parameter("action") as PlaneAction, parameter("copy")) };
    const reset = this.#reset(lent).finally(() => this.#resets.delete(reset));
    this.#resets.add(reset);
    return {};
  }

  async #borrow(): Promise<Pooled> {
    while (this.#free.length === 0 && this.#resets.size > 0) await Promise.race(this.#resets);
    const free = this.#free.pop();
    if (free !== undefined) return free;
    const plane = await startPlane(PLANE);
    const started = { plane, reset: await PlaneReset.open(plane) };
    this.#all.set(plane.parts.directory, started);
    return started;
  }

  /** A plane whose own objects were changed is not lent again. */
  async #reset(pooled: Pooled): Promise<void> {
    const changed = await pooled.reset.run().catch((error: unknown) => [String(error)]);
    if (changed.length === 0) {
      this.#free.push(pooled);
      return;
    }
    console.error(`A control plane is replaced: ${changed.slice(0, 5).join(", ")}`);
    this.#all.delete(pooled.plane.parts.directory);
    await pooled.plane.stop();
  }

  async stop(): Promise<void> {
    await Promise.allSettled(this.#resets);
    for (const { plane } of this.#all.values()) await plane.stop();
  }
}
