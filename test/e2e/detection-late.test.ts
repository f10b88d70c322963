import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { cnitool, forgetNetwork, type PluginOutcome } from "../lab/cnitool.ts";
import { macvlan } from "../lab/manifests.ts";
import { pairsOf } from "../lab/netns/coordinator.ts";
import { ASCENDING_SIX, RIVAL_MAC, type Segment, withSegment } from "../lab/netns/segment.ts";
import type { Netns } from "../lab/netns.ts";
import { eventually } from "../lab/waiting.ts";

const CONF = { mode: "underlay", detectIPConflict: true };

/** A chain whose main plugin asks for addresses before it makes the NIC: nothing can be found out early. */
class LatePod {
  readonly #segment: Segment;
  readonly netns: Netns;

  constructor(segment: Segment, netns: Netns) {
    this.#segment = segment;
    this.netns = netns;
  }

  /** `berth`, and then the NIC with its result. Gives the addresses. */
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

  /** As a main plugin does it, with the kernel's own questions. */
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
    return this.#segment.run(plugin, command, this.netns, { name: this.netns.name, conf });
  }
}

const latePod = async (segment: Segment): Promise<LatePod> => new LatePod(segment, await segment.pod());

describe("a conflict that only the coordinator can find", () => {
  it("takes the address off the NIC, quarantines it, and is code 104; the retry gets another", () =>
    withSegment({}, async (segment) => {
      await segment.rival.ip("addr add 10.66.0.1/29 dev wire");
      const pod = await latePod(segment);
      const addresses = await pod.attach();
      expect(addresses).toEqual(["10.66.0.1/29"]);
      expect((await pod.coordinate(addresses)).stdout).toMatchObject({
        code: 104,
        msg: `Address 10.66.0.1 of pool "blue" is in use by ${RIVAL_MAC} on the segment of interface "eth0"; it is quarantined until that machine is silent; the next attempt gets another address if the pool has one`,
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

/** Settings for the addresses that other IPAMs give out here. */
const ALLOWED = { vendor: { enableIPv6: false, hostRouteCIDR: ["10.66.0.0/29"] } };

it("two NICs of one pod on one segment, of another IPAM, do not take each other for another machine, but find one", () =>
  withSegment(ALLOWED, async (segment) => {
    const pod = await segment.pod();
    // Linux answers for an address by every NIC.
    for (const [ifName, address] of Object.entries({ eth0: "10.66.0.1/29", net1: "10.66.0.2/29" })) {
      const outcome = await attachStatic(segment, pod, ifName, address);
      expect(outcome.exitCode, outcome.stderr).toBe(0);
    }
    expect(await pod.ip("-4 -o addr show dev net1")).toContain("10.66.0.2/29");
    await segment.rival.ip("addr add 10.66.0.3/29 dev wire");
    expect((await attachStatic(segment, pod, "net2", "10.66.0.3/29")).stderr).toContain(
      `Address 10.66.0.3 is already in use by ${RIVAL_MAC} on the segment of interface "net2"`,
    );
  }));

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

const six = { vendor: { enableIPv4: false }, pools: ASCENDING_SIX };

it("the kernel's own duplicate detection that has failed is a conflict, even if no machine answers any more", () =>
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
