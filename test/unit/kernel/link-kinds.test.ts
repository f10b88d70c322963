/** Kinds of links that many kernels lack, as a kernel that has them made and tells them. */
import { describe, expect, it } from "vitest";
import { encodeKind, type LinkKind } from "../../../host/kernel/netlink/link/kind.ts";
import { type LinkSpec, linkOf } from "../../../host/kernel/netlink/link/link.ts";
import { decodeLink, encodeLink } from "../../../host/kernel/netlink/link/message.ts";
import { createLink, setLink } from "../../../host/kernel/netlink/link/requests.ts";
import { answersTo, expectSame, readRecorded } from "./recorded.ts";
import { ip, mac } from "./values.ts";

const actorSystem = mac("02:00:00:00:00:0b");
const lacp = { mode: 4, miimon: 100, updelay: 200, downdelay: 300, xmit_hash_policy: 1, min_links: 1, lacp_rate: 1 };
const targets = [ip("10.6.0.1"), ip("10.6.0.2")];
const kinds: Record<string, LinkKind> = {
  d0: { kind: "dummy" },
  "v0.5": { kind: "vlan", id: 5, protocol: 0x8100 },
  "v0.6": { kind: "vlan", id: 4094, protocol: 0x88a8 },
  bond7: { kind: "bond", options: { numbers: { ...lacp, ad_actor_sys_prio: 7 }, actorSystem } },
  bond8: { kind: "bond", options: { numbers: { mode: 1, arp_interval: 50 }, arpIpTargets: targets } },
};

const commands = readRecorded("kinds").map(({ command }) => command);
const commandFor = (name: string) =>
  commands.find((command) => command.startsWith("ip link add") && command.split(" ").includes(name)) ??
  expect.unreachable(name);

function told(name: string) {
  const messages = answersTo("kinds", `ip link show dev ${name}`);
  const message = messages.find((one) => linkOf(decodeLink(one)).name === name);
  return message ?? expect.unreachable(name);
}

describe.each(Object.entries(kinds))("%s", (name, kind) => {
  it("is asked for as `ip` asks, and the kernel made it", () => {
    const parent = kind.kind === "vlan" ? { parent: 7 } : {};
    const demand: LinkSpec = { name, kind, ...parent };
    expectSame("kinds", commandFor(name), (conversation) => createLink(conversation, demand));
    const row = readRecorded("kinds").find(({ command }) => command === commandFor(name));
    expect(row?.received.map(({ payload }) => payload)).toEqual(["00000000"]);
  });

  it("is told with all that was asked for", () => {
    expect(linkOf(decodeLink(told(name)))).toMatchObject({ name, kind, ...(kind.kind === "vlan" && { parent: 7 }) });
  });

  it("survives both round trips, what is not read and all", () => {
    const message = decodeLink(told(name));
    expect(encodeLink(message)).toEqual(told(name).payload);
    const read = linkOf(message).kind ?? expect.unreachable();
    const again = decodeLink({ ...told(name), payload: encodeLink({ ...message, attributes: named(read) }) });
    expect(linkOf(again).kind).toEqual(read);
  });

  /** A link that says no more than its name and kind. */
  const named = (read: LinkKind) => [
    ...decodeLink(told(name)).attributes.filter(({ type }) => type === 3),
    encodeKind(read),
  ];
});

it("a member of a bond tells whose it is", () => {
  expectSame("kinds", "ip link set v1 master bond8", (to) =>
    setLink(to, 8, { master: linkOf(decodeLink(told("bond8"))).index }),
  );
  expectSame("kinds", "ip link set v1 down", (to) => setLink(to, 8, { up: false }));
  expect(linkOf(decodeLink(told("v1"))).master).toBe(linkOf(decodeLink(told("bond8"))).index);
});

it("there is a test for every recorded command", () => {
  const made = Object.keys(kinds).map(commandFor);
  const shown = [...Object.keys(kinds), "v1"].map((name) => `ip link show dev ${name}`);
  expect([...commands].sort()).toEqual(
    [...made, ...shown, "ip link set v1 down", "ip link set v1 master bond8"].sort(),
  );
});
