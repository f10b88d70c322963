import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { startAgent } from "../lab/agent.ts";
import { requireCommand } from "../lab/command.ts";
import { ipPool, vendorConf } from "../lab/manifests.ts";
import { withWorld } from "../lab/netns/world.ts";
import { eventually } from "../lab/waiting.ts";
import { CONFIG, describeEffects, expectOnly, withObserved } from "./fault-effects.ts";

describe("at every eleventh effect of ADD and DEL, by number", () => describeEffects(11));

describe("kill -9 after the answer", () => {
  it("loses no address of many", () =>
    withObserved({ ...CONFIG, "wide.yaml": ipPool("wide", "10.8.0.0/16", { default: true }) }, async (world) => {
      const adds = Array.from({ length: 30 }, (_, index) => world.add(`c${index}`));
      const added = (await Promise.all(adds)).flat();
      await world.agent.restart();
      await expectOnly(world, added);
      expect(await world.add("c7")).toEqual([added[7]]);
      expect(await world.add("late")).not.toContain(added);
    }));

  it("lets what cools follow a cooldown that was set while no agent ran", () =>
    withObserved(
      { ...CONFIG, "conf.yaml": vendorConf({ enableIPv6: false, allocationCooldown: "1h" }) },
      async (world) => {
        const address = await world.add("c1");
        await world.del("c1");
        await world.agent.kill("SIGKILL");
        await world.agent.write("blue.yaml", ipPool("blue", "10.6.0.0/28", { default: true, cooldown: "3s" }));
        await world.agent.start();
        expect(await world.usage()).toEqual({ Cooling: address });
        expect(
          await eventually(
            () => world.usage(),
            (usage) => usage.Cooling === undefined,
          ),
        ).toEqual({});
      },
    ));
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

  it("a spooled file that cannot be read is set aside and reported", () =>
    withWorld(CONFIG, async (world) => {
      await requireCommand(["sh", "-c", `echo broken > ${join(world.agent.spool, "1.1-1.del")}`]);
      const spool = await eventually(
        async () => (await world.agent.get("/v1/health")).spool,
        ({ rejected }) => rejected === 1,
      );
      expect(spool).toEqual({ waiting: 0, rejected: 1 });
      expect(readFileSync(join(world.agent.spool, "1.1-1.del.rejected"), "utf8")).toBe("broken\n");
    }));
});

describe("a full pool", () => {
  const FULL = {
    "conf.yaml": vendorConf({ enableIPv6: false, allocationCooldown: "1h" }),
    "one.yaml": ipPool("one", "10.9.0.1/32", { default: true }),
  };

  it("gives its last address, which only just cooled, to one that waits", () =>
    withWorld(FULL, async (world) => {
      await world.add("c1");
      await world.del("c1");
      expect(await world.add("c2")).toEqual(["10.9.0.1"]);
      const { code, msg } = await world.refused("ADD", "c3");
      expect([code, msg]).toEqual([
        101,
        'No address is free for IPv4 of interface "eth0" (pools with spec.default: true): ' +
          'pool "one" has no free address (1 of 1 in use or cooling)',
      ]);
    }));
});

describe("a full state directory", () => {
  it("refuses ADD with a clear error, records DEL all the same, loses nothing", () =>
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
});

describe("two agents on one state", () => {
  it("the second says who has it when its patience ends", () =>
    withWorld(CONFIG, async (world) => {
      const address = await world.add("c1");
      const second = startAgent({
        config: CONFIG,
        env: { BERTH_STATE: world.agent.state },
        args: ["--lock-wait", "0.3"],
      });
      await expect(second).rejects.toThrow(
        `State directory ${world.agent.state} is in use by another agent (process ${world.agent.pid}): waited 300 ms`,
      );
      expect(await world.usage()).toEqual({ Bound: address });
    }));

  it("a stopped agent's socket is gone, a killed one's is replaced", () =>
    withWorld(CONFIG, async (world) => {
      expect((await requireCommand(["stat", "-c", "%a %U", world.agent.socket])).trim()).toBe("600 root");
      expect(await world.agent.stop()).toBe(0);
      await expect(requireCommand(["stat", world.agent.socket])).rejects.toThrow("No such file");
      await world.agent.start();
      await world.agent.kill("SIGKILL");
      await world.agent.start();
      expect(await world.add("c1")).toHaveLength(1);
    }));
});
