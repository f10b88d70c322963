import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { requireCommand } from "../lab/command.ts";
import { CONF, ipPool, podManifest } from "../lab/manifests.ts";
import { type NetnsWorld, withWorld } from "../lab/netns/world.ts";
import { gateOrLong } from "../world/long-cases.ts";

const CONFIG = {
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
 * More than the effects of two ADDs, two DELs and the agent's own work meanwhile: the walk of kills must end before.
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

function withObserved(config: Parameters<typeof withWorld>[0], test: (world: NetnsWorld) => Promise<void>) {
  return withWorld(config, test, { isObserved: true });
}

async function expectOnly(world: NetnsWorld, addresses: readonly string[]): Promise<void> {
  expect(new Set((await world.usage()).Bound ?? [])).toEqual(new Set(addresses));
}

const STRIDE = gateOrLong(17, 1);

describe(`at effect 1, ${1 + STRIDE} and so on of an agent that starts, adds and deletes`, () => {
  it.each(["kill", "fail"])(
    "%s loses nothing that was answered, keeps nothing that was not",
    { timeout: 400_000 },
    (action) =>
      withObserved(CONFIG, async (world) => {
        let reached = 0;
        for (let number = 1; ; number += STRIDE) {
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
});

describe("DEL while no agent runs", () => {
  it("is spooled, and carried out before anything is attached again", () =>
    withWorld(CONFIG, async (world) => {
      await world.add("c1");
      await world.agent.kill("SIGKILL");
      await world.del("c1");
      await world.agent.start();
      expect((await world.usage()).Bound).toBeUndefined();
      expect((await world.agent.get("/v1/health")).spool).toEqual({ waiting: 0, rejected: 0 });
    }));

  it("and stays, as its file cannot be removed: its interface's ADDs wait, and others do not", () =>
    withWorld(CONFIG, async (world) => {
      await world.add("c1");
      await world.agent.kill("SIGKILL");
      await world.del("c1");
      const [name = ""] = readdirSync(world.agent.spool);
      const file = join(world.agent.spool, name);
      // A mount point cannot be removed.
      await requireCommand(["mount", "--bind", file, file]);
      try {
        await world.agent.start();
        const refusal = await world.refused("ADD", "c1");
        expect(refusal).toMatchObject({ code: 11, msg: expect.stringContaining("interface eth0 of container c1 is") });
        await world.add("c2");
        await world.add("c1", { ifName: "eth1" });
        expect((await world.agent.get("/v1/health")).spool).toEqual({ waiting: 1, rejected: 0 });
      } finally {
        await requireCommand(["umount", file]);
      }
      await world.add("c1");
    }));
});

it("a full state directory refuses ADD with a clear error, records DEL all the same, loses nothing", () =>
  withWorld({ ...CONFIG, "wide.yaml": ipPool("wide", "10.8.0.0/16", { default: true }) }, async (world) => {
    const { agent } = world;
    await agent.stop();
    await requireCommand(["mount", "-t", "tmpfs", "-o", "size=4m", "berth-test", agent.state]);
    try {
      await agent.start();
      const first = await world.add("c0");
      await requireCommand(["sh", "-c", `cat /dev/zero > ${agent.state}/filler || true`]);
      const added: string[] = [...first];
      let refusal: { code: number; msg: string } | undefined;
      for (let index = 1; index < 400 && refusal === undefined; index++) {
        const outcome = await world.call("ADD", `c${index}`);
        if (outcome.exitCode === 0) added.push(outcome.stdout.ips[0].address.split("/")[0]);
        else refusal = outcome.stdout;
      }
      expect(refusal).toMatchObject({
        code: 107,
        msg: expect.stringContaining("free disk space in the state directory"),
      });
      await expectOnly(world, added);
      await world.del("c0");
      await expectOnly(world, added.slice(1));
      await agent.kill("SIGKILL");
      await agent.start();
      await expectOnly(world, added.slice(1));
      await requireCommand(["rm", `${agent.state}/filler`]);
      expect(await world.add("later")).toHaveLength(1);
    } finally {
      await agent.stop();
      await requireCommand(["umount", agent.state]);
    }
  }));
