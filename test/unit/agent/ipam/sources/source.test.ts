import { describe, expect, it } from "vitest";
import { Assignments, usablePools } from "../../../../../host/agent/ipam/sources/source.ts";
import { PoolCache } from "../../../../../host/ipam/pool-cache.ts";
import { formatIp } from "../../../../../host/net/ip.ts";
import { demandOf, openCore, pool, poolsByName, proposal } from "../../../../world/subjects.ts";
import { ip } from "../../../../world/values.ts";

const BLUE = pool("blue", "10.6.0.0/24");
const at = (address: string, space = "") => ({ ip: ip(address), space });

describe("the addresses that a search has assigned", () => {
  const pick = (ifName: string, address: string) => proposal(address, { ifName });
  const assigned = ({ all }: Assignments) => all.map(({ ifName, ip }) => `${ifName} ${formatIp(ip)}`);

  it("are one for each NIC and family, the last one", () => {
    const assignments = new Assignments();
    assignments.assign([pick("eth0", "10.6.0.1"), pick("eth0", "fd00::1"), pick("net1", "10.6.0.2")]);
    assignments.assign([pick("eth0", "10.6.0.3")]);
    expect(assigned(assignments)).toEqual(["eth0 fd00::1", "net1 10.6.0.2", "eth0 10.6.0.3"]);
  });

  it("stay when another one is dropped", () => {
    const assignments = new Assignments();
    assignments.assign([pick("eth0", "10.6.0.1"), pick("net1", "10.6.0.2")]);
    assignments.drop(at("10.6.0.2"));
    assignments.drop(at("10.6.0.1", "lab"));
    expect(assigned(assignments)).toEqual(["eth0 10.6.0.1"]);
  });
});

it("a search waits for addresses of pools that can hand out some, free or not", () => {
  const none = pool("none", "10.7.0.0/30", { excludeIPs: ["10.7.0.0-10.7.0.3"] });
  const full = pool("full", "10.8.0.0/24", { ips: ["10.8.0.1"] });
  const gone = pool("gone", "10.9.0.0/24");
  const poolCache = new PoolCache(openCore());
  poolCache.apply(poolsByName(BLUE, none, full), []);
  poolCache.mark("", ip("10.8.0.1"));
  const nic = demandOf(
    { ifName: "eth0", pools: [["none", "gone", "blue", "full"]] },
    poolsByName(BLUE, none, full, gone),
  );
  const [demand = expect.unreachable()] = nic.families;
  expect(usablePools(poolCache, demand).map(({ name }) => name)).toEqual(["blue", "full"]);
});
