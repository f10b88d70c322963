/**
 * Conflicts on the segment of an ipvlan NIC, on a kernel that has it: the built shim and agent for the early stage,
 * the agent's own function for the late one, since this kernel cannot have the tables of an underlay pod.
 *
 *   pod eth0 (ipvlan) ── up0 (the guest's own namespace, the agent's) ───── eth0 other
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { detectOnNic, type LateDetectionDeps } from "../../host/agent/coordinator/late-detection.ts";
import { type AttachRequest, decodeRequest } from "../../host/cni/request.ts";
import { DEFAULT_COORDINATOR_CONF } from "../../host/config/coordinator-settings.ts";
import { detectConflict } from "../../host/coordinator/detect-conflict.ts";
import { observeLink } from "../../host/kernel/observe-link.ts";
import { openNamespace } from "../../host/kernel/open-namespace.ts";
import type { Agent } from "../lab/agent.ts";
import { runPlugin } from "../lab/cnitool.ts";
import { requireCommand } from "../lab/command.ts";
import { ipPool, vendorConf } from "../lab/manifests.ts";
import { NetnsWorld } from "../lab/netns/world.ts";
import type { Netns } from "../lab/netns.ts";
import { ip } from "../world/values.ts";

const RIVAL_MAC = "02:11:22:33:44:55";
const POOLS = {
  "blue.yaml": ipPool("blue", "10.61.0.0/29", { default: true, selection: "ascending" }),
  "six.yaml": ipPool("six", "fd00:61::/125", { default: true, selection: "ascending", ips: ["fd00:61::1-fd00:61::6"] }),
};
const COORDINATOR = JSON.stringify({
  ...{ apiVersion: "ipam.vendor.io/v1", kind: "Coordinator", metadata: { name: "default" } },
  spec: { detectIPConflict: true },
});

const world = new NetnsWorld("udi");
let other: Netns;
let agent: Agent;
let pods = 0;

/** The guest's own namespace stands for the node: it ends with the guest. */
const onNode = (line: string) => requireCommand(["ip", ...line.split(" ")]);

async function addPod(): Promise<Netns> {
  const pod = await world.addNetns(`pod${pods++}`);
  await requireCommand(pod.enter(["sysctl", "-qw", "net.ipv6.conf.default.addr_gen_mode=1"]));
  await onNode(`link add link up0 name ipvl0 type ipvlan mode l2`);
  await onNode(`link set ipvl0 netns ${pod.name} name eth0`);
  return pod;
}

beforeAll(async () => {
  other = await world.addNetns("other");
  await onNode(`link add up0 type veth peer name eth0 netns ${other.name}`);
  await onNode("link set up0 up");
  await other.ip(`link set eth0 address ${RIVAL_MAC} up`);
  const config = { "conf.yaml": vendorConf({}), "coordinator.yaml": COORDINATOR, ...POOLS };
  agent = await world.addAgent({ config });
});

afterAll(async () => {
  await world.delete();
  await onNode("link delete up0").catch(() => {});
});

/** `berth` as the main plugin calls it: the NIC is there, and down. */
async function allocate(pod: Netns): Promise<{ code?: number; msg?: string; ips?: { address: string }[] }> {
  const stdin = { cniVersion: "1.0.0", name: "ipv", type: "ipvlan", ipam: { type: "berth" } };
  const attachment = { containerId: `c-${pod.name}`, netns: pod.path, ifName: "eth0" };
  return (await runPlugin({ plugin: "berth", command: "ADD", ...attachment, stdin, env: agent.env })).stdout;
}

describe("an ipvlan NIC", () => {
  it("receives no answer to a probe from 0.0.0.0 itself", async () => {
    await other.ip("addr add 10.61.0.1/29 dev eth0");
    const pod = await addPod();
    await pod.ip("link set eth0 up");
    using open = openNamespace(pod.path);
    const nic = observeLink(pod.path, "eth0") ?? expect.unreachable();
    const mac = nic.mac ?? expect.unreachable();
    const link = { netnsPath: open.entrance, index: nic.index, name: "eth0", mac, kind: "ipvlan" };
    const probe = { addresses: [ip("10.61.0.1")], windowMs: 500, random: Math.random };
    expect(await detectConflict({ link, ...probe, signal: new AbortController().signal })).toBeUndefined();
  });

  it("early: is asked for on its parent, both families; addresses of another child of the parent are no conflict", async () => {
    await other.ip("addr replace 10.61.0.1/29 dev eth0");
    await other.ip("addr replace fd00:61::1/125 dev eth0 nodad");
    const sibling = await addPod();
    await sibling.ip("link set eth0 up");
    await sibling.ip("addr add 10.61.0.2/29 dev eth0");
    const pod = await addPod();
    const refusals = [await allocate(pod), await allocate(pod)].map(({ msg = "" }) => msg).sort();
    expect(refusals).toEqual([
      expect.stringContaining(`Address 10.61.0.1 of pool "blue" is in use by ${RIVAL_MAC}`),
      expect.stringContaining(`Address fd00:61::1 of pool "six" is in use by ${RIVAL_MAC}`),
    ]);
    expect((await allocate(pod)).ips?.map(({ address }) => address)).toEqual(["10.61.0.2/29", "fd00:61::2/125"]);
  });

  it("late: is asked for on its parent; then the gateway is, from the address", async () => {
    await other.ip("addr replace 10.61.0.5/29 dev eth0");
    const pod = await addPod();
    await pod.ip("link set eth0 up");
    const conf = { ...DEFAULT_COORDINATOR_CONF, detectIPConflict: true, detectGateway: true };
    const detectOptions = { ...conf.detectOptions, retry: 3, timeoutMs: 5_000 };
    const detect = async (address: string): Promise<string[]> => {
      await pod.ip(`addr add ${address}/29 dev eth0`);
      const ips = [{ address: `${address}/29`, gateway: "10.61.0.5", interface: 0 }];
      const result = { cniVersion: "1.0.0", interfaces: [{ name: "eth0", sandbox: pod.path }], ips };
      const headers = { "cni-command": "ADD", "cni-containerid": "c", "cni-netns": pod.path, "cni-ifname": "eth0" };
      const netConf = { cniVersion: "1.0.0", name: "ipv", type: "coordinator", prevResult: result };
      const request = decodeRequest("coordinator", { ...headers, "cni-path": "/bin" }, JSON.stringify(netConf));
      const prevResult = request?.netConf.prevResult;
      if (prevResult === undefined) throw new Error("no result");
      using open = openNamespace(pod.path);
      const deps: LateDetectionDeps = {
        registry: { findAttachment: async () => [], undo: async () => {} },
        prober: { conflict: () => Promise.reject(new Error("Berth did not allocate the address")) },
        answered: { has: () => false, isShared: () => false, takeAnswer: () => undefined, macOf: () => undefined },
      };
      const input = { conf: { ...conf, detectOptions }, prevResult, pod: open, signal: new AbortController().signal };
      await detectOnNic(deps, request as AttachRequest, input);
      return (await pod.ip("-4 -o addr show dev eth0")).split("\n").filter((line) => line !== "");
    };
    await expect(detect("10.61.0.1")).rejects.toMatchObject({
      code: 104,
      message: expect.stringContaining(`Address 10.61.0.1 is already in use by ${RIVAL_MAC}`),
    });
    expect(await pod.ip("-4 -o addr show dev eth0")).toBe("");
    expect(await detect("10.61.0.4")).toHaveLength(1);
    await onNode("link set up0 down");
    await expect(detect("10.61.0.3")).rejects.toThrow(
      'an ipvlan, which is probed on its parent link, "up0", which is down',
    );
  });
});
