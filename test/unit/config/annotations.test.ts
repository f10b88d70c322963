import { describe, expect, it } from "vitest";
import {
  ALL_ENABLED,
  ANNOTATION_PREFIX,
  decodeNamespaceAnnotations,
  decodePodAnnotations,
  requireFamilies,
} from "../../../host/config/annotations.ts";
import { ConfigError } from "../../../host/config/config-error.ts";
import { parseIp } from "../../../host/net/ip.ts";
import { parsePrefix } from "../../../host/net/prefix.ts";
import { rows } from "../../world/rows.ts";

const decodePod = (key: string, value: string) => decodePodAnnotations({ [ANNOTATION_PREFIX + key]: value });

describe("decodePodAnnotations accepts", () => {
  it("none, and those of others", () => {
    expect(decodePodAnnotations({})).toEqual({});
    expect(decodePodAnnotations({ "example.com/ippool": "{", "ipam.vendor.iox/ippool": "" })).toEqual({});
  });

  const pools = (name: string, cleangateway = false) => ({ ipv4: [name], cleangateway });
  const route = (dst: string, gw: string) => ({ dst: parsePrefix(dst), gw: parseIp(gw) });
  it.each<[key: string, value: string, expected: object]>([
    ["subnet", '{"ipv4":["a","b"]}', { subnet: { ipv4: ["a", "b"] } }],
    ["subnets", '[{"interface":"eth0","ipv6":["a"]}]', { subnets: [{ interface: "eth0", ipv6: ["a"] }] }],
    ["ippool", ' {"ipv4":["blue-*"],\n"ipv6":["b[0-9]"]} ', { ippool: { ipv4: ["blue-*"], ipv6: ["b[0-9]"] } }],
    ["ippool", '{"ipv4":["a","a"]}', { ippool: { ipv4: ["a", "a"] } }],
    [
      "ippools",
      '[{"interface":"eth0","ipv4":["a"],"cleangateway":true},{"interface":"net1","ipv4":["b"]}]',
      { ippools: [Object.assign(pools("a", true), { interface: "eth0" }), { interface: "net1", ...pools("b") }] },
    ],
    ["ippools", '[{"ipv4":["a"]},{"ipv4":["b"]}]', { ippools: [pools("a"), pools("b")] }],
    [
      "routes",
      '[{"dst":"10.0.0.0/8","gw":"10.6.0.1"},{"dst":"::/0","gw":"fd00::1"}]',
      { routes: [route("10.0.0.0/8", "10.6.0.1"), route("::/0", "fd00::1")] },
    ],
    [
      "ips",
      '[{"ipv4":"10.6.0.50","ipv6":"FD00::50"},{"interface":"net1","ipv4":"10.7.0.50"}]',
      { ips: [{ ipv4: parseIp("10.6.0.50"), ipv6: parseIp("fd00::50") }, { interface: "net1", ipv4: parseIp("10.7.0.50") }] }, // biome-ignore format: one row
    ],
    ["ips", '{"db-0":[{"ipv4":"10.6.0.50"}]}', { ips: new Map([["db-0", [{ ipv4: parseIp("10.6.0.50") }]]]) }],
    ["default-route-nic", "net1", { defaultRouteNic: "net1" }],
    ["ippool-ip-number", "+2", { ippoolIpNumber: { kind: "flexible", count: 2 } }],
    ["ippool-reclaim", "false", { ippoolReclaim: false }],
  ])("%s %s", (key, value, expected) => expect(decodePod(key, value)).toEqual(expected));

  it.each(["null", "[]"])("of a disabled family any value in ips, as %s", (value) => {
    const entries = `[{"ipv4":"10.6.0.50","ipv6":${value}}]`;
    const rules = { ...ALL_ENABLED, enableIPv6: false };
    const decode = (ips: string) => decodePodAnnotations({ "ipam.vendor.io/ips": ips }, rules).ips;
    const ignored = [{ ipv4: parseIp("10.6.0.50"), ipv6: parseIp("::") }];
    expect([decode(entries), decode(`{"db-0":${entries}}`)]).toEqual([ignored, new Map([["db-0", ignored]])]);
  });

  it("networks and the default network", () => {
    const networks = { "k8s.v1.cni.cncf.io/networks": "a,ns/b@net7" };
    expect(decodePodAnnotations({ ...networks, "v1.multus-cni.io/default-network": "kube/main" })).toEqual({
      networks: [{ name: "a" }, { namespace: "ns", name: "b", interface: "net7" }],
      defaultNetwork: { namespace: "kube", name: "main" },
    });
  });
});

describe("decodePodAnnotations refuses", () => {
  it.each(rows`
    ippool => Malformed JSON at line 1, column 1: found the end of the text, want a value
    ippool {"ipv4":["a"],"ipv4":["b"]} => found the key "ipv4" a second time
    ippool {"ipv4":"blue"} => field "ipv4": found "blue", want a list
    ippool {"ipv4":[]} => field "ipv4": found an empty list, want a list of at least one entry
    ippool {"ipv4":["a",3]} => field "ipv4[1]": found 3, want a name
    ippool {"ipv4":["Blau"]} => field "ipv4[0]": found "Blau", want a name
    ippool {"ipv5":["a"]} => field "ipv5": found an unknown key, want the key "ipv4"
    ippool {"pools":["a"]} => field "pools": found an unknown key, want one of the keys ipv4, ipv6
    subnet {"ipv4":["blue-*"]} => field "ipv4[0]": found "blue-*", want a name
    subnets [{"ipv4":["a"]}] => field "[0].interface": found nothing, want an interface name
    ippools [{"interface":""}] => field "[0].interface": found "", want an interface name
    ippools [{"interface":"abcdefghijklmnop"}] => 1 to 15 bytes
    ippools [{"interface":"a"},{"ipv4":["b"]}]
      => field "[1].interface": found nothing, want an interface in every entry, as entry [0] has one, or in none
    ippools [{"ipv4":["b"]},{"interface":"a"}]
      => field "[0].interface": found nothing, want an interface in every entry, as entry [1] has one, or in none
    ippools [{"interface":"a"},{"interface":"b"},{"interface":"a"}]
      => field "[2].interface": found "a", want a value other than that of entry [0]
    ips [{"interface":"eth0"}] => field "[0]": found an object, want ipv4, ipv6, or both
    ips {"db-0":[{"ipv4":"fd00::1"}]} => field "db-0[0].ipv4": found "fd00::1", want an IPv4 address
    ips {"db-0":[{"ipv4":"10.6.0.5","x":""}]} => field "db-0[0].x": found an unknown key, want one of the keys
    ips [{"ipv4":"10.6.0.5","mac":"02:00"}] => field "[0].mac": found "02:00", want a MAC address of one NIC such as
    ips [{"ipv4":"10.6.0.5","mac":"03:00:00:00:00:01"}] => field "[0].mac": found "03:00:00:00:00:01", want a MAC address
    ips [{"mac":"02:00:00:00:00:01"}] => field "[0]": found an object, want ipv4, ipv6, or both
    ips {"db 0":[{"ipv4":"10.6.0.5"}]} => found a list, want the name of a pod as the key
    ips [{"ipv4":"10.6.0.5"},{"ipv4":"10.6.0.6"}] => field "[1].interface": found nothing, want a value other than
    ips {"db-0":[]} => field "db-0": found an empty list, want a list of at least one entry
    ips "10.6.0.5" => found "10.6.0.5", want an object
    routes [{"dst":"10.0.0.0/8"}] => field "[0].gw": found nothing, want an IPv4 or IPv6 address
    routes [{"dst":"10.0.0.0","gw":"10.0.0.1"}] => field "[0].dst": found "10.0.0.0", want a network in CIDR form
    routes [{"dst":"10.0.0.1/8","gw":"10.0.0.1"}] => found "10.0.0.1/8" (that is "10.0.0.0/8"), want its canonical form
    routes [{"dst":"10.0.0.0/8","gw":"fd00::1"}]
      => field "[0].gw": found "fd00::1", want an IPv4 address, the family of "dst"
    routes [{"dst":"fd00::/16","gw":"fd00::1"},{"dst":"FD00:0::/16","gw":"fd00::2"}]
      => field "[1].dst": found "FD00:0::/16", want a value other than that of entry [0]
    default-route-nic => found "", want an interface name
    ippool-ip-number 9007199254740993 => found "9007199254740993", want "N"
    ippool-ip-number ٣ => found "٣", want "N"
    ippool-ip-number +-1 => found "+-1", want "N" (that many addresses) or "+N"
    ippool-reclaim yes => found "yes", want one of "true", "false"
  `)("%s", (annotation, message) => {
    const [, key = "", value = ""] = /^(\S+) ?(.*)$/.exec(annotation) ?? [];
    expect(() => decodePod(key, value)).toThrow(ConfigError);
    expect(() => decodePod(key, value)).toThrow(message);
    expect(() => decodePod(key, value)).toThrow(`annotation "ipam.vendor.io/${key}": `);
  });

  const unknown: [key: string, message: string][] = [
    ["ippol", 'annotation "ipam.vendor.io/ippol": found an unknown annotation, want "ipam.vendor.io/ippool"'],
    ["quota", "found an unknown annotation, want one of ipam.vendor.io/subnet, ipam.vendor.io/subnets"],
    ["__proto__", "found an unknown annotation, want one of"],
    ["default-ipv4-ippool", "found an unknown annotation, want it on a namespace"],
  ];
  it.each(unknown)("the unknown annotation %j", (key, message) => expect(() => decodePod(key, "x")).toThrow(message));

  it("a text that is longer than any that makes sense", () => {
    const text = `{"ipv4":["${"a,".repeat(8_192)}"]}`;
    expect(() => decodePod("ippool", text)).toThrow("found a longer text, want at most 16384 characters");
  });

  const names = (count: number, form: (index: number) => string) =>
    JSON.stringify(Array.from({ length: count }, (_, index) => form(index)));
  const nics = (count: number, names: (index: number) => string) =>
    `[${Array.from({ length: count }, (_, at) => `{"interface":"n${at}","ipv4":${names(at)}}`).join(",")}]`;
  const routes = Array.from({ length: 129 }, (_, at) => ({ dst: `10.0.${at}.0/24`, gw: "10.9.0.1" }));
  const eight = (at: number) => names(9, (index) => `p${at}-${index}*`);
  it.each<[what: string, key: string, value: string, message: string]>([
    ["NICs of pools", "ippools", nics(33, () => '["*"]'), "found 33 NICs, want at most 32"],
    ["NICs of Subnets", "subnets", nics(33, () => '["a"]'), "found 33 NICs, want at most 32"],
    ["pools", "ippool", `{"ipv4":${names(65, () => "*")}}`, 'field "ipv4": found 65 names, want at most 64'],
    ["pools of a NIC", "ippools", nics(1, () => names(65, () => "a")), 'field "[0].ipv4": found 65 names, want'],
    ["Subnets", "subnet", `{"ipv6":${names(65, () => "a")}}`, 'field "ipv6": found 65 names, want at most 64'],
    ["patterns", "ippools", nics(8, eight), "found 72 different patterns, want at most 64"],
    ["routes", "routes", JSON.stringify(routes), "found 129 routes, want at most 128"],
  ])("too many %s", (_what, key, value, message) => {
    expect(() => decodePod(key, value)).toThrow(`annotation "ipam.vendor.io/${key}": ${message}`);
  });

  it("nothing of values at the limits", () => {
    const same = names(64, () => "*");
    const most = nics(32, () => '["*","b?"]');
    expect(decodePod("ippools", most).ippools).toHaveLength(32);
    expect(decodePod("ippool", `{"ipv4":${same},"ipv6":${same}}`).ippool?.ipv6).toHaveLength(64);
    expect(decodePod("ippools", nics(7, eight)).ippools).toHaveLength(7);
  });

  it.each([
    ["k8s.v1.cni.cncf.io/networks", "a,".repeat(8_193), "found a longer text, want at most 16384 characters"],
    ["k8s.v1.cni.cncf.io/networks", "[{]", "Malformed JSON at line 1, column 3"],
    ["v1.multus-cni.io/default-network", "a,b", "found 2 networks, want at most 1"],
    ["v1.multus-cni.io/default-network", "A", 'field "[0].name": found "A", want a name'],
  ])("not texts that it reads in %s as Multus does: %#", (annotation, text, message) => {
    const { networks, networksFault, defaultNetwork } = decodePodAnnotations({ [annotation]: text });
    const fault = annotation.endsWith("default-network") ? defaultNetwork?.fault : networksFault;
    expect(networks).toBeUndefined();
    expect(fault?.message).toContain(`annotation "${annotation}": ${message}`);
  });
});

describe("decodeNamespaceAnnotations", () => {
  const P = ANNOTATION_PREFIX;
  const V4 = { [`${P}default-ipv4-ippool`]: '["a","b-*"]' };
  const others = { [`${P}default-ipv6-ippool`]: '["b"]', "k8s.v1.cni.cncf.io/networks": "A B" };
  it.each([
    [V4, { ipv4: ["a", "b-*"] }],
    [Object.assign(others, V4), { ipv4: ["a", "b-*"], ipv6: ["b"] }],
  ])("%j", (annotations, expected) => expect(decodeNamespaceAnnotations(annotations)).toEqual(expected));

  it.each([
    ["default-ipv4-ippool", '"blue"', 'found "blue", want a list'],
    ["default-ipv4-ippool", "[]", "found an empty list, want a list of at least one entry"],
    ["default-ipv6-ippool", '["a",null]', 'field "[1]": found null, want a name'],
    ["default-ipv4-ippools", "[]", 'found an unknown annotation, want "ipam.vendor.io/default-ipv4-ippool"'],
    ["ippool", "{}", "found an unknown annotation, want it on a pod"],
    ["default-ipv4-ippool", JSON.stringify(Array(65).fill("*")), "found 65 names, want at most 64"],
  ])("refuses %s %s", (key, value, message) => {
    expect(() => decodeNamespaceAnnotations({ [P + key]: value })).toThrow(`annotation "${P}${key}": `);
    expect(() => decodeNamespaceAnnotations({ [P + key]: value })).toThrow(message);
  });
});

describe("requireFamilies", () => {
  const both = { enableIPv4: true, enableIPv6: true, allowSingleFamily: false };
  const single = { ...both, allowSingleFamily: true };
  const only4 = { ...both, enableIPv6: false };
  const v4 = { ipv4: ["a"] };
  const v6 = { ipv6: ["b"] };
  const REQUIRED_4 = 'field "ipv4" is required because enableIPv4 is true';
  const REQUIRED_6 = 'field "ipv6" is required because enableIPv6 is true';
  const REMEDY = "; name both families, or set allowSingleFamily: true in vendor-conf";

  it.each([
    [{ ...v4, ...v6 }, both],
    [v4, only4],
    [{ ...v4, ...v6 }, only4],
    [v4, single],
    [v6, single],
  ])("%j suffices for %j", (entry, rules) => {
    expect(() => requireFamilies("ipam.vendor.io/ippool", "", entry, rules)).not.toThrow();
  });

  it.each([
    [v6, both, `${REQUIRED_4}${REMEDY}`],
    [v4, both, `${REQUIRED_6}${REMEDY}`],
    [{}, both, `${REQUIRED_4}; ${REQUIRED_6}`],
    [v6, only4, REQUIRED_4],
    [{}, single, `${REQUIRED_4}, or ${REQUIRED_6}`],
    [v6, { ...only4, allowSingleFamily: true }, REQUIRED_4],
  ])("%j does not suffice for %j", (entry, rules, message) => {
    const wanted = expect.objectContaining({ message: `annotation "ipam.vendor.io/ippool": ${message}` });
    expect(() => requireFamilies("ipam.vendor.io/ippool", "", entry, rules)).toThrow(wanted);
  });

  it("names the place inside a list", () => {
    const message = `annotation "ipam.vendor.io/ippools": ${REQUIRED_6.replace("ipv6", "[1].ipv6")}${REMEDY}`;
    const wanted = expect.objectContaining({ message, path: "[1].ipv6", got: "nothing" });
    expect(() => requireFamilies("ipam.vendor.io/ippools", "[1]", v4, both)).toThrow(wanted);
  });
});
