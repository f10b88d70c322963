import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { it } from "vitest";
import { ipPool, vendorConf } from "../lab/manifests.ts";
import { withWorld } from "../lab/netns/world.ts";
import { times } from "../world/long-cases.ts";

const POOL = ipPool("blue", "10.6.0.0/26", { default: true });

it("ADDs while the pool's file is rewritten in place are not refused", () =>
  withWorld({ "conf.yaml": vendorConf({ enableIPv6: false }), "pool.yaml": POOL }, async (world) => {
    let isOver = false;
    const rewrite = async (): Promise<void> => {
      const path = join(world.agent.configDir, "pool.yaml");
      while (!isOver) {
        await writeFile(path, "");
        await sleep(10);
        await writeFile(path, POOL);
        await sleep(10);
      }
    };
    const attach = async (): Promise<void> => {
      for (let round = 0; round < times(50); round++) {
        await world.add(`c${round % 3}`);
        await world.del(`c${round % 3}`);
      }
    };
    const attached = attach().finally(() => {
      isOver = true;
    });
    await Promise.all([rewrite(), attached]);
  }));
