/**
 * The controller as a program with a faster clock of blocks, for tests that cannot wait a minute until a block has
 * rested: it asks the hub as much more often, but at most each second. Otherwise it equals berth-controller; it is
 * alone, so it needs no lease.
 *
 *   node hasty-controller.ts KUBECONFIG HUB_KUBECONFIG MEMBER SPEED
 */

import { CONTROLLERS } from "../../../../host/controller/controllers.ts";
import type { StartController } from "../../../../host/controller/types.ts";
import { startParts } from "../../../../test/lab/cluster/controller.ts";
import { connectClient } from "../../../../test/lab/cluster/in-process.ts";
import { startBlocks } from "../../controllers/blocks-controller.ts";

const [kubeconfig = "", hubKubeconfig = "", member = "", speed = ""] = process.argv.slice(2);

const clock = { nowMs: () => performance.now() * Number(speed), now: () => new Date() };
const checkMs = Math.max(1_000, 15_000 / Number(speed));
const hub = { api: await connectClient(hubKubeconfig), member, namespace: "kube-system", checkMs };
const blocks: StartController = (deps) => startBlocks({ ...deps, clock, hub });
await startParts(kubeconfig, { ...CONTROLLERS, blocks }, { logLevel: "info" });
console.log("Started");
