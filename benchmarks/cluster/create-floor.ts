/**
 * The floor of an ADD that is recorded in the API server before it is answered: the shim in front of create-agent.ts.
 * Effects: that agent; objects in the API server.
 */
import { join } from "node:path";
import { root } from "../../scripts/setup/paths.mjs";
import type { ControlPlane } from "../../test/lab/control-plane.ts";
import { until } from "../../test/lab/waiting.ts";
import type { Contestant, Place } from "../ipam/contestant.ts";
import { openShim } from "../ipam/floor.ts";
import { CREATE_FLOOR } from "../ipam/tabulate.ts";
import { countObjects } from "./node-objects.ts";

const SPACE = "floor";

export async function openCreateFloor(plane: ControlPlane, place: Place, stdinFile: string): Promise<Contestant> {
  const socket = join(place.directory, "create-agent.sock");
  const program = join(root, "benchmarks/cluster/create-agent.ts");
  const argv = [process.execPath, program, socket, plane.kubeconfig, SPACE];
  return {
    ...(await openShim(CREATE_FLOOR, argv, socket, place, stdinFile)),
    finish: async () => {
      await until("the deletions", async () => (await countObjects(plane, SPACE)) === 0);
    },
  };
}
