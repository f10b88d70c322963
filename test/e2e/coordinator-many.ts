/** Many pods of one node that come and go at once. */
import { describe, expect, it } from "vitest";
import { type ChainNode, pairsOf } from "../lab/netns/coordinator.ts";
import type { LabPod } from "../lab/netns/world.ts";

const AT_ONCE = 10;

interface Scene {
  readonly node: ChainNode;
  /** After a first pod of the network came and went. */
  readonly start: readonly string[];
}

export function describeMany(scene: () => Scene, network: string, many: number): void {
  describe(`${many} pods, ${AT_ONCE} at a time`, () => {
    async function inTurns<T>(things: readonly T[], work: (thing: T) => Promise<void>): Promise<number> {
      const waiting = [...things];
      const begun = performance.now();
      const worker = async (): Promise<void> => {
        for (let thing = waiting.shift(); thing !== undefined; thing = waiting.shift()) await work(thing);
      };
      await Promise.all(Array.from({ length: AT_ONCE }, worker));
      return performance.now() - begun;
    }

    it("up and down leave the node byte-equal to its state after a first pod came and went", async () => {
      const { node, start } = scene();
      const pods: LabPod[] = [];
      for (let index = 0; index < many; index++) pods.push(await node.addPod(node, `many${index}`));
      const up = await inTurns(pods, async (pod) => void (await pod.attach(network)));
      expect(await pairsOf(node.netns)).toHaveLength(many);
      for (const family of [4, 6]) {
        const routes = await node.netns.ipJson<{ dst: string }>(`-${family} route show table 500`);
        expect(new Set(routes.map(({ dst }) => dst)).size).toBe(many);
      }
      expect(await node.netns.ipJson("neigh show nud permanent")).toHaveLength(2 * many);
      const down = await inTurns(pods, (pod) => pod.detach(network));
      await node.expectState(start);
      console.info(`${many} chains, ${AT_ONCE} at a time: up in ${up.toFixed(0)} ms, down in ${down.toFixed(0)} ms`);
      for (const pod of pods) await pod.netns.delete();
    });
  });
}
