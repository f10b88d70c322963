/** What a NIC loses that routers of its segment gave it. */
import { expect, it } from "vitest";
import { planUnlearning } from "../../../host/coordinator/plan/learned-state.ts";
import { formatOperation } from "../../../host/plan/text.ts";
import { ip } from "../../world/values.ts";
import { applyStatement, NOTHING } from "./plan-model.ts";
import { readStatement } from "./plan-words.ts";

const prefixes = "fd00:6::/64 fd00:a::1/128 fd00:4::/64 fe80::/64 ff00::/8 fd00:bad::/64".split(" ");
const lines = [
  ...["eth0", "net1"].map((name) => `link ${name} macvlan`),
  "addr fd00:6::21/64 dev eth0",
  "addr fd00:4::21/64 dev eth0 flags 256",
  "addr fe80::200:ff:fe06:21/64 dev eth0 scope 253",
  "addr 10.6.0.22/24 dev eth0 flags 1",
  "addr fd00:bad::21/64 dev eth0 flags 256",
  "addr fd00:bad::77/64 dev eth0 flags 1",
  ...prefixes.map((prefix) => `route ${prefix} dev eth0 proto kernel metric 256`),
  "-6 route default via fd00:6::1 dev eth0 proto boot",
  ...["eth0", "net1"].map((name) => `-6 route default via fe80::bad dev ${name} proto ra`),
];

it("is their addresses, prefixes and routes; nothing that a plugin gave, nothing of another NIC", () => {
  const { pod } = lines.map((line) => readStatement(`pod: ${line}`)).reduce(applyStatement, NOTHING);
  const addresses = pod.addresses.with(0, { ...pod.addresses[0], peer: ip("fd00:a::1") } as never);
  expect(planUnlearning({ ...pod, addresses }, "eth0", [ip("fd00:4::21")]).map(formatOperation)).toEqual([
    "pod: ip -6 route del default via fe80::bad dev eth0 proto ra",
    "pod: ip -6 route del fd00:bad::/64 dev eth0 proto kernel metric 256",
    "pod: ip addr del fd00:bad::21/64 dev eth0",
    "pod: ip addr del fd00:bad::77/64 dev eth0",
  ]);
});
