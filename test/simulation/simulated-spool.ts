/**
 * The shim's side of a machine's spool, with files in a folder of its own, which the agent's side, the product's
 * Spool, reads.
 */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { IpamPlugin } from "../../host/agent/ipam/plugin.ts";
import { Dispatcher } from "../../host/agent/server/dispatcher.ts";
import { Spool } from "../../host/agent/server/spool.ts";
import { openLog } from "../../host/lib/log.ts";
import { NO_AUDIT } from "../world/no-audit.ts";
import type { Seeded } from "../world/seeded.ts";
import type { Call } from "./machine.ts";
import type { Action } from "./profiles.ts";
import type { SimulatedTime } from "./simulated-time.ts";

const LOG = openLog("simulation", "silent");
/** Longest time until a spooled DEL is on the disk: milliseconds. */
const SYNC_MS = 2_000;

/** A request of the shim. */
interface ShimRequest {
  /** With lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export class SimulatedSpool {
  readonly #directory = mkdtempSync(join(tmpdir(), "simulated-spool-"));
  readonly #time: SimulatedTime;
  readonly #random: Seeded;
  readonly #requestOf: (call: Call) => ShimRequest;
  #written = 0;

  constructor(time: SimulatedTime, host: string, requestOf: (call: Call) => ShimRequest) {
    this.#time = time;
    this.#random = time.process(`spool of ${host}`).random;
    this.#requestOf = requestOf;
  }

  /** The agent's side. */
  open(berth: IpamPlugin): Pick<Spool, "drain" | "clear"> {
    const unused = berth as never;
    return new Spool(
      this.#directory,
      new Dispatcher({ berth, coordinator: unused, ifacer: unused }, NO_AUDIT, LOG),
      () => {},
      LOG,
    );
  }

  /** Resolves when the file is on the disk. */
  async write(call: Call): Promise<void> {
    const { headers, body } = this.#requestOf(call);
    const name = `${(this.#time.nowMs / 1_000).toFixed(9).padStart(20, "0")}-${++this.#written}.del`;
    const lines = Object.entries({ ...headers, "content-length": body.length }).map(
      ([key, value]) => `${key}: ${value}`,
    );
    const text = ["POST /v1/cni/berth HTTP/1.1", ...lines, "", body].join("\r\n");
    const path = join(this.#directory, name);
    writeFileSync(`${path}.tmp`, text);
    await this.#time.sleep(this.#random.below(SYNC_MS), "the shim waits for the disk");
    renameSync(`${path}.tmp`, path);
  }

  close(): void {
    rmSync(this.#directory, { recursive: true });
  }
}

/** Their runtime's DELs find no agent, and are spooled; the disk is slow when the agent reads them. */
export const RESTART_CONTAINERS: Action = {
  name: "containers restart while their agent is away",
  weight: 6,
  act: (cluster, random, time) => {
    const { machine, kubelet } = random.pick(cluster.nodes);
    machine.kill();
    machine.space.delayMs = random.pick([0, 30, 200]);
    for (let count = random.below(6); count >= 0; count--) kubelet?.loseSandbox(random);
    time.schedule(random.below(2_500), "an agent starts again", time.current, () => machine.start());
    time.schedule(12_000, "the disk is fast", time.current, () => {
      machine.space.delayMs = 0;
    });
  },
};
