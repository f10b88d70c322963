import { describe, expect, it } from "vitest";
import { ErrorCode } from "../../../host/cni/error.ts";
import {
  type CniRequest,
  decodePodArgs,
  decodeRequest,
  requestedIps,
  requestedMac,
} from "../../../host/cni/request.ts";
import { formatIp } from "../../../host/net/ip.ts";
import { cases } from "../../world/rows.ts";

const CONF = { cniVersion: "1.0.0", name: "net", type: "macvlan", ipam: { type: "berth" } };
const HEADERS = {
  "cni-command": "ADD",
  "cni-containerid": "c1",
  "cni-netns": "/run/netns/a",
  "cni-ifname": "eth0",
  "cni-path": "/opt/cni/bin",
};

function decodeWith(headers: Record<string, string | string[] | undefined>, conf: object = CONF, plugin = "berth") {
  return decodeRequest(plugin, { ...HEADERS, ...headers }, JSON.stringify(conf)) as CniRequest;
}

describe("decodeRequest accepts", () => {
  it.each(["ADD", "CHECK"])("%s with everything it needs", (command) => {
    const args = new Map(Object.entries({ IgnoreUnknown: "1", K: "a=b" }));
    expect(decodeWith({ "cni-command": command, "cni-args": "IgnoreUnknown=1;K=a=b" })).toMatchObject({
      ...{ plugin: "berth", command, containerId: "c1", ifName: "eth0", netns: "/run/netns/a", netnsOverride: false },
      ...{ args, netConf: { name: "net", type: "macvlan" } },
    });
  });

  it("DEL without a netns", () => {
    const request = decodeWith({ "cni-command": "DEL", "cni-netns": undefined });
    expect(request).toMatchObject({ command: "DEL", containerId: "c1", netns: undefined });
    expect(decodeWith({ "cni-command": "DEL" })).toMatchObject({ netns: "/run/netns/a" });
  });

  it.each(["GC", "STATUS"])("%s with the path only", (command) => {
    const headers = { "cni-command": command, "cni-path": "/bin" };
    const request = decodeRequest("ifacer", headers, JSON.stringify(CONF));
    expect(request).toMatchObject({ plugin: "ifacer", command, args: new Map() });
  });

  it("no DEL of an attachment that no ADD can have made", () => {
    const none: unknown[] = [undefined, "", "../c"].flatMap((text) =>
      ["cni-containerid", "cni-ifname"].map((name) => decodeWith({ "cni-command": "DEL", [name]: text }, {})),
    );
    expect(none).toEqual(Array(6).fill(undefined));
  });

  it("DEL with CNI_ARGS that an ADD is refused for", () => {
    const request = decodeWith({ "cni-command": "DEL", "cni-args": "A=1;B;=2;;A=3;C=4" });
    expect(Object.fromEntries(request.args)).toEqual({ A: "1", C: "4" });
  });

  it("CNI_NETNS_OVERRIDE", () => {
    const isOverridden = (value: string) => Object(decodeWith({ "cni-netns-override": value })).netnsOverride;
    expect(["1", "true", "TRUE", "0", "yes", ""].map(isOverridden)).toEqual([true, true, true, false, false, false]);
  });
});

describe("decodeRequest refuses with code 4", () => {
  const rows = cases<Record<string, string | string[] | undefined>>`
    no command ${{ "cni-command": undefined }} => CNI_COMMAND: found nothing, want one of ADD, CHECK, DEL, GC, STATUS
    another command ${{ "cni-command": "add" }} => CNI_COMMAND: found "add", want one of ADD, CHECK, DEL, GC, STATUS
    a command of Object ${{ "cni-command": "constructor" }} => CNI_COMMAND: found "constructor"
    one missing ${{ "cni-netns": undefined }} => Missing environment variable CNI_NETNS: ADD needs it
    an empty one ${{ "cni-ifname": "" }} => Missing environment variable CNI_IFNAME: ADD needs it
    all missing ${{ "cni-containerid": undefined, "cni-netns": undefined, "cni-ifname": undefined, "cni-path": undefined }}
      => Missing environment variables CNI_CONTAINERID, CNI_NETNS, CNI_IFNAME, CNI_PATH: ADD needs them
    what GC needs ${{ "cni-command": "GC", "cni-path": undefined }} => CNI_PATH: GC needs it
    a bad container ID ${{ "cni-containerid": "a/b" }} => CNI_CONTAINERID: found "a/b", want a letter or digit
    a bad interface ${{ "cni-ifname": "eth 0" }} => CNI_IFNAME: found "eth 0", want an interface name
    a long interface ${{ "cni-ifname": "abcdefghijklmnop" }} => CNI_IFNAME: found "abcdefghijklmnop", want
    an argument without = ${{ "cni-args": "A=1;B" }} => CNI_ARGS: found the piece "B", want KEY=VALUE
    an argument without a key ${{ "cni-args": "=1" }} => CNI_ARGS: found the piece "=1", want KEY=VALUE
    an empty argument ${{ "cni-args": "A=1;" }} => CNI_ARGS: found the piece "", want KEY=VALUE
    an argument with two values ${{ "cni-args": "IP=10.0.0.1;IP=10.0.0.2" }}
      => CNI_ARGS: found the piece "IP=10.0.0.2", want one value for "IP"
  `;
  const refusal = (part: string) =>
    expect.objectContaining({ code: ErrorCode.InvalidEnvironment, message: expect.stringContaining(part) });
  it.each(rows)("%s", (_title, headers, message) => expect(() => decodeWith(headers)).toThrow(refusal(message)));
});

describe("decodePodArgs", () => {
  const pod = "K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0;K8S_POD_UID=u1";
  it.each([
    ["Kubernetes runtimes set", `IgnoreUnknown=1;${pod}`],
    ["Multus makes of it", `IgnoreUnknown=true;${pod};IgnoreUnknown=1;${pod}`],
  ])("reads what %s", (_, args) => {
    const wanted = { namespace: "shop", name: "web-0", uid: "u1" };
    expect(decodePodArgs(decodeWith({ "cni-args": args }).args)).toEqual(wanted);
  });

  it("takes empty values for absent ones", () => {
    const args = "K8S_POD_NAMESPACE=;K8S_POD_NAME=web-0";
    expect(decodePodArgs(decodeWith({ "cni-args": args }).args)).toEqual({ name: "web-0" });
  });
});

describe("requestedIps", () => {
  const FIVE = { runtimeConfig: { ips: ["FD00:0::5"] }, args: { cni: { ips: ["fd00::5/64"] } } };
  it.each(cases<[conf: object, args: string]>`
    none ${[{}, ""]} => none
    runtimeConfig.ips ${[{ runtimeConfig: { ips: ["10.0.0.5"] } }, ""]} => 10.0.0.5 runtimeConfig.ips
    args.cni.ips with lengths, in order ${[{ args: { cni: { ips: ["10.0.0.6/24", "fd00::5/64"] } } }, ""]}
      => 10.0.0.6/24 args.cni.ips, fd00::5/64 args.cni.ips
    CNI_ARGS, several ${[{}, "IP=10.0.0.7/24,fd00::7"]} => 10.0.0.7/24 CNI_ARGS IP, fd00::7 CNI_ARGS IP
    one address from all sources, with the length that one of them gives ${[FIVE, "IP=fd00::0005"]}
      => fd00::5/64 runtimeConfig.ips
    null lists ${[{ runtimeConfig: { ips: null }, args: { cni: null } }, ""]} => none
  `)("%s", (_title, [conf, args], expected) => {
    const request = decodeWith({ "cni-args": args }, { ...CONF, ...conf });
    const shown = requestedIps(request).map(
      ({ ip, length, source }) => `${formatIp(ip)}${length === undefined ? "" : `/${length}`} ${source}`,
    );
    expect(shown.join(", ") || "none").toBe(expected);
  });

  const refused: [args: string, message: string][] = [
    ["IP=10.0.0", 'Requested address in CNI_ARGS IP: found "10.0.0", want an address, or an address with its length'],
    ["IP=", 'Requested address in CNI_ARGS IP: found ""'],
    ["IP=10.0.0.1,", 'Requested address in CNI_ARGS IP: found ""'],
    ["IP=10.0.0.1/33", 'found "10.0.0.1/33"'],
    ["IP=10.0.0.1/24,10.0.0.1/16", "found 10.0.0.1/16, want 10.0.0.1/24 as in CNI_ARGS IP"],
  ];
  it.each(refused)("refuses %s with code 7", (args, message) => {
    const request = decodeWith({ "cni-args": args });
    expect(() => requestedIps(request)).toThrow(
      expect.objectContaining({ code: ErrorCode.InvalidNetworkConfig, message: expect.stringContaining(message) }),
    );
  });
});

describe("requestedMac", () => {
  const [one, two, three] = ["02:42:ac:11:00:01", "02:42:ac:11:00:02", "02:42:ac:11:00:03"];
  it.each<[title: string, conf: object, args: string, expected: string | undefined]>([
    ["none", {}, "IgnoreUnknown=1;MAC=", undefined],
    ["runtimeConfig.mac first", { runtimeConfig: { mac: one }, args: { cni: { mac: two } } }, `MAC=${three}`, one],
    ["args.cni.mac before CNI_ARGS", { args: { cni: { mac: two } } }, `MAC=${three}`, two],
    ["CNI_ARGS MAC", {}, "MAC=0242.AC11.0003", three],
  ])("%s", (_title, conf, args, expected) => {
    expect(requestedMac(decodeWith({ "cni-args": args }, { ...CONF, ...conf }))).toBe(expected);
  });

  it("refuses a malformed one in CNI_ARGS with code 7", () => {
    const message = 'Requested MAC address in CNI_ARGS MAC: found "02:42", want a MAC address of six octets';
    expect(() => requestedMac(decodeWith({ "cni-args": "MAC=02:42" }))).toThrow(
      expect.objectContaining({ code: ErrorCode.InvalidNetworkConfig, message }),
    );
  });
});
