/**
 * Deletion of the NIC by the coordinator's DEL: not before the caller can rely on it, and however long the kernel and
 * the thread pool take.
 */
import { pbkdf2 } from "node:crypto";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { MAX_NIC_DELETIONS, NicRemover } from "../../host/agent/coordinator/nic-remover.ts";
import type { IfName } from "../../host/cni/names.ts";
import { nameVeth } from "../../host/coordinator/plan/names.ts";
import { readNetnsIdentity } from "../../host/kernel/netns.ts";
import { noFaults } from "../../host/lib/fault.ts";
import { openLog } from "../../host/lib/log.ts";
import { coordinateEach } from "./coordinator-lab.ts";
import { containerOf, makeNic, nicOf } from "./coordinator-world.ts";
import { ipJson } from "./kernel-scene.ts";

const CONF = { serviceCIDR: ["10.96.0.0/16"] };
const lab = coordinateEach("bcnr");
const nic = nicOf("eth0", 6);

const linksOfPod = (): string[] => ipJson(lab.names.pod, "link show").map(({ ifname }: { ifname: string }) => ifname);

async function attached() {
  makeNic(lab.names, nic);
  await lab.world.add(nic, CONF);
  const path = `/run/netns/${lab.names.pod}`;
  const pod = { path, identity: readNetnsIdentity(path), ifName: "eth0" as IfName };
  return {
    pod,
    pair: nameVeth(containerOf(lab.names)),
    remover: new NicRemover(openLog("coordinator", "silent"), noFaults),
  };
}

/** Keeps all threads of libuv's pool busy for some tenths of a second. */
function occupyPool(): Promise<unknown> {
  const derive = promisify(pbkdf2);
  return Promise.all(Array.from({ length: 16 }, () => derive("text", "salt", 200_000, 64, "sha512")));
}

describe("the NIC of a detached pod", () => {
  it("is gone with the pod's pair when its removal is done, though the pool had no thread for it at first", async () => {
    const { pod, pair, remover } = await attached();
    const busy = occupyPool();
    let isDone = false;
    const removal = remover.remove(pod, pair).then(() => {
      isDone = true;
      return linksOfPod();
    });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect([isDone, linksOfPod().includes("eth0")]).toEqual([false, true]);
    expect(await removal).toEqual(["lo"]);
    await busy;
  });

  it("is left alone while too many others are deleted", async () => {
    const { pod, pair, remover } = await attached();
    const busy = occupyPool();
    const removals = Array.from({ length: MAX_NIC_DELETIONS }, () => remover.remove(pod, pair));
    await remover.remove(pod, pair);
    expect(linksOfPod()).toContain("eth0");
    await Promise.all(removals);
    expect(linksOfPod()).not.toContain("eth0");
    await busy;
  });

  it("whose namespace has become another one is left alone", async () => {
    const { pod, pair, remover } = await attached();
    await remover.remove({ ...pod, identity: { ...pod.identity, cookie: 1n } }, pair);
    await remover.remove({ ...pod, path: "/run/netns/none" }, pair);
    expect(linksOfPod()).toContain("eth0");
  });
});
