import { describe, expect, it } from "vitest";
import { ipPool } from "../lab/manifests.ts";
import { RIVAL_MAC, withSegment } from "../lab/netns/segment.ts";
import { PATIENCE } from "../lab/waiting.ts";

const REFUSED = {
  code: 104,
  msg: `Address 10.66.0.1 of pool "blue" is in use by ${RIVAL_MAC} on the segment of interface "eth0"; it is quarantined until that machine is silent; the next attempt gets another address if the pool has one`,
};

describe("a pod whose address another machine has", () => {
  it("is refused; the address never stays on the NIC and has no owner; the retry gets another; silence brings it back", () =>
    withSegment({}, async (segment) => {
      await segment.rival.ip("addr add 10.66.0.1/29 dev wire");
      const [first, pod] = [await segment.pod(), await segment.pod()];
      const web = { name: "web-0" };
      expect(await segment.refused(first, web)).toMatchObject(REFUSED);
      expect(await segment.addressesOf(first)).not.toContain("10.66.0.1");
      expect(await segment.agent.get("/v1/allocations")).toMatchObject([
        {
          ...{ address: "10.66.0.1", pool: "blue", state: "Quarantined", owner: "", containerId: "", pod: "" },
          quarantine: { reason: "Conflict", mac: RIVAL_MAC, parent: "uplink" },
        },
      ]);
      expect((await segment.call("DEL", first, web)).exitCode).toBe(0);
      expect(await segment.usage()).toEqual({ Quarantined: ["10.66.0.1"] });
      expect(await segment.add(pod, web)).toEqual(["10.66.0.2"]);
      expect(await segment.addressesOf(pod)).toContain("10.66.0.2/29");

      await segment.agent.kill("SIGKILL");
      await segment.agent.start();
      expect((await segment.usage()).Quarantined).toEqual(["10.66.0.1"]);

      await segment.rival.ip("addr del 10.66.0.1/29 dev wire");
      await expect.poll(() => segment.usage(), PATIENCE).toEqual({ Bound: ["10.66.0.2"] });
      expect(await segment.add(await segment.pod())).toEqual(["10.66.0.1"]);
    }));

  it("whose NIC is a tap is refused with code 106 and the remedy, and keeps nothing", () =>
    withSegment({}, async (segment) => {
      const pod = await segment.pod();
      await pod.ip("tuntap add eth0 mode tap");
      expect(await segment.addDirectly(pod).answer).toMatchObject({
        code: 106,
        msg: 'Conflict detection failed for 10.66.0.1: Cannot probe on link "eth0": it is a tap, which has no carrier until a program opens it; set "detectIPConflict" and "detectGateway" to false in the coordinator\'s entry of this network',
      });
      expect(await segment.usage()).toEqual({});
      await segment.setDetection({ detectIPConflict: false });
      expect((await segment.addDirectly(pod).answer).ips).toHaveLength(1);
    }));
});

const pools = {
  "blue.yaml": ipPool("blue", "10.66.0.0/29", { default: true, ips: ["10.66.0.1"] }),
  "six.yaml": ipPool("six", "fd00:66::/64", { default: true, ips: ["fd00:66::1"] }),
};

it("a fabric that answers questions to all with the MAC of the pod that had the address (ARP and ND suppression) keeps the only address of a pool from no other pod, unless a machine with that MAC lives", () =>
  withSegment({ vendor: {}, pools }, async (segment) => {
    const [former, next, last] = [await segment.pod(), await segment.pod(), await segment.pod()];
    const both = await segment.add(former);
    expect(both).toEqual(["10.66.0.1", "fd00:66::1"]);
    const { address = "" } = (await former.ipJson<{ address: string }>("link show dev eth0"))[0] ?? {};
    expect((await segment.call("DEL", former)).exitCode).toBe(0);
    const { rival } = segment;
    await rival.ip(`link set wire address ${address}`);
    for (const each of ["10.66.0.1/29", "fd00:66::1/64"]) await rival.ip(`addr add ${each} dev wire nodad`);
    const toAllOnly = "ether daddr & 01:00:00:00:00:00 == 00:00:00:00:00:00 drop";
    const chain = `chain in { type filter hook ingress device wire priority 0; ${toAllOnly}; }`;
    expect((await rival.exec(["nft", `table netdev fabric { ${chain}; }`])).stderr).toBe("");
    expect(await segment.add(next)).toEqual(both);
    expect((await segment.call("DEL", next)).exitCode).toBe(0);
    await rival.exec(["nft", "delete", "table", "netdev", "fabric"]);
    expect((await segment.refused(last)).msg).toContain(`is in use by ${address}`);
  }));

it("a switch that answers for every address does not empty the pool, and is reported", () =>
  withSegment({}, async (segment) => {
    await segment.rival.ip("route add local 10.66.0.0/29 dev lo");
    const texts: string[] = [];
    for (let number = 1; number <= 4; number++) {
      const { code, msg } = await segment.refused(await segment.pod(), { name: "web-0" });
      expect(code).toBe(104);
      texts.push(msg);
    }
    expect(texts.slice(2).filter((text) => !text.includes("ProxyArpSuspected"))).toEqual([]);
    expect(await segment.usage()).toEqual({});
    const { problems } = await segment.agent.get("/v1/health");
    expect(problems).toEqual([
      expect.stringContaining(`ProxyArpSuspected: ${RIVAL_MAC} answers for addresses of pool "blue"`),
    ]);
    expect(segment.agent.stderr()).toContain("ProxyArpSuspected");
    await segment.rival.ip("route del local 10.66.0.0/29 dev lo");
    expect(await segment.add(await segment.pod())).toEqual([expect.stringMatching(/^10\.66\.0\.[1-6]$/)]);
  }));

it("an old sandbox of the same pod loses the address, and is no conflict, unless its NIC is another's by now, by its MAC", () =>
  withSegment({}, async (segment) => {
    // The second is as the coordinator makes it of the address with podMACPrefix.
    for (const [index, mac] of [undefined, "0a:1b:0a:42:00:02", "0a:1b:00:00:00:01"].entries()) {
      const [old, young] = [await segment.pod(), await segment.pod()];
      const [address, web] = [`10.66.0.${index + 1}`, { name: `web-${index}` }];
      expect(await segment.add(old, web)).toEqual([address]);
      if (mac !== undefined) await old.ip(`link set eth0 address ${mac}`);
      if (index < 2) {
        expect(await segment.add(young, web)).toEqual([address]);
        expect(await segment.addressesOf(old)).not.toContain(address);
        expect(await segment.addressesOf(young)).toContain(address);
      } else {
        expect((await segment.refused(young, web)).msg).toContain(`in use by ${mac}`);
        expect(await segment.addressesOf(old)).toContain(address);
      }
      expect((await segment.call("DEL", old, web)).exitCode).toBe(0);
      expect((await segment.usage()).Bound).toHaveLength(Math.min(index + 1, 2));
    }
  }));
