import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { openCapture } from "../lab/capture.ts";
import { cnitool, forgetNetwork, type PluginOutcome, runPlugin } from "../lab/cnitool.ts";
import { requireCommand, runCommand } from "../lab/command.ts";
import type { Frame } from "../lab/frame.ts";
import { macvlan } from "../lab/manifests.ts";
import { pairsOf } from "../lab/netns/coordinator.ts";
import { ASCENDING_SIX, RIVAL_MAC, type Segment, withSegment } from "../lab/netns/segment.ts";
import type { Netns } from "../lab/netns.ts";
import { eventually } from "../lab/waiting.ts";

const CONF = { mode: "underlay", detectIPConflict: true };

interface LateOptions {
  readonly conf?: object;
  /** Name of the pod, whatever its namespace. */
  readonly name?: string;
}

/** A chain whose main plugin asks for addresses before it makes the NIC: nothing can be found out early. */
class LatePod {
  readonly #segment: Segment;
  readonly netns: Netns;
  readonly #name: string;

  constructor(segment: Segment, netns: Netns, name = netns.name) {
    this.#segment = segment;
    this.netns = netns;
    this.#name = name;
  }

  /** `berth`, and then the NIC with what it has said. Gives the addresses. */
  async attach(): Promise<string[]> {
    const addresses = await this.allocate();
    await this.makeNic(addresses);
    return addresses;
  }

  async allocate(): Promise<string[]> {
    const outcome = await this.#call("berth", "ADD");
    expect(outcome.exitCode, outcome.text).toBe(0);
    return outcome.stdout.ips.map(({ address }: { address: string }) => address);
  }

  async makeNic(addresses: readonly string[], state: "up" | "down" = "up"): Promise<void> {
    await this.#segment.node.ip(`link add link uplink name eth0 netns ${this.netns.name} type macvlan mode bridge`);
    await this.give(addresses);
    await this.netns.ip(`link set eth0 ${state}`);
  }

  /** As a main plugin does it, with what the kernel asks by itself. */
  async give(addresses: readonly string[]): Promise<void> {
    for (const address of addresses) await this.netns.ip(`addr add ${address} dev eth0`);
    await this.netns.ip("link set eth0 up");
  }

  coordinate(addresses: readonly string[], conf: object = CONF): Promise<PluginOutcome> {
    const ips = addresses.map((address) => ({ address, interface: 0 }));
    const interfaces = [{ name: "eth0", sandbox: this.netns.path }];
    return this.#call("coordinator", "ADD", { prevResult: { cniVersion: "1.0.0", interfaces, ips }, ...conf });
  }

  /** As a runtime ends a refused ADD: the chain backwards, and the NIC goes. */
  async detach(): Promise<void> {
    for (const plugin of ["coordinator", "berth"] as const) {
      expect((await this.#call(plugin, "DEL", { mode: "underlay" })).exitCode).toBe(0);
    }
    await this.netns.ip("link delete eth0");
  }

  async addresses(): Promise<string> {
    return this.netns.ip("-o addr show dev eth0");
  }

  #call(plugin: "berth" | "coordinator", command: "ADD" | "DEL", conf: object = {}): Promise<PluginOutcome> {
    return this.#segment.run(plugin, command, this.netns, { name: this.#name, conf });
  }
}

async function latePod(segment: Segment, { name }: LateOptions = {}): Promise<LatePod> {
  return new LatePod(segment, await segment.pod(), name);
}

describe("a conflict that only the coordinator can find", () => {
  it("takes the address off the NIC, quarantines it, and is code 104; the retry gets another", () =>
    withSegment({}, async (segment) => {
      await segment.rival.ip("addr add 10.66.0.1/29 dev wire");
      const pod = await latePod(segment);
      const addresses = await pod.attach();
      expect(addresses).toEqual(["10.66.0.1/29"]);
      expect((await pod.coordinate(addresses)).stdout).toMatchObject({
        code: 104,
        msg: `Address 10.66.0.1 of pool "blue" is in use by ${RIVAL_MAC} on the segment of interface "eth0"; it is quarantined, and the next attempt gets another address`,
      });
      expect(await pod.addresses()).not.toContain("10.66.0.1");
      expect(await segment.agent.get("/v1/allocations")).toMatchObject([
        { state: "Quarantined", quarantine: { mac: RIVAL_MAC, parent: "uplink" } },
      ]);
      await pod.detach();
      const again = await pod.attach();
      expect(again).toEqual(["10.66.0.2/29"]);
      expect((await pod.coordinate(again)).exitCode).toBe(0);
      expect(await segment.usage()).toEqual({ Quarantined: ["10.66.0.1"], Bound: ["10.66.0.2"] });
    }));

  it("is reported before anything is made: there never was a pair", () =>
    withSegment({}, async (segment) => {
      await segment.rival.ip("addr add 10.66.0.1/29 dev wire");
      const pod = await latePod(segment);
      const addresses = await pod.attach();
      const monitor = segment.node.enter(["timeout", "3", "ip", "monitor", "link"]);
      const watching = runCommand(monitor);
      await sleep(200);
      expect((await pod.coordinate(addresses)).stdout).toMatchObject({ code: 104 });
      expect((await watching).stdout).not.toMatch(/veth[0-9a-f]{11}/);
    }));

  it("is not waited for when the attachment is deleted meanwhile: nothing is made afterwards", () =>
    withSegment({}, async (segment) => {
      const pod = await latePod(segment);
      const addresses = await pod.attach();
      const slow = { ...CONF, detectOptions: { window: "10s" } };
      const startMs = performance.now();
      const adding = pod.coordinate(addresses, slow);
      await sleep(1_500);
      await pod.detach();
      const outcome = await adding;
      expect(performance.now() - startMs).toBeLessThan(9_000);
      expect(outcome.stdout).toMatchObject({ code: 11 });
      expect(await pairsOf(segment.node)).toEqual([]);
    }));

  it("of another IPAM's address says that Berth cannot keep it back", () =>
    withSegment({ vendor: { enableIPv6: false, hostRouteCIDR: ["10.99.0.0/24"] } }, async (segment) => {
      await segment.rival.ip("addr add 10.99.0.1/24 dev wire");
      const pod = await latePod(segment);
      await pod.makeNic(["10.99.0.1/24"]);
      expect((await pod.coordinate(["10.99.0.1/24"])).stdout).toMatchObject({
        code: 104,
        msg: `Address 10.99.0.1 is already in use by ${RIVAL_MAC} on the segment of interface "eth0"; Berth did not allocate it, so the IPAM plugin that did may allocate it again`,
      });
      expect(await pod.addresses()).not.toContain("10.99.0.1");
      expect(await segment.usage()).toEqual({});
    }));

  it("with a machine that answers for every address does not get the same address for ever", () =>
    withSegment({}, async (segment) => {
      await segment.rival.ip("route add local 10.66.0.0/29 dev lo");
      const seen: string[] = [];
      for (let attempt = 0; attempt < 9; attempt++) {
        const pod = await latePod(segment, { name: "web-0" });
        const addresses = await pod.attach();
        seen.push(...addresses);
        expect((await pod.coordinate(addresses)).stdout).toMatchObject({ code: 104 });
        await pod.detach();
      }
      expect((await segment.usage()).Quarantined).toBeUndefined();
      expect(new Set(seen.slice(3)).size, seen.join(" ")).toBeGreaterThan(1);
      const { problems } = await segment.agent.get("/v1/health");
      expect(problems).toEqual([expect.stringContaining("ProxyArpSuspected")]);
      const stdin = { cniVersion: "1.1.0", name: segment.network, type: "berth", ipam: { type: "berth" } };
      const status = await runPlugin({ plugin: "berth", command: "STATUS", stdin, env: segment.agent.env });
      expect([status.exitCode, status.stderr]).toEqual([0, expect.stringContaining(`ProxyArpSuspected: ${RIVAL_MAC}`)]);
    }));
});

/** The chain of another IPAM: macvlan with fixed addresses and the coordinator. */
async function attachStatic(segment: Segment, pod: Netns, ifName: string, address: string): Promise<PluginOutcome> {
  const network = `${segment.network}-${ifName}`;
  const main = macvlan("uplink", { type: "static", addresses: [{ address }] });
  const list = { cniVersion: "1.0.0", name: network, plugins: [main, { type: "coordinator", detectIPConflict: true }] };
  await writeFile(join(segment.agent.cniConfDir, `${network}.conflist`), JSON.stringify(list));
  const { agent, node } = segment;
  const options = { confDir: agent.cniConfDir, env: agent.env, node, ifName };
  const outcome = await cnitool("add", network, pod.path, options);
  if (outcome.exitCode !== 0) await cnitool("del", network, pod.path, options);
  await forgetNetwork(network);
  return outcome;
}

describe("probes for a conflict", () => {
  const detectOptions = { retry: 5, interval: "100ms", timeout: "600ms" };
  /** Returns the number of probes for the address, and the time of the work. */
  const probesOf = async (segment: Segment, address: string, work: () => Promise<unknown>) => {
    using capture = await openCapture(segment.rival, "wire");
    const startMs = performance.now();
    await work();
    const tookMs = performance.now() - startMs;
    const isProbe = ({ type, from, to, protocol }: Frame) =>
      protocol === "arp" && type === 1 && from === "0.0.0.0" && to === address;
    return { count: capture.frames().filter(isProbe).length, tookMs };
  };

  it("are as many as the options say, before the address is on the NIC and after", () =>
    withSegment({ detectOptions }, async (segment) => {
      const [first, second] = [await segment.pod(), await latePod(segment)];
      const early = await probesOf(segment, "10.66.0.1", () => segment.add(first));
      const addresses = await second.attach();
      const late = await probesOf(segment, "10.66.0.2", () => second.coordinate(addresses));
      for (const { count, tookMs } of [early, late]) {
        expect(count).toBe(detectOptions.retry);
        expect(tookMs).toBeGreaterThanOrEqual(1_000);
      }
    }));

  it("are refused when they take longer than an ADD may", () =>
    withSegment({ detectOptions: { retry: 100 } }, async (segment) => {
      const wanted = "found 100 requests, 1s apart, and 1s for the last answer: 1m40s, want at most 35s in all";
      expect(await segment.refused(await segment.pod())).toMatchObject({
        code: 7,
        msg: expect.stringContaining(wanted),
      });
      const late = await latePod(segment);
      const addresses = await late.attach();
      expect((await late.coordinate(addresses)).stdout).toMatchObject({
        code: 7,
        msg: expect.stringContaining(wanted),
      });
    }));
});

/** Settings for the addresses that other IPAMs give out here. */
const ALLOWED = { vendor: { enableIPv6: false, hostRouteCIDR: ["10.66.0.0/29"] } };

describe("two NICs of one pod on one segment, with another IPAM", () => {
  it("do not take each other for another machine: Linux answers for an address by every NIC", () =>
    withSegment(ALLOWED, async (segment) => {
      const pod = await segment.pod();
      for (const [ifName, address] of Object.entries({ eth0: "10.66.0.1/29", net1: "10.66.0.2/29" })) {
        const outcome = await attachStatic(segment, pod, ifName, address);
        expect(outcome.exitCode, outcome.stderr).toBe(0);
      }
      expect(await pod.ip("-4 -o addr show dev net1")).toContain("10.66.0.2/29");
    }));

  it("still find a machine that has the second NIC's address", () =>
    withSegment(ALLOWED, async (segment) => {
      await segment.rival.ip("addr add 10.66.0.2/29 dev wire");
      const pod = await segment.pod();
      expect((await attachStatic(segment, pod, "eth0", "10.66.0.1/29")).exitCode).toBe(0);
      const outcome = await attachStatic(segment, pod, "net1", "10.66.0.2/29");
      expect(outcome.stderr).toContain(
        `Address 10.66.0.2 is already in use by ${RIVAL_MAC} on the segment of interface "net1"`,
      );
    }));
});

it("an agent that was restarted between the two stages asks again: silence attaches, a machine that came meanwhile is a conflict", () =>
  withSegment({}, async (segment) => {
    const [silent, taken] = [await latePod(segment), await latePod(segment)];
    for (const pod of [silent, taken]) await pod.makeNic([], "down");
    const addresses = [await silent.allocate(), await taken.allocate()] as const;
    await segment.agent.kill("SIGKILL");
    await segment.agent.start();
    await segment.rival.ip(`addr add ${addresses[1][0]} dev wire`);
    for (const [index, pod] of [silent, taken].entries()) await pod.give(addresses[index] ?? []);
    expect((await silent.coordinate(addresses[0])).exitCode).toBe(0);
    expect((await taken.coordinate(addresses[1])).stdout).toMatchObject({ code: 104 });
    expect(await segment.usage()).toEqual({ Bound: ["10.66.0.1"], Quarantined: ["10.66.0.2"] });
  }));

describe("the kernel's own duplicate detection", () => {
  const six = {
    vendor: { enableIPv4: false },
    pools: ASCENDING_SIX,
  };

  it("that has failed is a conflict, even if no machine answers any more", () =>
    withSegment(six, async (segment) => {
      const pod = await latePod(segment);
      const [address = ""] = await pod.allocate();
      await segment.rival.ip(`addr add ${address} dev wire nodad`);
      await pod.makeNic([address]);
      await eventually(
        () => pod.addresses(),
        (text) => text.includes("dadfailed"),
      );
      await segment.rival.ip(`addr del ${address} dev wire`);
      expect((await pod.coordinate([address])).stdout).toMatchObject({
        code: 104,
        msg: expect.stringContaining('Address fd00:66::1 of pool "six" is in use by another machine'),
      });
      expect(await pod.addresses()).not.toContain("fd00:66::1");
      expect(await segment.agent.get("/v1/allocations")).toMatchObject([
        { address: "fd00:66::1", state: "Quarantined", quarantine: { parent: "uplink" } },
      ]);
    }));

  it.each([
    ["of the NIC alone is switched off: the address can be used at once", 0],
    ["that is on for all links asks all the same: the address can be used a little later", 1],
  ])("%s", (_, always) =>
    withSegment(six, async (segment) => {
      const pod = await segment.pod();
      // Three questions, a second each: there is time to see it ask.
      const settings = [`net.ipv6.conf.all.accept_dad=${always}`, "net.ipv6.conf.default.dad_transmits=3"];
      await requireCommand(pod.enter(["sysctl", "-qw", ...settings]));
      const [address = ""] = await segment.add(pod);
      const lineOf = async (): Promise<string> =>
        (await segment.addressesOf(pod)).split("\n").find((line) => line.includes(`${address}/`)) ?? "gone";
      const first = await lineOf();
      expect(first.includes("tentative"), first).toBe(always === 1);
      const last = await eventually(lineOf, (line) => !line.includes("tentative"));
      expect(last).toContain("scope global");
      expect(last).not.toContain("dadfailed");
    }),
  );
});
