import { describe, expect, it } from "vitest";
import { formatIp } from "../../../../host/net/ip.ts";
import type { Allocation } from "../../../../host/registry/registry.ts";
import { ip, mac, prefix } from "../../../../test/world/values.ts";
import { openProbe } from "../../probe/answer-probe.ts";
import { probeSegment } from "../../probe/probe-segment.ts";

const LINK = { netnsPath: "/proc/self/ns/net", index: 2, name: "uplink", mac: mac("0a:00:00:00:00:01") };
const RIVAL = mac("02:00:00:00:00:07");

/** `rows`: addresses that pods of the node have; `answering`: those for which a machine answers. */
async function probe(rows: readonly string[], answering: readonly string[], count = 4) {
  const asked: string[][] = [];
  const list = rows.map((address) => {
    return { state: "Bound", netns: "/n", ifName: "net1", ip: ip(address), prefixLength: 24, space: "", pool: "own" };
  }) as unknown as Allocation[];
  const found = await probeSegment(
    {
      registry: { list: async (after) => (after === undefined ? list : []) },
      findNodeLink: (name) => (name === "uplink" ? LINK : undefined),
      detection: {
        random: () => 0.5,
        links: {
          ...{ observe: () => undefined, withdraw: () => undefined, findAskingLink: (link) => link },
          findParentName: () => "uplink",
        },
        detect: async ({ addresses }) => {
          asked.push(addresses.map(formatIp));
          const hit = addresses.find((each) => answering.includes(formatIp(each)));
          return hit && { ip: hit, mac: RIVAL };
        },
      },
    },
    {
      ...{ subnet: prefix("10.6.0.0/24"), space: "" },
      addresses: Array.from({ length: count }, (_, at) => ip(`10.6.0.${16 + at}`)),
    },
    new AbortController().signal,
  );
  return { ...found, asked };
}

describe("an agent on the segment", () => {
  it("names each machine that answers, and asks the others again", async () => {
    const { answered, asked } = await probe(["10.6.0.200"], ["10.6.0.17", "10.6.0.19"]);
    expect(answered).toEqual([
      { address: "10.6.0.17", mac: RIVAL },
      { address: "10.6.0.19", mac: RIVAL },
    ]);
    expect(asked.at(-1)).toEqual(["10.6.0.16", "10.6.0.18"]);
  });

  it("names a few if all answer", async () => {
    const all = Array.from({ length: 64 }, (_, at) => `10.6.0.${16 + at}`);
    expect((await probe(["10.6.0.200"], all, 64)).answered).toHaveLength(8);
  });
});

it.each<[what: string, rows: readonly string[]]>([
  ["without pods", []],
  ["with pods of another network", ["10.7.0.9"]],
])("an agent %s is not on the segment, and asks nothing", async (_, rows) => {
  expect(await probe(rows, ["10.6.0.17"])).toEqual({ answered: [], asked: [] });
});

it.each<[query: string, wanted: RegExp]>([
  ["", /subnet: found "?null"?, want a network/],
  ["subnet=10.0.0.0/16&range=10.0.1.0-10.0.2.0", /at most 256 addresses of the subnet/],
  ["subnet=10.0.0.0/16&range=10.1.0.1", /at most 256 addresses of the subnet/],
  ["subnet=10.0.0.0/16&range=all", /at most 256 addresses of the subnet/],
])("a probe of %j is refused", async (query, wanted) => {
  const [answer] = Object.values(openProbe({ ipam: {} } as Parameters<typeof openProbe>[0]));
  const { status, body = "" } = (await answer?.(new URLSearchParams(query))) ?? {};
  expect([status, JSON.parse(body)]).toEqual([400, { error: expect.stringMatching(wanted) }]);
});
