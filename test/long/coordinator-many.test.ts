/** As many pods at once as a node has; the gate takes a third. */
import { afterAll, beforeAll } from "vitest";
import { describeMany } from "../e2e/coordinator-many.ts";
import { type ChainNode, makeChainNode } from "../lab/netns/coordinator.ts";

const NETWORK = `cy${process.pid}`;
let node: ChainNode;
let start: readonly string[];

beforeAll(async () => {
  node = await makeChainNode("cy");
  start = await node.begin(NETWORK);
});

afterAll(() => node.delete());

describeMany(() => ({ node, start }), NETWORK, 100);
