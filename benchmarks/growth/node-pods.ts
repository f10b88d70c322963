/**
 * The chain of a NIC on a node where more and more other pods are attached.
 * Effects: namespaces, an agent, plugins.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { daemonRssMib } from "../../test/lab/statistics.ts";
import { measureChains, REFERENCE } from "../coordinator/chain.ts";
import { openNode } from "../coordinator/node.ts";
import { attachOthers } from "../coordinator/pods.ts";
import { sayProgress } from "../harness/progress.ts";
import type { Axis, Point } from "./axis.ts";

const COUNTS = [10, 100, 250, 500];
const QUICK_COUNTS = [10, 100];

export async function measureNodePods(directory: string, isQuick: boolean): Promise<Axis> {
  const counts = isQuick ? QUICK_COUNTS : COUNTS;
  const place = join(directory, "node");
  mkdirSync(place, { recursive: true });
  const node = await openNode(`growth-${process.pid}`, place, 0);
  const points: Point[] = [];
  try {
    let attached = 0;
    for (const count of counts) {
      sayProgress(`${count} pods on the node`);
      await attachOthers(node, count - attached);
      attached = count;
      const rows = await measureChains([node], { rounds: isQuick ? 1 : 2, triples: isQuick ? 5 : 10 });
      for (const { name, samples } of rows) {
        const addMs = samples.map(({ wallMs }) => wallMs);
        points.push({
          name,
          place: `${count}`,
          addMs,
          rssMib: name === REFERENCE ? undefined : daemonRssMib(node.agent.pid),
        });
      }
    }
  } finally {
    await node.close();
  }
  return { name: "pods on the node", file: "node-pods", places: counts.map(String), points };
}
