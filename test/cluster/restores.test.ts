/**
 * etcd is restored from a snapshot while pods live, as its documentation has it: with and without later versions, with
 * and without a history before them, with the controller alive, restarted and away, with a node that joined since, and
 * one that is cut off. An observer and the history's checker look on; a member of a StatefulSet keeps its address
 * (rules registry-epoch, known-stays).
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { EPOCH_ANNOTATION, EPOCH_MAP } from "../../host/resources/registry-epoch.ts";
import { type ControllerProcess, startControllerProcess } from "../lab/cluster/controller-process.ts";
import { type FollowedWorld, followWorld } from "../lab/cluster/followed-world.ts";
import * as objects from "../lab/cluster/objects.ts";
import { requestNodeToken } from "../lab/cluster/rights.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { until } from "../lab/waiting.ts";
import { gateOrLong, ofRun } from "../world/long-cases.ts";

const AWAY_MS = 5_000;
/** Longer than the cooldown. */
const REUSED_MS = 4_000;
/** An ADD that waits for an epoch takes longer. */
const FIRST_MS = 4_000;

interface Row {
  /** `--bump-revision` */
  readonly raisedBy: number;
  /** `--mark-compacted` */
  readonly isCompacted?: boolean;
  readonly controller: "alive" | "restarted" | "away";
  /** n3 cannot reach the API server. */
  readonly isCut?: boolean;
  /** A node that the copy does not know. */
  readonly joined?: string;
  /** Agents of these nodes are killed before, and start afterwards. */
  readonly killed?: readonly string[];
  /** A pod that ended since is back with the copy, and starts. Otherwise it is deleted before. */
  readonly isBack?: boolean;
}
const nodes = ["n1", "n2", "n3"];
const ROWS: readonly Row[] = [0, 5_000].flatMap((raisedBy) => [
  { raisedBy, controller: "alive" },
  { raisedBy, controller: "restarted", joined: `joined-${raisedBy}`, isBack: true },
  { raisedBy, controller: "away" },
  { raisedBy, controller: "alive", isCut: true, isCompacted: raisedBy > 0, isBack: true },
  { raisedBy, controller: "alive", killed: nodes, isCompacted: raisedBy > 0, isBack: true },
]);

let world: World;
let followed: FollowedWorld;
let controller: ControllerProcess;
let pods = 0;
const table: string[] = [];

async function lead(): Promise<void> {
  const kubeconfig = await world.controllerKubeconfig();
  controller = await startControllerProcess({ kubeconfig, name: `c${pods}` });
}

async function attach(pod: objects.LabPod): Promise<{ address: string; ms: number }> {
  const { addresses, refusal, tookMs } = await world.node(pod.node).runtime.attach(pod, { limitMs: 60_000 });
  expect(addresses, refusal).toHaveLength(1);
  return { address: addresses[0] ?? "", ms: Math.round(tookMs) };
}

/**
 * Its kubelet registers, and its agent is a new pod: the token of the one before was for a Node that never was. Until
 * the agent has marked its Node, no other one waits for it (decision 0059): these NICs cannot be probed.
 */
async function joinAgain(node: string): Promise<void> {
  await world.setNode(node, "True");
  await world.plane.writeKubeconfig(`${node}.kubeconfig`, { token: await requestNodeToken(world.client, node) });
  await world.node(node).agent.kill("SIGKILL");
  await world.node(node).agent.start();
  const isMarked = async () =>
    EPOCH_ANNOTATION in ((await world.client.get(`${objects.NODES}/${node}`)).metadata.annotations ?? {});
  await until("its agent has marked it", isMarked, 60_000);
}

const start = async (node: string) => attach(await world.createPod({ name: `web-${pods++}`, node }));

const isShort = ({ raisedBy, controller }: Row): boolean => raisedBy > 0 && controller === "restarted";

describe.each(gateOrLong([1], [1, 3]))("etcd of %i members", (etcdMembers) => {
  beforeAll(async () => {
    const pools = [{ name: "blue", subnet: "10.6.0.0/24", selection: "ascending" }];
    // An agent that was killed or joins again writes after the others, later on a busy machine.
    world = await startWorld({ nodes, pools, isObserved: true, graceMs: 30_000, etcdMembers });
    followed = await followWorld(world);
    for (const { name } of world.nodes()) await world.setNode(name, "True");
    await lead();
  }, 120_000);
  afterAll(async () => {
    console.log(
      [`of ${etcdMembers}: versions raised by, controller | first new pods | members again`, ...table.splice(0)].join(
        "\n",
      ),
    );
    await controller?.stop();
    await world?.stop();
  });

  it.each(etcdMembers === 1 ? ofRun(ROWS, isShort) : ROWS.filter(isShort))(
    "etcd is restored, versions raised by $raisedBy, controller $controller, compacted: $isCompacted, cut off: $isCut, joined: $joined, killed: $killed, back: $isBack",
    { timeout: 180_000 },
    async (row) => {
      const owner = await objects.createWorkload(world.client, "StatefulSet", `db${pods}`, { replicas: 2 });
      const member = (index: number) =>
        world.createPod({ name: `${owner.name}-${index}`, node: `n${index + 1}`, owner });
      const early = await member(0);
      const addresses = [(await attach(early)).address];
      const gone = await world.createPod({ name: `web-${pods++}`, node: "n2" });
      await attach(gone);
      const copy = await world.plane.snapshot();
      await world.node("n2").runtime.detach(gone);
      await world.deletePod(gone);
      // Its address is the next pod's then, a member's or one of a node that has joined, and the copy says otherwise.
      await sleep(row.joined === undefined ? gateOrLong(0, REUSED_MS) : REUSED_MS);
      const since: objects.LabPod[] = [];
      const startSince = async (node: string): Promise<void> => {
        const pod = await world.createPod({ name: `web-${pods++}`, node });
        since.push(pod);
        await attach(pod);
      };
      if (row.joined !== undefined) {
        await world.addNode(row.joined, { isDirect: true });
        await startSince(row.joined);
      }
      const late = await member(1);
      addresses.push((await attach(late)).address);
      for (const node of row.joined === undefined ? ["n1", "n3"] : [row.joined]) await startSince(node);
      if (row.controller !== "alive") await controller.kill();
      if (row.isCut) world.node("n3").proxy.refuse();
      // The copy has no such pod of the set, so that its agent takes the address off the NIC.
      followed.leaving(late.uid);
      const killed = (row.killed ?? []).map((node) => world.node(node).agent);
      await Promise.all(killed.map((agent) => agent.kill("SIGKILL")));
      await followed.restore(copy, row.raisedBy, row.isCompacted);
      await Promise.all(killed.map((agent) => agent.start()));
      if (row.joined !== undefined) await joinAgain(row.joined);
      if (row.controller === "restarted") await lead();
      if (!row.isBack) await world.deletePod(gone);
      const first = Promise.all([start("n1"), start("n2"), ...(row.isBack ? [attach(gone)] : [])]);
      if (row.controller === "away" || row.isCut) await sleep(AWAY_MS);
      if (row.controller === "away") await lead();
      if (row.isCut) await world.node("n3").proxy.accept();
      const found = await first;
      const again: string[] = [];
      for (const [index, pod] of [early, late].entries()) {
        await world.node(pod.node).runtime.detach(pod);
        await world.deletePod(pod).catch(() => {});
        again.push((await attach(await member(index))).address);
      }
      const { raisedBy, ...how } = row;
      const firsts = found.map(({ address, ms }) => `${address} after ${ms} ms`).join(" ");
      table.push([`${raisedBy}, ${Object.entries(how).flat().join(" ")}`, firsts, again.join(" ")].join(" | "));
      if (row.isCut) expect(Math.min(...found.map(({ ms }) => ms))).toBeGreaterThan(AWAY_MS - 500);
      expect(again).toEqual(addresses);
      await followed.check();
      for (const pod of [gone, ...since]) await world.node(pod.node).runtime.detach(pod);
    },
  );

  if (etcdMembers === 1) return;
  it("one of them is made anew: nothing goes back, and no first claim waits", async () => {
    const epoch = async () =>
      (await world.client.get(`${objects.SETTINGS.replace(/[^/]*$/, "")}${EPOCH_MAP}`)).data.epoch;
    const before = await epoch();
    const starting = nodes.map(async (node) => {
      const found: number[] = [];
      // The API server's answer to a person may be that its member is gone.
      while (found.length < 5) found.push((await vi.waitFor(() => start(node), { timeout: 20_000 })).ms);
      return found;
    });
    await world.plane.replaceMember();
    const longest = Math.max(...(await Promise.all(starting)).flat());
    table.push(`nothing, one member made anew | all within ${longest} ms`);
    expect(await epoch()).toBe(before);
    expect(longest).toBeLessThan(FIRST_MS);
    await followed.check();
  });
});
