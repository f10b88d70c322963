import { expect, it } from "vitest";
import { ip } from "../../../../../test/world/values.ts";
import { podDnsName, reverseDnsName } from "../../../cli/export/dns-name.ts";

const LONG = "a".repeat(63);

it.each([
  ["web-0", "", /^web-0$/],
  ["", "shop", undefined],
  [LONG, "shop", /^a{63}\.shop$/],
  [`${LONG}a`, "shop", /^a{52}-[0-9a-f]{10}\.shop$/],
  ["Web", "shop", /^web-[0-9a-f]{10}\.shop$/],
  ["a_b", "shop", /^a-b-[0-9a-f]{10}\.shop$/],
  ["-", "shop", /^[0-9a-f]{10}\.shop$/],
  ["a..b", "shop", /^a\.[0-9a-f]{10}\.b\.shop$/],
  [`${LONG}.${LONG}.${LONG}`, "shop", /^a{52}-[0-9a-f]{10}\.shop$/],
  ["ä\n*", "shop", /^[0-9a-f]{10}\.shop$/],
])("the name of pod %j of namespace %j has labels of the DNS", (pod, namespace, wanted) => {
  const name = podDnsName(pod, namespace);
  if (wanted === undefined) return expect(name).toBeUndefined();
  expect(name).toMatch(wanted);
  expect(name?.split(".").every((label) => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(label))).toBe(true);
  expect(name?.length).toBeLessThanOrEqual(127);
});

it("different pods have different names", () => {
  const pods = ["web", "Web", "wEb", "a_b", "a-b", "a b", `${LONG}a`, `${LONG}b`, "", "-", "."];
  expect(new Set(pods.map((pod) => podDnsName(pod, "shop"))).size).toBe(pods.length);
});

it.each([
  ["10.6.0.21", undefined, "21.0.6.10.in-addr.arpa"],
  ["10.6.0.0", 8, "10.in-addr.arpa"],
  ["2001:db8::567:89ab", undefined, "b.a.9.8.7.6.5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa"],
  ["2001:db8::", 32, "8.b.d.0.1.0.0.2.ip6.arpa"],
])("%s with length %s is looked up as %s", (text, length, name) => expect(reverseDnsName(ip(text), length)).toBe(name));
