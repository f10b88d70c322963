import { expect, it } from "vitest";
import { addressConflicts, type ConflictAction, describeProxyArp } from "../../../host/ipam/conflict.ts";
import { cases } from "../../world/rows.ts";
import { ip, mac } from "../../world/values.ts";

const RIVAL = mac("02:00:00:00:00:99");
const NIC = { ip: ip("10.6.0.7"), pool: "blue", mac: RIVAL, ifName: "eth0", source: undefined };
const refused = (action: ConflictAction, more: object = {}) => addressConflicts({ ...NIC, action, ...more });
const USED = 'Address 10.6.0.7 of pool "blue" is in use by 02:00:00:00:00:99 on the segment of interface "eth0"';
const PROXY =
  "ProxyArpSuspected: that machine answers for addresses of others, so none is quarantined; switch its proxy ARP off";

const source = "the annotation";
it.each(cases<ReturnType<typeof refused>>`
  is quarantined ${refused("quarantined")}
    => 104 USED; it is quarantined until that machine is silent; the next attempt gets another address if the pool has one
  was requested ${refused("quarantined", { source })}
    => 104 USED; it is quarantined; let the annotation ask for another address
  is a proxy's ${refused("proxyArp", { source })} => 104 USED; PROXY
  is another machine's that did not say its MAC address ${refused("proxyArp", { mac: undefined })}
    => 104 Address 10.6.0.7 of pool "blue" is in use by another machine on the segment of interface "eth0"; PROXY
  went to another attachment ${refused("superseded")}
    => 11 Address 10.6.0.7 of pool "blue" has gone to another attachment of the same pod meanwhile; try again
`)("conflict: an address that %s", (_, { code, message }, wanted) =>
  expect(`${code} ${message}`).toBe(wanted.replace("USED", USED).replace("PROXY", PROXY)),
);

it("conflict: proxy ARP of a gateway names it", () => {
  const rest = 'answers for addresses of pool "blue"; none is quarantined for it; switch its proxy ARP off';
  const told = describeProxyArp({ mac: RIVAL, pool: "blue", gateway: ip("10.6.0.1") });
  expect(told).toBe(`ProxyArpSuspected: 02:00:00:00:00:99, the gateway 10.6.0.1, ${rest}`);
});
