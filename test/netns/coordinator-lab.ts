/** Shared parts of the coordinator's tests beside coordinator-world.ts, which also runs outside vitest. */
import { afterEach, beforeEach } from "vitest";
import { deleteNamespaces, makeNamespaces, type Names, openWorld, type World } from "./coordinator-world.ts";

export interface CoordinatorLab {
  names: Names;
  world: World;
}

/** Gives each test a node, a pod and the plugin over both. */
export function coordinateEach(prefix: string): CoordinatorLab {
  const lab: Partial<CoordinatorLab> = {};
  beforeEach(async () => {
    lab.names = makeNamespaces(prefix);
    lab.world = await openWorld(lab.names);
  });
  afterEach(async () => {
    await lab.world?.[Symbol.asyncDispose]();
    if (lab.names !== undefined) deleteNamespaces(lab.names);
  });
  return lab as CoordinatorLab;
}
