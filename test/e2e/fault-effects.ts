/** An agent of files that is killed, or fails, at its effects by number, and what must be true afterwards. */
import { expect, it } from "vitest";
import { CONF, ipPool, podManifest } from "../lab/manifests.ts";
import { type NetnsWorld, withWorld } from "../lab/netns/world.ts";

export const CONFIG = {
  "conf.yaml": CONF,
  "blue.yaml": ipPool("blue", "10.6.0.0/28", { default: true }),
  "green.yaml": ipPool("green", "10.7.0.0/28"),
  "pod.yaml": podManifest("shop", "web-0", {
    ippools: [
      { interface: "eth0", ipv4: ["blue"] },
      { interface: "net1", ipv4: ["green"] },
    ],
    "k8s.v1.cni.cncf.io/networks": "lab",
  }),
};
const POD = { pod: "shop/web-0/uid-1" };
/**
 * More effects than two ADDs and two DELs have, and what an agent does by itself meanwhile: the walk of kills must
 * end before.
 */
const MOST_EFFECTS = 100;
/** A failure that the agent repaired leaves no trace: that walk has a fixed length. */
const FAILURES = 24;

/** Runs a pod as a runtime does: ADD of both NICs; when one fails, DEL of both and a new sandbox. */
async function runPod(world: NetnsWorld, sandbox: string): Promise<string[] | undefined> {
  const call = { ...POD, env: { ...world.agent.env, BERTH_CONNECT_WAIT: "0.2" } };
  const first = await world.call("ADD", sandbox, call);
  const second = first.exitCode === 0 ? await world.call("ADD", sandbox, { ...call, ifName: "net1" }) : first;
  if (second.exitCode === 0) return [first, second].map(({ stdout }) => stdout.ips[0].address.split("/")[0]);
  expect([11, 107]).toContain(second.stdout.code);
  for (const ifName of ["eth0", "net1"]) await world.del(sandbox, { ...call, ifName });
  return undefined;
}

export function withObserved(config: Parameters<typeof withWorld>[0], test: (world: NetnsWorld) => Promise<void>) {
  return withWorld(config, test, { isObserved: true });
}

export async function expectOnly(world: NetnsWorld, addresses: readonly string[]): Promise<void> {
  const usage = await world.usage();
  expect(new Set(usage.Bound ?? [])).toEqual(new Set(addresses));
}

/** At effect 1, 1 + `stride`, … of an agent that starts, adds and deletes. */
export function describeEffects(stride: number): void {
  it.each(["kill", "fail"])(
    "%s loses nothing that was answered, keeps nothing that was not",
    { timeout: 400_000 },
    (action) =>
      withObserved(CONFIG, async (world) => {
        let reached = 0;
        for (let number = 1; ; number += stride) {
          expect(number).toBeLessThan(MOST_EFFECTS);
          await world.agent.restart(`${action}@${number}`);
          const sandbox = `s${number}`;
          const added = await runPod(world, sandbox);
          if (added !== undefined) {
            for (const ifName of ["eth0", "net1"]) {
              const del = { ...POD, ifName, env: { ...world.agent.env, BERTH_CONNECT_WAIT: "0.2" } };
              const outcome = await world.call("DEL", sandbox, del);
              if (outcome.exitCode !== 0) expect(outcome.stdout.code).toBe(107);
            }
          }
          const survived = await world.agent.request("/v1/health").then(
            () => true,
            () => false,
          );
          await world.agent.restart();
          for (const ifName of ["eth0", "net1"]) await world.del(sandbox, { ...POD, ifName });
          await expectOnly(world, []);
          const again = await runPod(world, `${sandbox}-again`);
          expect(again).toHaveLength(2);
          await expectOnly(world, again ?? []);
          for (const ifName of ["eth0", "net1"]) await world.del(`${sandbox}-again`, { ...POD, ifName });
          reached = number;
          if (action === "kill" ? survived : number >= FAILURES) break;
        }
        expect(reached).toBeGreaterThan(10);
      }),
  );
}
