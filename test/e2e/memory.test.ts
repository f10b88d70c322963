/** Memory that the built agent returns when nothing calls it. */
import { afterEach, expect, it } from "vitest";
import { type Agent, startAgent } from "../lab/agent.ts";
import { eventually } from "../lab/netns-world.ts";
import { daemonAnonymousMib } from "../lab/statistics.ts";

const POOLS = 1_000;

/** Of an agent that has read that many pools, 60 MiB are anonymous; after a collection 40. The design allows 52 (55 MB). */
const QUIET_MIB = 48;

let agent: Agent;
afterEach(() => agent.delete());

it(`an agent with ${POOLS} pools has little anonymous memory once it is quiet`, async () => {
  const pools = Array.from({ length: POOLS }, (_, index) =>
    JSON.stringify({
      apiVersion: "ipam.vendor.io/v1",
      kind: "IPPool",
      metadata: { name: `pool-${index}` },
      spec: { subnet: `10.${index >> 8}.${index & 255}.0/24` },
    }),
  );
  agent = await startAgent({ config: { "pools.yaml": pools.join("\n---\n") } });
  const first = daemonAnonymousMib(agent.pid);
  const quiet = await eventually(
    async () => daemonAnonymousMib(agent.pid),
    (mib) => mib <= QUIET_MIB,
  );
  expect(first).toBeGreaterThan(QUIET_MIB);
  expect(quiet).toBeLessThanOrEqual(QUIET_MIB);
});
