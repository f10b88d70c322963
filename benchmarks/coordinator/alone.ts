/**
 * The coordinator alone: ADD and DEL from exec to exit on pods whose NIC is ready, beside the floors of the same run.
 * Effects: runs plugins in pods that it makes.
 */
import { join } from "node:path";
import type { Contestant } from "../ipam/contestant.ts";
import { type Course, type Measured, measure } from "../ipam/measure.ts";
import type { Families } from "./configuration.ts";
import type { Node } from "./node.ts";
import { pluginStep, preparePods } from "./pods.ts";

export const FAMILY_CHOICES: readonly Families[] = ["IPv4", "dual stack"];

/** Rows of the floors, and then for each choice of families one for each node. */
export function measureAlone(
  floors: readonly Contestant[],
  nodes: readonly Node[],
  course: Course,
): Promise<Measured[]> {
  const ofNodes = FAMILY_CHOICES.flatMap((families) => nodes.map((node) => contestantOf(node, families)));
  return measure([...floors, ...ofNodes], course, 0);
}

function contestantOf(node: Node, families: Families): Contestant {
  const call = (command: "ADD" | "DEL") =>
    pluginStep(node, "coordinator", command, join(node.directory, "coordinator-{n}.json"));
  return {
    name: `coordinator, ${families}, ${node.name}`,
    ...{ netns: node.netns, add: call("ADD"), del: call("DEL"), daemonPid: node.agent.pid },
    prepare: async (_, count) => (await preparePods(node, count, { families })).first,
    finish: (first, count) => node.pods.remove(first, count),
    close: async () => {},
  };
}
