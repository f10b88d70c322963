/** The cluster's troubles: an agent is killed, the API server is away, a pod with an identity moves; and the end. */
import { setTimeout as sleep } from "node:timers/promises";
import { attachmentOf } from "../../../test/lab/history/follow.ts";
import { eventually } from "../../../test/lab/waiting.ts";
import { ping } from "../observe.ts";
import {
  allocations,
  allocationsOf,
  attach,
  awaitFree,
  claimPing,
  detach,
  kubectlGetAllocations,
  nodeOf,
  requirePod,
  type Scene,
} from "./acts.ts";
import type { Pod, Stage } from "./stage.ts";

/** Time for which the API server is away. */
const AWAY_MS = 5_000;
/** A DEL that waited for it would take this long at least. */
const QUICK_MS = 1_000;

export const settingsScene: Scene = async (stage, narrator) => {
  narrator.scene(
    "Settings are followed",
    `A released address rests, by the example for 30 seconds. The administrator writes two seconds into vendor-conf; no agent is started
     again. web-3 goes.`,
  );
  const path = "/api/v1/namespaces/kube-system/configmaps/vendor-conf";
  const { data } = await stage.plane.client.get(path);
  const text = (data["conf.yml"] as string).replace("allocationCooldown: 30s", "allocationCooldown: 2s");
  await stage.plane.client.patch(path, { data: { "conf.yml": text } });
  await sleep(500);
  const web3 = requirePod(stage, "web-3");
  const { addresses } = web3;
  const { isDone, tookMs } = await detach(stage, web3);
  await stage.removePod(web3);
  narrator.claim("its DEL is done", isDone, `${tookMs.toFixed(0)} ms with cnitool and macvlan`);
  const startMs = performance.now();
  const left = await awaitFree(stage, addresses, 10_000);
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
  narrator.claim("its addresses are free again", left.length === 0, `${addresses.join(", ")}, after ${seconds} s`);
};

export const killScene: Scene = async (stage, narrator) => {
  const node = nodeOf(stage, 0);
  narrator.scene(
    "An agent is killed",
    `kill -9 for the agent of ${node.name}. Its pods go on. A DEL is written down, an ADD waits, until there is another agent; it finds
     its addresses in its journal and in the API server.`,
  );
  const [web0, web1, web2] = ["web-0", "web-1", "web-2"].map((name) => requirePod(stage, name)) as [Pod, Pod, Pod];
  await node.agent.kill("SIGKILL");
  const { answered, seen } = await ping(web0.netns, web1.addresses[0] ?? "", { count: 1 });
  narrator.claim("its pods go on", answered, seen);
  const { addresses } = web2;
  const { isDone } = await detach(stage, web2);
  await stage.removePod(web2);
  narrator.claim("a pod can be deleted meanwhile", isDone, "web-2");
  const web4 = await stage.createPod("50-web.yaml", "web-4", node);
  const attaching = attach(stage, narrator, web4);
  attaching.catch(() => {}); // Awaited below.
  await sleep(500);
  await node.agent.start();
  await attaching;
  const states = async (): Promise<string[]> => {
    const records: { address: string; state: string }[] = await node.agent.get("/v1/allocations");
    return records.filter(({ address }) => addresses.includes(address)).map(({ state }) => state);
  };
  const cooling = await eventually(states, (found) => found.every((state) => state === "Cooling"), 5_000);
  const isReleased = cooling.every((state) => state === "Cooling");
  narrator.claim(
    "the next agent has released what web-2 had",
    isReleased,
    `${addresses.join(", ")}: ${cooling.join()}`,
  );
  const kept = await allocationsOf(stage, web0);
  narrator.claim("and nothing of those that live", kept.length === 2, `web-0 ${web0.addresses.join(", ")}`);
};

export const awayScene: Scene = async (stage, narrator) => {
  narrator.scene(
    "The API server is away",
    `For ${AWAY_MS / 1000} seconds there is no API server. A pod that was bound before has its addresses already; pods that go are not held up. What
     has to be told is told later.`,
  );
  const [web1, desk1] = [requirePod(stage, "web-1"), requirePod(stage, "desk-1")];
  const node = nodeOf(stage, 1);
  const web5 = await stage.createPod("50-web.yaml", "web-5", node);
  const ahead = await eventually(
    () => allocationsOf(stage, web5),
    (objects) => objects.length === 2,
    5_000,
  );
  narrator.claim("web-5 is bound, and its addresses are claimed", ahead.length === 2, `${ahead.length} objects`);
  await stage.plane.server.stop();
  const awaySince = performance.now();
  const gone = [...web1.addresses, ...desk1.addresses];
  for (const pod of [web1, desk1]) {
    const { tookMs, isDone } = await detach(stage, pod);
    narrator.claim(`the DEL of ${pod.name} is done`, isDone && tookMs < QUICK_MS, `${tookMs.toFixed(0)} ms`);
  }
  const startMs = performance.now();
  const { exitCode, stderr } = await stage.call("add", web5);
  const seen =
    exitCode === 0 ? `${web5.addresses.join(", ")} in ${(performance.now() - startMs).toFixed(0)} ms` : stderr;
  narrator.claim("the ADD of web-5 needs no API server", exitCode === 0, seen);
  const judged = web5.addresses.map((address) => stage.history.attached(attachmentOf(address, web5.uid)));
  await sleep(Math.max(0, AWAY_MS - (performance.now() - awaySince)));
  await stage.plane.server.start();
  await Promise.all(judged);
  for (const pod of [web1, desk1]) await stage.removePod(pod);
  const left = await awaitFree(stage, gone, 15_000);
  narrator.claim("what was released meanwhile is free", left.length === 0, gone.join(", "));
  await claimPing(narrator, web5, requirePod(stage, "web-0"));
};

export const identityScene: Scene = async (stage, narrator) => {
  narrator.scene(
    "A pod with an identity moves",
    "db-0 belongs to a StatefulSet. It goes, and comes back on the other node as another pod of the same name.",
  );
  const first = await stage.createPod("60-db.yaml", "db-0", nodeOf(stage, 0));
  await attach(stage, narrator, first);
  const { addresses } = first;
  await detach(stage, first);
  await stage.removePod(first);
  const kept = await eventually(
    async () => (await allocations(stage)).filter(({ spec }) => spec.state === "Kept"),
    (objects) => objects.length === 2,
    5_000,
  );
  const names = kept.map(({ spec }) => spec.address).join(", ");
  narrator.claim("while it is away its addresses are kept for it", kept.length === 2, names);
  const second = await stage.createPod("60-db.yaml", "db-0", nodeOf(stage, 1));
  await attach(stage, narrator, second);
  const isSame = [...second.addresses].sort().join() === [...addresses].sort().join();
  narrator.claim("it has the addresses that it had, on the other node", isSame, second.addresses.join(", "));
  await claimPing(narrator, requirePod(stage, "web-0"), second);
  narrator.lines(await kubectlGetAllocations(stage));
};

export const endScene: Scene = async (stage, narrator) => {
  narrator.scene(
    "Everything is deleted, and what etcd has seen",
    `DEL for every pod. The StatefulSet stays, and so does what is kept for its pod. Then the history of all addresses, write by write, as
     etcd has it.`,
  );
  for (const pod of [...stage.pods.values()]) {
    const { isDone } = await detach(stage, pod);
    await stage.removePod(pod);
    narrator.claim(`${pod.name} is deleted`, isDone, pod.addresses.join(", "));
  }
  const left = await leftAfter(stage, 40_000);
  const isKept = left.length === 2 && left.every((text) => text.endsWith(" Kept"));
  narrator.claim("no address has an object but those of db-0", isKept, left.join(", "));
  await stage.history.caughtUp();
  const { breaches, writes } = stage.history.checker;
  const seen = breaches.length === 0 ? `${writes} writes, none against the rules` : breaches.join("\n");
  narrator.claim("no two pods ever had one address", breaches.length === 0 && writes > 0, seen);
};

function leftAfter(stage: Stage, patienceMs: number): Promise<string[]> {
  return eventually(
    async () => (await allocations(stage)).map(({ spec }) => `${spec.address} ${spec.state}`),
    (left) => left.every((text) => text.endsWith(" Kept")),
    patienceMs,
  );
}
