/** What a DEL leaves for later: a pair that is down, through which nothing is reached, and which is soon gone. */
import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { MAX_RETIRED_PAIRS, PairRemover, RETIREMENT_MS } from "../../host/agent/coordinator/pair-remover.ts";
import { RETIRED_GROUP } from "../../host/coordinator/plan/constants.ts";
import { nameVeth } from "../../host/coordinator/plan/names.ts";
import { openLinkRemover } from "../../host/kernel/link-remover.ts";
import { readNetnsIdentity } from "../../host/kernel/netns.ts";
import { type OpenNamespace, openNamespace } from "../../host/kernel/open-namespace.ts";
import { openLog } from "../../host/lib/log.ts";
import { coordinateEach } from "./coordinator-lab.ts";
import { snapshot } from "./coordinator-snapshot.ts";
import { addressOf, containerOf, makeNic, nicOf, openWorld, removeNic } from "./coordinator-world.ts";
import { ipIn, ipJson, showIn, unmountNetns } from "./kernel-scene.ts";

const CONF = { serviceCIDR: ["10.96.0.0/16", "fd00:96::/112"] };
const lab = coordinateEach("bcrt");
const nic = nicOf("eth0", 6);

/** Of the node; the pod's end is `veth0`. */
const pairName = (containerId = containerOf(lab.names)): string => nameVeth(containerId).host.name;

function pairLinks(): string[] {
  const links: { ifname: string }[] = ipJson(lab.names.node, "link show type veth");
  return links.map(({ ifname }) => ifname).filter((name) => /^veth[0-9a-f]{11}$|^r[0-9]+$/.test(name));
}

const goneSoon = () => expect.poll(pairLinks, { timeout: 10 * RETIREMENT_MS, interval: 20 }).toEqual([]);

function expectUnreached(): void {
  for (const family of [4, 6] as const) {
    const address = addressOf(nic, family);
    expect(showIn(lab.names.node, `-${family} route show table all`)).not.toContain(` ${address} dev veth`);
    expect(showIn(lab.names.node, `-${family} route show table 500`)).not.toContain(address);
    expect(showIn(lab.names.node, `-${family} neigh show`)).not.toContain(pairName());
    expect(showIn(lab.names.node, `-${family} route get ${address}`)).toContain("dev up0");
  }
}

describe("a DEL of the first NIC", () => {
  it("answers when nothing reaches the pod any more; the pair goes within a second", async () => {
    makeNic(lab.names, nic);
    await lab.world.add(nic, CONF);
    await lab.world.del(nic, CONF);
    const before = await snapshot(lab.names);
    await lab.world.add(nic, CONF);
    expect(showIn(lab.names.node, `route get ${addressOf(nic, 4)}`)).toContain(`dev ${pairName()}`);
    await lab.world.delQuickly(nic, CONF);
    const [end] = ipJson(lab.names.node, `link show ${pairName()}`);
    expect([end.flags.includes("UP"), end.group]).toEqual([false, String(RETIRED_GROUP)]);
    expectUnreached();
    await goneSoon();
    expect(await snapshot(lab.names)).toEqual(before);
  });

  it("again before the pair is gone succeeds", async () => {
    makeNic(lab.names, nic);
    await lab.world.add(nic, CONF);
    await lab.world.delQuickly(nic, CONF);
    await lab.world.delQuickly(nic, CONF);
    await goneSoon();
    await lab.world.delQuickly(nic, CONF);
    expectUnreached();
  });

  it("whose pod's namespace is gone leaves nothing", async () => {
    const path = `/run/netns/${lab.names.pod}`;
    makeNic(lab.names, nic);
    await lab.world.add(nic, CONF);
    // The kernel keeps an open namespace, so the pair does not go by itself.
    using _open = openNamespace(path);
    unmountNetns(lab.names.pod);
    await lab.world.delQuickly(nic, CONF);
    expectUnreached();
    await goneSoon();
    execFileSync("ip", ["netns", "add", lab.names.pod]);
  });

  it("goes with the pod's namespace if that goes first", async () => {
    makeNic(lab.names, nic);
    await lab.world.add(nic, CONF);
    await lab.world.delQuickly(nic, CONF);
    unmountNetns(lab.names.pod);
    await goneSoon();
    execFileSync("ip", ["netns", "add", lab.names.pod]);
    makeNic(lab.names, nic);
    await lab.world.add(nic, CONF);
    await lab.world.check(nic, CONF);
  });
});

describe("an ADD right after a DEL", () => {
  it("of the same container and address gets a new pair", async () => {
    makeNic(lab.names, nic);
    for (let round = 0; round < 5; round++) {
      await lab.world.add(nic, CONF);
      await lab.world.check(nic, CONF);
      await lab.world.delQuickly(nic, CONF);
    }
    await lab.world.add(nic, CONF);
    await lab.world.check(nic, CONF);
    await new Promise((resolve) => setTimeout(resolve, 2 * RETIREMENT_MS));
    await lab.world.check(nic, CONF);
    expect(pairLinks()).toEqual([pairName()]);
  });

  it("of another container in the same namespace, with the same address, does too", async () => {
    let containerId = "one";
    makeNic(lab.names, nic);
    await using world = await openWorld(lab.names, undefined, undefined, { containerId: () => containerId });
    await world.add(nic, CONF);
    await world.delQuickly(nic, CONF);
    containerId = "two";
    await world.add(nic, CONF);
    await world.check(nic, CONF);
    expect(pairLinks()).toEqual([pairName("two")]);
  });

  it("of another pod with the same address keeps its routes when the old pair goes", async () => {
    const other = `${lab.names.pod}b`;
    execFileSync("ip", ["netns", "add", other]);
    ipIn(other, "link set lo up");
    makeNic(lab.names, nic);
    await lab.world.add(nic, CONF);
    await lab.world.delQuickly(nic, CONF);
    removeNic(lab.names, nic);
    const names = { ...lab.names, pod: other };
    makeNic(names, nic);
    await using world = await openWorld(names);
    await world.add(nic, CONF);
    const name = pairName(containerOf(names));
    await expect.poll(pairLinks, { timeout: 10 * RETIREMENT_MS }).toEqual([name]);
    await world.check(nic, CONF);
    expect(showIn(names.node, `route get ${addressOf(nic, 4)}`)).toContain(`dev ${name}`);
    await world.del(nic, CONF);
    unmountNetns(other);
  });
});

describe("the pairs of detached pods", () => {
  const log = openLog("coordinator", "silent");

  function open(host: OpenNamespace): PairRemover {
    return new PairRemover({ host, links: openLinkRemover(host.entrance), log });
  }

  /** Pairs as the coordinator makes them, into the pod; returns their indexes. */
  function makePairs(count: number): number[] {
    const lines = Array.from({ length: count }, (_, at) => [
      `link add r${at} type veth peer name p${at} netns ${lab.names.pod}`,
      `link set r${at} up alias "berth uid c${at} lan shop/web-${at}"`,
      `route add 10.9.${at >> 8}.${at & 255} dev r${at} table 500`,
    ]);
    ipIn(lab.names.node, ...lines.flat());
    const links: { ifindex: number; ifname: string }[] = ipJson(lab.names.node, "link show type veth");
    return links.filter(({ ifname }) => /^r[0-9]+$/.test(ifname)).map(({ ifindex }) => ifindex);
  }

  const ownerOf = (index: number) => ({ containerId: `c${index}`, pod: "gone" as const });

  it("hundreds at once: no more than the limit wait, and soon there are none", async () => {
    using host = openNamespace(`/run/netns/${lab.names.node}`);
    const remover = open(host);
    const pairs = makePairs(MAX_RETIRED_PAIRS + 44);
    let waiting = pairs.length;
    const answers = pairs.map(async (index) => {
      await remover.retire(index, ownerOf(index));
      waiting--;
    });
    expect(showIn(lab.names.node, "route show table 500")).not.toContain("10.9.");
    await Promise.resolve();
    // Those below the limit have been answered; the others wait for the kernel.
    expect(waiting).toBe(45);
    await Promise.all(answers);
    await goneSoon();
    await remover.close();
  }, 60_000);

  it("of an agent that was killed go when the next one starts; an ADD waits for it", async () => {
    using host = openNamespace(`/run/netns/${lab.names.node}`);
    const count = makePairs(20).length;
    for (let at = 0; at < count; at++) ipIn(lab.names.node, `link set r${at} down group ${RETIRED_GROUP}`);
    const remover = open(host);
    await remover.clear("another", () => readNetnsIdentity(`/run/netns/${lab.names.pod}`));
    expect(pairLinks()).toEqual([]);
    await remover.close();
  });

  it("are gone when the agent has ended", async () => {
    using host = openNamespace(`/run/netns/${lab.names.node}`);
    const remover = open(host);
    for (const index of makePairs(3)) await remover.retire(index, ownerOf(index));
    await remover.close();
    expect(pairLinks()).toEqual([]);
  });
});
