import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { CONF, ipPool } from "../lab/manifests.ts";
import { type NetnsWorld, withWorld } from "../lab/netns/world.ts";

const CONFIG = { "conf.yaml": CONF, "blue.yaml": ipPool("blue", "10.6.0.0/24", { default: true }) };

/** One agent for all rows: it must outlive every one of them. */
async function refuseAll(
  world: NetnsWorld,
  rows: readonly [what: string, options: object, code: number, text: RegExp][],
) {
  for (const [what, options, code, text] of rows) {
    const refusal = await world.refused("ADD", "c1", options);
    expect(`${what}: ${refusal.code} ${refusal.msg}`).toMatch(new RegExp(`^${what}: ${code} .*${text.source}`, "si"));
  }
  expect(await world.usage()).toEqual({});
  expect(await world.add("c1")).toHaveLength(1);
}

const TEXT = { cniVersion: "1.0.0", name: "lab", type: "macvlan", ipam: { type: "berth" } };

describe("malformed calls", () => {
  it("of the environment are refused with the variable's name", () =>
    withWorld(CONFIG, (world) =>
      refuseAll(world, [
        ["no netns", { env: { ...world.agent.env, CNI_NETNS: undefined } }, 4, /CNI_NETNS/],
        ["no interface", { ifName: "" }, 4, /CNI_IFNAME/],
        ["interface too long", { ifName: "e123456789012345" }, 4, /CNI_IFNAME/],
        ["interface with a slash", { ifName: "a/b" }, 4, /CNI_IFNAME/],
        ["interface ..", { ifName: ".." }, 4, /CNI_IFNAME/],
        ["container ID with a slash", { containerId: "../c" }, 4, /CNI_CONTAINERID/],
        ["arguments without =", { args: "K8S_POD_NAME" }, 4, /CNI_ARGS/],
        [
          "several at once",
          { ifName: "", env: { ...world.agent.env, CNI_NETNS: undefined } },
          4,
          /CNI_NETNS.*CNI_IFNAME|CNI_IFNAME.*CNI_NETNS/,
        ],
        ["a control character", { args: "K8S_POD_NAME=a\nb" }, 4, /CNI_ARGS/],
        ["no network namespace", { netns: "/etc/hostname" }, 8, /hostname/],
        ["a FIFO's kind of path", { netns: "/dev/null" }, 8, /null/],
      ]),
    ));

  it("of the configuration are refused with the field's name", () =>
    withWorld(CONFIG, (world) =>
      refuseAll(world, [
        ["no JSON", { stdin: "{" }, 6, /./],
        ["nothing", { stdin: "" }, 6, /./],
        ["a list", { stdin: "[]" }, 6, /./],
        ["a text", { stdin: '"text"' }, 6, /text/],
        ["a version that is a number", { stdin: { ...TEXT, cniVersion: 1 } }, 6, /cniVersion/],
        ["broken UTF-8", { stdin: '{"cniVersion": "1.0.0", "name": "\ud800"}' }, 7, /name/],
        ["twice the same key", { stdin: '{"cniVersion":"1.0.0","name":"a","name":"b","type":"x"}' }, 6, /name/],
        ["no version", { stdin: { ...TEXT, cniVersion: undefined } }, 1, /0\.1\.0/],
        ["no name", { stdin: { ...TEXT, name: undefined } }, 7, /name/],
        ["name that is a path", { stdin: { ...TEXT, name: "../x" } }, 7, /name/],
        ["ipam that is text", { stdin: { ...TEXT, ipam: "berth" } }, 7, /ipam/],
        ["unknown key in ipam", { stdin: { ...TEXT, ipam: { type: "berth", subnet: "10.0.0.0/8" } } }, 7, /subnet/],
        [
          "pools that are text",
          { stdin: { ...TEXT, ipam: { type: "berth", default_ipv4_ippool: "blue" } } },
          7,
          /default_ipv4_ippool/,
        ],
        [
          "prototype",
          { stdin: '{"cniVersion":"1.0.0","name":"a","type":"x","ipam":{"type":"berth","__proto__":{"a":1}}}' },
          7,
          /__proto__/,
        ],
        [
          "prevResult of an interface that is not there",
          { stdin: { ...TEXT, prevResult: { ips: [{ address: "10.0.0.2/24", interface: 7 }] } } },
          7,
          /ips\[0\]\.interface/,
        ],
        [
          "prevResult in a version to come",
          { stdin: { ...TEXT, prevResult: { cniVersion: "9.0.0" } } },
          1,
          /prevResult\.cniVersion/,
        ],
        ["prevResult that is text", { stdin: { ...TEXT, prevResult: "x" } }, 7, /prevResult/],
        [
          "requested address that is a number",
          { stdin: { ...TEXT, args: { cni: { ips: [7] } } } },
          7,
          /args\.cni\.ips/,
        ],
        ["100,000 lists in each other", { stdin: `${"[".repeat(100_000)}${"]".repeat(100_000)}` }, 6, /./],
      ]),
    ));
});

function talk(world: NetnsWorld, bytes: string | Buffer): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(world.agent.socket);
    let answer = "";
    socket.setEncoding("latin1");
    socket.on("data", (chunk) => {
      answer += chunk;
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve(answer));
    socket.on("connect", () => socket.end(bytes));
  });
}

describe("what is not the shim, on the agent's socket", () => {
  it("cannot bring the agent down", () =>
    withWorld(CONFIG, async (world) => {
      const head = "POST /v1/cni/berth HTTP/1.1\r\nHost: berth\r\n";
      const answers = [
        await talk(world, "garbage\r\n\r\n"),
        await talk(world, Buffer.alloc(100_000, 0xff)),
        await talk(world, `${head}Content-Length: 100\r\n\r\nshort`),
        await talk(world, `${head}Content-Length: -1\r\n\r\n`),
        await talk(world, `${head}X: ${"x".repeat(2_000_000)}\r\n\r\n`),
        await talk(world, `${head}Content-Length: 3000000\r\n\r\n${" ".repeat(3_000_000)}`),
        await talk(world, "GET /v1/nothing HTTP/1.1\r\nHost: berth\r\nConnection: close\r\n\r\n"),
        await talk(
          world,
          "POST /v1/cni/nothing HTTP/1.1\r\nHost: b\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
        ),
        await talk(world, "DELETE /v1/pools HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n"),
      ];
      expect(answers[6]).toContain("404");
      expect(answers[7]).toMatch(/"code":4/);
      expect(answers[8]).toContain("404");
      expect(await world.add("c1")).toHaveLength(1);
      expect(world.agent.stderr()).not.toMatch(/"level":"fatal"/);
    }));
});
