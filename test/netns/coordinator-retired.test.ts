/** Pairs of detached pods: gone with the DEL, or down, so that nothing is reached through them, and soon gone. */
import { execFileSync } from "node:child_process";
import { pbkdf2 } from "node:crypto";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { collect } from "../../host/agent/coordinator/detach.ts";
import { NicRemover } from "../../host/agent/coordinator/nic-remover.ts";
import { MAX_RETIRED_PAIRS, PairRemover, RETIREMENT_MS } from "../../host/agent/coordinator/pair-remover.ts";
import type { IfName } from "../../host/cni/names.ts";
import { RETIRED_GROUP } from "../../host/coordinator/plan/constants.ts";
import { nameVeth } from "../../host/coordinator/plan/names.ts";
import { LinkRemover, REMOVAL_GROUP } from "../../host/kernel/link-remover.ts";
import { setLink } from "../../host/kernel/netlink/link/requests.ts";
import { readNetnsIdentity } from "../../host/kernel/netns.ts";
import { type OpenNamespace, openNamespace, openNode } from "../../host/kernel/open-namespace.ts";
import { noFaults } from "../../host/lib/fault.ts";
import { openLog } from "../../host/lib/log.ts";
import { UNKNOWN_CONTAINER } from "../../host/registry/journal.ts";
import { coordinateEach } from "./coordinator-lab.ts";
import { type Snapshot, snapshot } from "./coordinator-snapshot.ts";
import { addressOf, containerOf, makeNic, nicOf } from "./coordinator-world.ts";
import { ipIn, ipJson, showIn, unmountNetns } from "./kernel-scene.ts";

const CONF = { serviceCIDR: ["10.96.0.0/16", "fd00:96::/112"] };
const lab = coordinateEach("bcrt");
const nic = nicOf("eth0", 6);

/** Returns the pair's name on the node; the pod's end is `veth0`. */
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

const groupOf = (name: string): string | undefined => {
  const links: { ifname: string; group: string }[] = ipJson(lab.names.node, "link show type veth");
  return links.find(({ ifname }) => ifname === name)?.group;
};
const BEING_DELETED = String(REMOVAL_GROUP);

/** Before an ADD of {@link nic}, but with the objects that the first one leaves for all pods of the node. */
async function makeDetached(): Promise<Snapshot> {
  makeNic(lab.names, nic);
  const { pod } = await snapshot(lab.names);
  await lab.world.add(nic, CONF);
  await lab.world.del(nic, CONF);
  const { node } = await snapshot(lab.names);
  return { pod, node };
}

describe("a DEL of the first NIC", () => {
  it("answers when nothing reaches the pod any more, and its pair is gone from a namespace that is as before", async () => {
    const detached = await makeDetached();
    await lab.world.add(nic, CONF);
    expect(showIn(lab.names.node, `route get ${addressOf(nic, 4)}`)).toContain(`dev ${pairName()}`);
    await lab.world.delQuickly(nic, CONF);
    expect(pairLinks()).toEqual([]);
    expectUnreached();
    expect(await snapshot(lab.names)).toEqual(detached);
  });

  it("beside a tunnel that the kernel made does so, too", async () => {
    makeNic(lab.names, nic);
    ipIn(lab.names.pod, `link add ip_vti0 type veth peer name peer0 netns ${lab.names.node}`);
    await lab.world.add(nic, CONF);
    await lab.world.delQuickly(nic, CONF);
    expect(pairLinks()).toEqual([]);
  });

  it("whose pod's namespace is gone leaves nothing", async () => {
    const path = `/run/netns/${lab.names.pod}`;
    makeNic(lab.names, nic);
    await lab.world.add(nic, CONF);
    // The kernel keeps an open namespace, so the pair does not go by itself.
    using _open = openNamespace(path);
    unmountNetns(lab.names.pod);
    await lab.world.delQuickly(nic, CONF);
    const [end] = ipJson(lab.names.node, `link show ${pairName()}`);
    expect([end.flags.includes("UP"), end.group]).toEqual([false, String(RETIRED_GROUP)]);
    expectUnreached();
    await goneSoon();
    execFileSync("ip", ["netns", "add", lab.names.pod]);
  });
});

const log = openLog("coordinator", "silent");

it("a NIC is deleted in the pod's own namespace alone, and while sixteen are being deleted, further ones are not", async () => {
  makeNic(lab.names, nic);
  await lab.world.add(nic, CONF);
  const path = `/run/netns/${lab.names.pod}`;
  const pod = { path, identity: readNetnsIdentity(path), ifName: "eth0" as IfName };
  const pair = nameVeth(containerOf(lab.names));
  let begun = 0;
  const remover = new NicRemover(log, () => {
    begun++;
  });
  await remover.remove({ ...pod, identity: { ...pod.identity, cookie: 1n } }, pair);
  expect(begun).toBe(0);
  // Until these are done no thread deletes.
  const busy = Array.from({ length: 16 }, () => promisify(pbkdf2)("text", "salt", 100_000, 64, "sha512"));
  const removals = Array.from({ length: 20 }, () => remover.remove(pod, pair));
  expect(begun).toBe(16);
  await Promise.all([...busy, ...removals]);
});

describe("the pairs of detached pods", () => {
  function open(
    host: OpenNamespace,
    links: Pick<LinkRemover, "removeLink" | "removeLinks" | "close"> = new LinkRemover(host.entrance),
  ): PairRemover {
    return new PairRemover({ host, links, log });
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

  const ownerOf = (index: number) => ({ containerId: `c${index}`, netns: "gone" as const });

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

  it("stay in the group that is being deleted if a DEL comes again meanwhile", async () => {
    using host = openNamespace(`/run/netns/${lab.names.node}`);
    const [index = 0] = makePairs(1);
    const links = new LinkRemover(host.entrance);
    const removeLinks = async (indexes: readonly number[]): Promise<boolean> => {
      setLink(host.route, index, { group: REMOVAL_GROUP });
      await expect(remover.retire(index, ownerOf(index))).resolves.toBe(true);
      expect(groupOf("r0")).toBe(BEING_DELETED);
      return links.removeLinks(indexes);
    };
    const remover = open(host, { removeLink: links.removeLink.bind(links), removeLinks, close: () => links.close() });
    await remover.retire(index, ownerOf(index));
    await remover.flush();
    expect(pairLinks()).toEqual([]);
    await remover.close();
  });

  it("that went with their pods' namespaces are not deleted once more", async () => {
    using host = openNode(`/run/netns/${lab.names.node}`, { onLinkGone: (index) => remover.linkGone(index) });
    const links = new LinkRemover(host.entrance);
    const asked: number[] = [];
    const removeLinks = (indexes: readonly number[]): Promise<boolean> => {
      asked.push(...indexes);
      return links.removeLinks(indexes);
    };
    const remover: PairRemover = open(host, {
      removeLink: (index) => links.removeLink(index),
      removeLinks,
      close: () => links.close(),
    });
    const [gone = 0, left = 0] = makePairs(2);
    for (const index of [gone, left]) await remover.retire(index, ownerOf(index));
    ipIn(lab.names.node, "link del r0");
    host.mirror.read();
    await goneSoon();
    expect(asked).toEqual([left]);
    await remover.close();
  });

  it.each([
    [true, ["r0", "r1"]],
    [false, []],
  ])(
    "in a cluster (%s) stay at a GC while a pod has their addresses, whatever the runtime lists",
    async (isCluster, left) => {
      using host = openNode(`/run/netns/${lab.names.node}`, { onLinkGone: (index) => remover.linkGone(index) });
      const remover: PairRemover = open(host);
      makePairs(3);
      const row = { state: "Bound", network: "lan", namespace: "shop" };
      const registry = {
        list: async () => [
          { ...row, containerId: "c0", pod: "web-0" },
          { ...row, containerId: UNKNOWN_CONTAINER, pod: "web-1" },
        ],
      };
      const deps = { host, remover, registry, isCluster, faults: noFaults } as never;
      await collect(deps, { netConf: { name: "lan", validAttachments: [] } } as never);
      await remover.flush();
      expect(pairLinks().filter((name) => name.startsWith("r"))).toEqual(left);
      await remover.close();
    },
  );
});
