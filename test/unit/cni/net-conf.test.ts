import { describe, expect, it } from "vitest";
import { ErrorCode } from "../../../host/cni/error.ts";
import { decodeNetConf, MAX_REMEMBERED_CONFS, MAX_REMEMBERED_LENGTH } from "../../../host/cni/net-conf.ts";

const CONF = { cniVersion: "1.0.0", name: "net-1", type: "macvlan" };

describe("decodeNetConf remembers", () => {
  const isRemembered = (conf: object): boolean => {
    const text = JSON.stringify({ ...CONF, ...conf });
    return decodeNetConf(text) === decodeNetConf(text, true);
  };

  it("keys that the calls of one network share", () => {
    expect(isRemembered({ ipam: { type: "berth" }, master: "eth0" })).toBe(true);
  });

  it.each<[what: string, conf: object]>([
    ["the result before", { prevResult: { cniVersion: "1.0.0", ips: [] } }],
    ["what the runtime adds", { runtimeConfig: { mac: "0A:00:00:00:00:01" } }],
    ["arguments", { args: { cni: { ips: ["10.0.0.1"] } } }],
    ["the attachments of a GC", { "cni.dev/valid-attachments": [] }],
    ["more than fits", { comment: "x".repeat(MAX_REMEMBERED_LENGTH) }],
  ])("nothing with %s", (_what, conf) => expect(isRemembered(conf)).toBe(false));

  it("no more than it may", () => {
    const texts = Array.from({ length: MAX_REMEMBERED_CONFS + 1 }, (_, index) =>
      JSON.stringify({ ...CONF, name: `net-${index}` }),
    );
    const first = texts.map((text) => decodeNetConf(text));
    expect(decodeNetConf(texts[0] ?? "")).not.toBe(first[0]);
    expect(decodeNetConf(texts.at(-1) ?? "")).toBe(first.at(-1));
  });

  it("no refusal", () => {
    const text = JSON.stringify({ ...CONF, name: "a/b" });
    for (const _ of [1, 2]) expect(() => decodeNetConf(text)).toThrow(/field "name"/);
  });
});

describe("decodeNetConf reads", () => {
  it("the runtime's additions", () => {
    const podAnnotations = { "ipam.vendor.io/ippool": "{}" };
    const asked = { mac: "0A:00:00:00:00:01", ips: ["10.0.0.1/24"], portMappings: [] };
    const runtimeConfig = { ...asked, "io.kubernetes.cri.pod-annotations": podAnnotations };
    const ips = [{ ip: { family: 4, value: 0x0a000001n }, length: 24 }];
    const read = { mac: "0a:00:00:00:00:01", ips, podAnnotations };
    expect(decodeNetConf(JSON.stringify({ ...CONF, runtimeConfig })).runtimeConfig).toEqual(read);
  });

  it("the MAC that the runtime asks for, as main plugins read it: other lengths are not Ethernet's", () => {
    const macOf = (mac: string | null) =>
      decodeNetConf(JSON.stringify({ ...CONF, runtimeConfig: { mac } })).runtimeConfig.mac;
    const texts = ["0242.ac11.0007", "02-42-AC-11-00-07", "02:42:ac:11:00:07"];
    expect(texts.map(macOf)).toEqual(Array(3).fill("02:42:ac:11:00:07"));
    const long = ["02:00:5e:10:00:00:00:01", "0200.5e10.0000.0001", `${"00-".repeat(12)}02-00-5e-10-00-00-00-01`];
    expect(["", null, ...long].map(macOf)).toEqual(Array(5).fill(undefined));
  });

  const noMacs = "02:42-ac:11:00:07 2:42:ac:11:0:7 0242ac110007 02:42:ac:11:00 02:42:ac:11:00:07: 0242.ac11 x";
  it.each(noMacs.split(" "))("the MAC %j, which no main plugin can read, is refused", (mac) => {
    const text = JSON.stringify({ ...CONF, runtimeConfig: { mac } });
    expect(() => decodeNetConf(text)).toThrow(/field "runtimeConfig.mac": found .*, want a MAC address/);
  });

  const interfaces = [{ name: "eth0", mtu: 1400 }];
  it.each([
    ["0.3.1", "1.1.0"],
    ["1.1.0", "0.3.1"],
    ["1.1.0", undefined],
    ["1.0.0", ""],
  ])("prevResult of a configuration in %s, of the version that it names itself: %s", (conf, own) => {
    const prevResult = { cniVersion: own, interfaces };
    const decoded = decodeNetConf(JSON.stringify({ ...CONF, cniVersion: conf, prevResult }));
    expect(decoded.prevResult?.interfaces).toEqual([expect.objectContaining({ name: "eth0", mtu: 1400 })]);
  });

  const attachment = { containerID: "c1", ifname: "eth0" };
  it.each([
    ["its name", { "cni.dev/valid-attachments": [attachment] }, [{ containerId: "c1", ifName: "eth0" }]],
    ["its older name", { "cni.dev/attachments": [attachment] }, [{ containerId: "c1", ifName: "eth0" }]],
    ["both names", { "cni.dev/valid-attachments": [], "cni.dev/attachments": [attachment] }, []],
    ["an empty list", { "cni.dev/valid-attachments": [] }, []],
    ["null, as libcni writes an empty list", { "cni.dev/valid-attachments": null }, []],
  ])("the valid attachments under %s", (_title, keys, expected) => {
    expect(decodeNetConf(JSON.stringify({ ...CONF, ...keys })).validAttachments).toEqual(expected);
  });
});

const { InvalidNetworkConfig, DecodeFailure, IncompatibleVersion } = ErrorCode;
const previous = (cniVersion: unknown): string => JSON.stringify({ ...CONF, prevResult: { cniVersion, ips: [] } });
const refused: [title: string, text: string, code: number, message: string][] = [
  ["nothing", "", DecodeFailure, "line 1, column 1: found the end of the text"],
  ["half a text", '{"cniVersion": "1.0.0"', DecodeFailure, "line 1, column 23: found the end of the text"],
  ["a fault in line 2", '{"name":"a",\n "type":x}', DecodeFailure, 'line 2, column 9: found "x}"'],
  ["a list", "[]", DecodeFailure, "Network configuration: found an empty list, want an object"],
  ["a text", '"text"', DecodeFailure, 'Network configuration: found "text", want an object'],
  ["null", "null", DecodeFailure, "Network configuration: found null, want an object"],
  ["a version that is a number", '{"cniVersion":1}', DecodeFailure, 'Field "cniVersion" is not text'],
  ["no version", '{"name":"a","type":"b"}', IncompatibleVersion, '"0.1.0"'],
  ["a version to come", '{"cniVersion":"9.0.0"}', IncompatibleVersion, '"9.0.0"'],
  ["a result in a version to come", previous("9.0.0"), IncompatibleVersion, '"9.0.0" in "prevResult.cniVersion"'],
  ["a result whose version is a number", previous(1), DecodeFailure, 'Field "prevResult.cniVersion" is not text'],
];
const wrong: [patch: object, message: string][] = [
  [{ name: undefined }, 'field "name": found nothing'],
  [{ name: "" }, 'field "name": found ""'],
  [{ name: "a/b" }, 'field "name": found "a/b", want a letter or digit'],
  [{ type: undefined }, 'field "type": found nothing, want text'],
  [{ runtimeConfig: [] }, 'field "runtimeConfig": found an empty list, want an object'],
  [{ runtimeConfig: { ips: "10.0.0.1" } }, 'field "runtimeConfig.ips": found "10.0.0.1", want a list'],
  [{ runtimeConfig: { ips: ["10.0.0.x"] } }, 'field "runtimeConfig.ips[0]": found "10.0.0.x", want an address'],
  [{ runtimeConfig: { mac: "aa" } }, 'field "runtimeConfig.mac": found "aa", want a MAC address'],
  [{ args: { cni: { mac: 7 } } }, 'field "args.cni.mac": found 7, want a MAC address'],
  [{ args: { cni: { ips: [3] } } }, 'field "args.cni.ips[0]": found 3, want an address'],
  [{ prevResult: "x" }, 'Invalid prevResult: found "x", want an object'],
  [{ "cni.dev/valid-attachments": {} }, 'field "[\\"cni.dev/valid-attachments\\"]": found an object, want a list'],
  [{ "cni.dev/valid-attachments": [{ containerID: "a" }] }, "[0].ifname"],
];

describe("decodeNetConf refuses", () => {
  const refusal = (code: number, part: string) =>
    expect.objectContaining({ code, message: expect.stringContaining(part) });
  it.each(refused)("%s", (_title, text, code, message) => {
    expect(() => decodeNetConf(text)).toThrow(refusal(code, message));
  });
  it.each(wrong)("%j", (patch, message) => {
    const text = JSON.stringify({ ...CONF, ...patch });
    expect(() => decodeNetConf(text)).toThrow(refusal(InvalidNetworkConfig, message));
  });
});

describe("decodeNetConf for DEL", () => {
  it.each([{ prevResult: "x" }, { runtimeConfig: { ips: ["10.0.0.x"] } }, { args: [] }])(
    "takes malformed %j for absent",
    (patch) => {
      const conf = decodeNetConf(JSON.stringify({ ...CONF, ...patch }), true);
      expect(conf).toMatchObject({ name: "net-1", runtimeConfig: {}, args: { cni: {} } });
      expect(conf.prevResult).toBeUndefined();
    },
  );
  it("keeps valid values", () => {
    const prevResult = { ips: [{ address: "10.0.0.2/24" }] };
    expect(decodeNetConf(JSON.stringify({ ...CONF, prevResult }), true).prevResult?.ips).toHaveLength(1);
  });
  it.each(["{", "[]", "", JSON.stringify({ ...CONF, name: "" }), JSON.stringify({ ...CONF, name: {} })])(
    "takes %j for one without a name",
    (text) => {
      expect(decodeNetConf(text, true)).toMatchObject({ name: "", runtimeConfig: {}, args: { cni: {} } });
      expect(() => decodeNetConf(text)).toThrow();
    },
  );
  it("keeps the name beside a key that is malformed", () => {
    expect(decodeNetConf(JSON.stringify({ ...CONF, cniVersion: 7, type: 7 }), true).name).toBe("net-1");
  });
});
