/** The surroundings of a pod: settings, machines and programs that Berth did not make. */
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { writeSysctl } from "../../host/kernel/sysctl.ts";
import { bitsOf, FAMILIES } from "../../host/net/ip.ts";
import type { CheckRecord } from "../../host/records/check-record.ts";
import type { HealthRecord } from "../../host/records/health-record.ts";
import { lengthOf, segmentAddress, segmentSubnet } from "../lab/addressing.ts";
import { requireCommand } from "../lab/command.ts";
import { macvlanOn } from "../lab/netns/coordinator.ts";
import type { LabPod } from "../lab/netns/world.ts";
import { addVeth, type Netns } from "../lab/netns.ts";
import { NoTraffic } from "../lab/sockets.ts";
import { ask, ping, serve } from "../lab/traffic.ts";
import { eventually, SOON_MS } from "../lab/waiting.ts";
import { ofRun } from "../world/long-cases.ts";
import { ENTRY, makeScene, PORT, PROTOCOLS, type Scene, SERVICE, SILENCE } from "./coordinator-scene.ts";

let scene: Scene;
/** A machine of the pods' segment. */
let machine: Netns;

beforeAll(async () => {
  scene = await makeScene(`su${process.pid}`, FAMILIES);
  machine = await scene.lab.fabric.addHost("machine", 7);
});

afterAll(() => scene.delete());

describe.each(FAMILIES)("a pod whose settings forward IPv%i", (family) => {
  const key = family === 4 ? "ipv4/ip_forward" : "ipv6/conf/all/forwarding";
  const forwarding = (value: string) => writeSysctl(scene.client.netns.path, key, value);
  const via = (place: string) => `-${family} route replace ${place} via ${scene.client.address(family)}`;

  beforeAll(() => forwarding("1"));
  afterAll(() => forwarding("0"));

  it("is no way from its segment to ports that its node filters there, nor to services", async () => {
    const node = segmentAddress(0, 11, family);
    const guard = `table inet guard { chain input { type filter hook input priority 0; iifname "eth0" tcp dport ${PORT} drop; }; }`;
    const { netns } = scene.lab.node1;
    await requireCommand(netns.enter(["nft", guard]));
    await expect(ask(machine, node, PORT, SILENCE)).rejects.toThrow(NoTraffic);
    await machine.ip(via(node));
    await expect(ask(machine, node, PORT, SILENCE)).rejects.toThrow(NoTraffic);
    await machine.ip(`-${family} route del ${node}`);
    await machine.ip(via(SERVICE[family]));
    await scene.withService(segmentAddress(0, 12, family), { address: SERVICE[family], port: PORT }, async () => {
      await expect(ask(scene.client.netns, SERVICE[family], PORT)).resolves.toBeDefined();
      await expect(ask(machine, SERVICE[family], PORT, SILENCE)).rejects.toThrow(NoTraffic);
    });
    await requireCommand(netns.enter(["nft", "delete table inet guard"]));
  });

  it("is the way of machines behind it, to services and by its NIC", async () => {
    const inner = await scene.lab.addNetns(`inner${family}`);
    await addVeth({ netns: scene.client.netns, name: `in${family}` }, { netns: inner, name: "eth0" });
    const [near, far] = family === 4 ? ["192.168.9.1", "192.168.9.2"] : ["fd00:9::1", "fd00:9::2"];
    await scene.client.netns.ip(`addr add ${near}/${lengthOf(family)} dev in${family} nodad`);
    await inner.ip(`addr add ${far}/${lengthOf(family)} dev eth0 nodad`);
    await inner.ip(`-${family} route add default via ${near}`);
    const hide = `table inet hide { chain post { type nat hook postrouting priority 100; iifname "in${family}" masquerade; }; }`;
    await requireCommand(scene.client.netns.enter(["nft", hide]));
    await scene.withService(segmentAddress(0, 12, family), { address: SERVICE[family], port: PORT }, async () => {
      await expect(ask(inner, SERVICE[family], PORT)).resolves.toBeDefined();
    });
    await using _server = await serving(machine);
    expect((await ask(inner, segmentAddress(0, 7, family), PORT)).seenPeer).toBe(scene.client.address(family));
    await requireCommand(scene.client.netns.enter(["nft", "delete table inet hide"]));
  });
});

describe.each(FAMILIES)("a policy that drops packets of IPv%i pods to other nodes", (family) => {
  it("is named by check until a rule accepts the pairs", async () => {
    const { agent, netns } = scene.lab.node1;
    const program = family === 4 ? "iptables" : "ip6tables";
    const filter = (words: string) => requireCommand(netns.enter([program, "-w", ...words.split(" ")]));
    const named = async () => {
      const { findings }: CheckRecord = await agent.get("/v1/check");
      return findings.flatMap(({ kind, text }) => (kind === "firewall" ? text.split(",")[0] : []));
    };
    const reaches = () => ask(scene.client.netns, SERVICE[family], PORT, SILENCE);
    await scene.withService(segmentAddress(0, 12, family), { address: SERVICE[family], port: PORT }, async () => {
      await filter("-P FORWARD DROP");
      await expect(reaches()).rejects.toThrow(NoTraffic);
      const table = family === 4 ? "ip filter" : "ip6 filter";
      expect(await named()).toEqual([`chain ${table} FORWARD drops what no rule accepts`]);
      for (const end of ["-i", "-o"]) await filter(`-I FORWARD ${end} veth+ -j ACCEPT`);
      await expect(reaches()).resolves.toBeDefined();
      expect(await named()).toEqual([]);
    });
    await filter("-F FORWARD");
    await filter("-P FORWARD ACCEPT");
  });
});

const problems = async () => ((await scene.lab.node1.agent.get("/v1/health")) as HealthRecord).problems.join();

describe.each(FAMILIES)(
  "what takes the node's IPv%i packets from a pod, and Berth's rule cannot move before",
  (family) => {
    const [node, segment] = [segmentAddress(0, 11, family), segmentSubnet(0, family)];
    const causes = [
      ["a rule with preference 0", `rule add to ${segment} pref 0 lookup 7`],
      ["a rule with preference 0 for the node's packets", `rule add from ${node} pref 0 lookup 7`],
      ["a route in the kernel's table of own addresses", "route add local POD dev lo table local"],
      ["an unreachable destination there", "route add unreachable POD table local metric 7"],
    ] as const;
    it.each(ofRun(causes, (_, at) => family === 4 || at === 2))(
      "is named by CHECK, check and health until it goes: %s",
      async (_what, words) => {
        const { agent, netns } = scene.lab.node1;
        const script = words.replace("POD", scene.client.address(family));
        const ip = (text: string) => netns.ip(`-${family} ${text}`);
        const drifts = async () => {
          const { findings }: CheckRecord = await agent.get("/v1/check");
          return findings.flatMap(({ kind, text }) => (kind === "drift" ? text : [])).join();
        };
        const text = "not to the pod: a rule or route of other software comes before Berth's";
        await ip(`route add default via ${segmentAddress(0, 1, family)} dev eth0 table 7`);
        await ip("route flush table 500"); // restored at the same time
        await ip(script);
        await expect.poll(problems, { timeout: SOON_MS }).toContain(text);
        // Arrivals of the last half minute are not compared.
        await expect.poll(drifts, { timeout: 60_000 }).toContain(text);
        await expect(scene.client.check(scene.network)).rejects.toThrow(text);
        await ip(script.replace(" add ", " del "));
        await ip("route flush table 7");
        await expect.poll(problems, { timeout: 90_000 }).toBe("");
        expect(await drifts()).toBe("");
        await scene.client.check(scene.network);
      },
    );
  },
);

describe.each(FAMILIES)("detours of a pod's IPv%i packets to its node", (family) => {
  const node = segmentAddress(0, 11, family);
  it.each([
    ["In replies the pod", "its node", "rule del pref 7", "rule add fwmark 0x1000000/0x1000000 pref 7 lookup 7"],
    [
      "The node",
      "itself",
      "rule add pref 0 lookup local\nrule del pref 8\nrule del pref 7",
      "rule add from POD pref 7 lookup 7\nrule add pref 8 lookup local\nrule del pref 0",
    ],
  ])("is named by CHECK: %s does not send them to %s", async (sender, to, undo, script) => {
    const pod = scene.client.address(family);
    const { netns } = to === "itself" ? scene.lab.node1 : scene.client;
    const ip = (text: string) => requireCommand(netns.enter(["ip", `-${family}`, "-b", "-"]), { stdin: text });
    const checked = () => scene.client.check(scene.network).then(() => "right", String);
    await ip(`route add unreachable default table 7\n${script.replace("POD", pod)}`);
    const named = expect.poll(checked, { timeout: SOON_MS });
    await named.toMatch(RegExp(`${sender} sends packets for \\S+ from ${pod} to nowhere, not to ${to}`));
    await ip(`${undo}\nroute flush table 7`);
    await expect.poll(checked, { timeout: SOON_MS }).toBe("right");
  });

  it("is named by CHECK, check and health", async () => {
    const { agent, netns: host } = scene.lab.node1;
    const { netns } = scene.client;
    const further = `${segmentAddress(0, 34, family)}/${bitsOf(family)} dev eth0`;
    const text = `The pod sends packets for ${node} to nowhere, not to its node`;
    const check = async () => ((await agent.get("/v1/check")) as CheckRecord).findings.map((each) => each.text).join();
    await netns.ip(`-${family} route add unreachable ${node} table 7`);
    await netns.ip(`-${family} rule add to ${node} pref 7 lookup 7`);
    await expect(scene.client.check(scene.network)).rejects.toThrow(text);
    await expect.poll(check, { timeout: 60_000 }).toContain(text);
    // A change of the node's addresses concerns all pods.
    await host.ip(`addr add ${further}`);
    await expect.poll(problems, { timeout: SOON_MS }).toContain(text);
    await netns.ip(`-${family} rule del pref 7`);
    await host.ip(`addr del ${further}`);
    await expect.poll(problems, { timeout: 90_000 }).toBe("");
    await scene.client.check(scene.network);
  });
});

describe.each(FAMILIES)("a virtual IPv%i address that comes to a node and goes", (family) => {
  const address = segmentAddress(0, 10, family);
  const options = family === 4 ? "" : "nodad preferred_lft 0";
  const pods: LabPod[] = [];

  beforeAll(async () => {
    const [first, second] = [`su-first${family}`, `su-second${family}`];
    await scene.lab.define(first, [macvlanOn(0), ENTRY]);
    await scene.lab.define(second, [macvlanOn(1), ENTRY]);
    for (const networks of [[first], [first, second]]) {
      const pod = await scene.lab.addPod(scene.lab.node1, `of${networks.length}nics${family}`);
      for (const [index, network] of networks.entries()) await pod.attach(network, index === 0 ? "eth0" : "net1");
      pods.push(pod);
    }
  });

  const change = (verb: "add" | "del", place = scene.lab.node1.netns) =>
    place.ip(`addr ${verb} ${address}/${bitsOf(family)} dev eth0 ${verb === "add" ? options : ""}`);
  /** Moves it, and announces it as the program does that moves it. */
  const move = async (from: Netns, to: Netns): Promise<void> => {
    await change("del", from);
    await change("add", to);
    for (const { netns } of pods) await netns.ip(`-${family} neigh flush dev eth0`);
  };
  const wayOf = async ({ netns }: LabPod, from = ""): Promise<string> =>
    /dev (\S+)/.exec(await netns.ip(`-${family} route get ${address} ${from}`))?.[1] ?? "";
  /** Each pod's way to it, and, with several NICs, from the first one's address. */
  const ways = async (): Promise<string[]> => {
    const from = pods.map((pod) => wayOf(pod, `from ${pod.address(family)}`));
    return Promise.all([...pods.map((pod) => wayOf(pod)), ...from]);
  };
  const expectWay = async (link: string): Promise<void> => {
    const isOver = (found: readonly string[]): boolean => found.every((each) => each === link);
    expect(new Set(await eventually(ways, isOver, SOON_MS))).toEqual(new Set([link]));
    for (const { netns } of pods) expect(await ping(netns, address)).toBe(true);
  };

  it("is reached by running pods within five seconds, also if the agent was killed meanwhile", async () => {
    const { agent, netns: node } = scene.lab.node1;
    await change("add");
    await expectWay("veth0");
    await move(node, machine);
    await expectWay("eth0");
    await agent.kill("SIGKILL");
    await move(machine, node);
    await agent.start();
    await expectWay("veth0");
    await pods[1]?.check(`su-first${family}`);
    await change("del");
  });

  it("reaches a pod that came while it was away for a moment", async () => {
    const pod = await scene.lab.addPod(scene.lab.node1, `between${family}`);
    await change("add");
    await expectWay("veth0");
    await change("del");
    await pod.attach(`su-first${family}`);
    await change("add");
    await expect.poll(() => wayOf(pod), { timeout: SOON_MS }).toBe("veth0");
    await change("del");
  });

  it("is named where a pod cannot be told of it, and the agent stays ready", async () => {
    const { agent } = scene.lab.node1;
    const pod = await scene.addPod(scene.lab.node1, `deaf${family}`, {});
    await pod.netns.ip("link set veth0 down");
    await change("add");
    const namesPod = ({ problems }: HealthRecord): boolean => problems.some((text) => text.includes(pod.containerId));
    const health = await eventually(() => agent.get("/v1/health"), namesPod, SOON_MS);
    expect([health.status, health.problems.join()]).toEqual([
      "ready",
      expect.stringContaining(`${pod.containerId} cannot be restored: The pod does not know the node's addresses: `),
    ]);
    await pod.netns.ip("link set veth0 up");
    const isEmpty = ({ problems }: HealthRecord): boolean => problems.length === 0;
    expect((await eventually(() => agent.get("/v1/health"), isEmpty)).problems).toEqual([]);
    await change("del");
  });
});

describe.each(FAMILIES)("rules of others for IPv%i that come to stand before Berth's", (family) => {
  const node = () => scene.lab.node1.netns;
  const source = segmentAddress(0, 11, family);
  const rules = [
    `from ${source}`,
    `from ${source}/${family === 4 ? 24 : 64} iif lo`,
    `to ${segmentAddress(0, 0, family)}/${family === 4 ? 24 : 64} pref 7`,
    "not fwmark 0xca6c pref 300",
  ];
  const isConnected = async (pod: LabPod): Promise<boolean> =>
    (await ping(node(), pod.address(family))) && (await ping(pod.netns, source));

  it("cut no pod off its node, and no later one", async () => {
    await node().ip(`-${family} route add default via ${segmentAddress(0, 1, family)} dev eth0 table 7`);
    for (const rule of rules) await node().ip(`-${family} rule add ${rule} lookup 7`);
    const isRight = async (): Promise<boolean> =>
      (await scene.client.call("check", scene.network)).exitCode === 0 && (await isConnected(scene.client));
    expect(await eventually(isRight, Boolean, SOON_MS)).toBe(true);
    const later = await scene.addPod(scene.lab.node1, `later${family}`, {});
    expect([await isConnected(scene.client), await isConnected(later)]).toEqual([true, true]);
    for (const rule of rules) await node().ip(`-${family} rule del ${rule} lookup 7`);
    expect([await isConnected(scene.client), await isConnected(later)]).toEqual([true, true]);
    await scene.client.check(scene.network);
    expect((await node().ip(`-${family} rule`)).match(/lookup 500/g)).toHaveLength(1);
  });
});

it("a sandbox that copies a pod's links in their order, and takes the addresses, reaches services by its node", async () => {
  const pod = await scene.addPod(scene.lab.node1, "copied", {});
  const inner = await scene.lab.addNetns("sandbox");
  const copies = await takeLinks(pod.netns);
  const ofPair = copies.find(({ name }) => name === "veth0")?.routes.map(({ dst }) => dst);
  const nodes = FAMILIES.map((family) => segmentAddress(0, 11, family));
  expect(ofPair).toEqual(expect.arrayContaining([...ENTRY.serviceCIDR, ...nodes]));
  await putLinks(pod.netns, inner, copies);
  await scene.withService(segmentAddress(0, 12, 4), { address: SERVICE[4], port: PORT }, async () => {
    for (const protocol of PROTOCOLS) expect(await ask(inner, SERVICE[4], PORT, { protocol })).toBeDefined();
  });
  const node = segmentAddress(0, 11, 4);
  expect((await ask(inner, node, PORT)).seenPeer).toBe(pod.address(4));
});

it("a pod's addresses stand in lists without any of its pair", async () => {
  const { netns } = scene.neighbour;
  const own = FAMILIES.map((family) => scene.neighbour.address(family));
  expect((await requireCommand(netns.enter(["hostname", "-I"]))).trim().split(" ")).toEqual(own);
  const isIpv4 = "({ family, internal }) => family === 'IPv4' && !internal";
  const list = `Object.values(os.networkInterfaces()).flat().filter(${isIpv4}).map(({ address }) => address).join()`;
  expect((await requireCommand(netns.enter(["node", "-p", list]))).trim()).toBe(own[0]);
});

it.each([
  ["its NIC's", { mtu: 1_400 }, {}, 1_400],
  ["the one that is set", { mtu: 1_400 }, { vethMTU: 1_380 }, 1_380],
])("a pair has the MTU that is %s, at both ends", async (_what, nic, settings, wanted) => {
  const network = `su-mtu-${wanted}`;
  await scene.lab.define(network, [
    { ...macvlanOn(0), ...nic },
    { ...ENTRY, ...settings },
  ]);
  const pod = await scene.lab.addPod(scene.lab.node1, `mtu${wanted}`);
  await pod.attach(network);
  const [end] = await pod.netns.ipJson<{ mtu: number; link_index: number }>("link show veth0");
  const links = await scene.lab.node1.netns.ipJson<{ ifindex: number; mtu: number }>("link");
  expect([end?.mtu, links.find(({ ifindex }) => ifindex === end?.link_index)?.mtu]).toEqual([wanted, wanted]);
  await pod.check(network);
});

it("a node whose new links do not forward forwards pods' packets", async () => {
  const { netns } = scene.lab.node1;
  const setting = (value: string) => writeSysctl(netns.path, "ipv4/conf/default/forwarding", value);
  setting("0");
  onTestFinished(() => setting("1"));
  const pod = await scene.addPod(scene.lab.node1, "still", {});
  await scene.withService(segmentAddress(0, 12, 4), { address: SERVICE[4], port: PORT }, async () => {
    await expect(ask(pod.netns, SERVICE[4], PORT)).resolves.toBeDefined();
  });
});

interface LinkCopy {
  readonly name: string;
  readonly addresses: readonly { readonly local: string; readonly prefixlen: number }[];
  readonly routes: readonly { readonly dst: string; readonly gateway?: string }[];
}

/**
 * Acts as runsc: of one link after the other reads addresses and routes, and takes the addresses away before it reads
 * the next one.
 */
async function takeLinks(pod: Netns): Promise<LinkCopy[]> {
  const copies: LinkCopy[] = [];
  for (const { ifname: name } of await pod.ipJson<{ ifname: string }>("link show up")) {
    const [link] = await pod.ipJson<{ addr_info: LinkCopy["addresses"] }>(`addr show dev ${name}`);
    const addresses = link?.addr_info ?? [];
    if (name === "lo" || addresses.length === 0) continue;
    const routes = [];
    for (const family of FAMILIES)
      routes.push(...(await pod.ipJson<LinkCopy["routes"][number]>(`-${family} route show dev ${name}`)));
    for (const { local, prefixlen } of addresses) await pod.ip(`addr del ${local}/${prefixlen} dev ${name}`);
    copies.push({ name, addresses, routes });
  }
  return copies;
}

/** Gives another network stack the links with their copied addresses and routes, as far as they concern IPv4. */
async function putLinks(from: Netns, to: Netns, copies: readonly LinkCopy[]): Promise<void> {
  const isIpv4 = (text: string): boolean => !text.includes(":");
  for (const { name, addresses, routes } of copies) {
    await from.ip(`link set ${name} netns ${to.name}`);
    await to.ip(`link set ${name} up`);
    for (const { local } of addresses.filter((each) => isIpv4(each.local)))
      await to.ip(`addr add ${local}/32 dev ${name}`);
    const all = routes.filter(({ dst, gateway = "" }) => isIpv4(dst) && isIpv4(gateway));
    for (const { dst } of all.filter((each) => each.gateway === undefined))
      await to.ip(`route replace ${dst} dev ${name}`);
    for (const { dst, gateway } of all)
      if (gateway !== undefined) await to.ip(`route replace ${dst} via ${gateway} dev ${name}`);
  }
}

async function serving(place: Netns): Promise<AsyncDisposable> {
  const server = await serve(place, PORT);
  return { [Symbol.asyncDispose]: () => server.close() };
}
