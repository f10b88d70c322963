/**
 * Effect of the rules on packets: a client, a node and a backend on one wire.
 *
 *      pod ─ veth1 ┤ node ├ eth0 ─ wire ─ backend
 *
 * The pod connects to a service address, which the node rewrites to the backend's. Only because the node masquerades
 * does the backend see the node, not the pod.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createConversation } from "../../host/kernel/netlink/conversation.ts";
import { openNetfilterSocket } from "../../host/kernel/netlink/socket.ts";
import { writeSysctl } from "../../host/kernel/sysctl.ts";
import type { NftTable } from "../../host/plan/nft-table.ts";
import { ruleset, writeTable } from "../unit/kernel/ruleset.ts";

const [pod, node, backend] = ["p", "n", "b"].map((letter) => `bkx${letter}${process.pid}`) as [string, string, string];
const run = (netns: string, line: string) => execFileSync("ip", ["-n", netns, ...line.split(" ")]);
const inside = (netns: string, ...words: string[]) => execFileSync("ip", ["netns", "exec", netns, ...words]).toString();

beforeAll(() => {
  execFileSync(join(import.meta.dirname, "../../native/build.sh"), ["addon"], { stdio: "inherit" });
  for (const netns of [pod, node, backend]) execFileSync("ip", ["netns", "add", netns]);
  run(node, `link add veth1 type veth peer name veth0 netns ${pod}`);
  run(node, `link add eth0 type veth peer name eth0 netns ${backend}`);
  const addresses: [string, string, string][] = [
    [pod, "veth0", "10.1.0.2/24"],
    [node, "veth1", "10.1.0.1/24"],
    [node, "eth0", "10.2.0.1/24"],
    [backend, "eth0", "10.2.0.2/24"],
  ];
  for (const [netns, link, address] of addresses) {
    run(netns, `addr add ${address} dev ${link}`);
    run(netns, `link set ${link} up`);
  }
  run(pod, "route add default via 10.1.0.1");
  run(backend, "route add default via 10.2.0.1");
  writeSysctl(`/run/netns/${node}`, "ipv4/ip_forward", "1");
  inside(
    node,
    "nft",
    "add table ip service; add chain ip service in { type nat hook prerouting priority dstnat; }; " +
      "add rule ip service in ip daddr 10.96.0.1 dnat to 10.2.0.2",
  );
});

afterAll(() => {
  for (const netns of [pod, node, backend]) execFileSync("ip", ["netns", "del", netns]);
});

/** The address from which a connection to `address` arrives at the backend. */
async function seenFrom(address: string): Promise<string> {
  const program = `
    require("node:net").createServer((socket) => { console.log(socket.remoteAddress); process.exit(); })
      .listen(8080, "0.0.0.0", () => console.log("up"));`;
  const server = spawn("ip", ["netns", "exec", backend, process.execPath, "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  server.stdout.setEncoding("utf8").on("data", (part: string) => {
    text += part;
  });
  await once(server.stdout, "data");
  const closed = once(server, "close");
  const client = `require("node:net").connect(8080, "${address}").on("error", () => {}).on("close", () => process.exit())`;
  inside(pod, process.execPath, "-e", client);
  await closed;
  return text.trim().split("\n").at(-1) ?? "";
}

it("masquerades what was rewritten and came in by one of ours, in the set or by a wildcard, and nothing else", async () => {
  using socket = openNetfilterSocket(`/run/netns/${node}`);
  const conversation = createConversation(socket);
  const [, , leave] = ruleset.chains;
  const [bySet, byName] = leave?.rules ?? [];
  if (leave === undefined || bySet === undefined || byName === undefined) expect.unreachable();
  const table = (rule: typeof bySet, interfaces: string[]): NftTable => ({
    name: "berth",
    sets: [{ name: "ours", interfaces }],
    chains: [{ ...leave, rules: [rule] }],
  });
  writeTable(conversation, table(bySet, ["veth9"]));
  expect(await seenFrom("10.96.0.1")).toBe("10.1.0.2");
  writeTable(conversation, table(bySet, ["veth1"]));
  expect(await seenFrom("10.96.0.1")).toBe("10.2.0.1");
  expect(await seenFrom("10.2.0.2")).toBe("10.1.0.2"); // not rewritten
  writeTable(conversation, table(byName, []));
  expect(await seenFrom("10.96.0.1")).toBe("10.2.0.1");
});

it("marks what came in, and the answers to it: they take the marked way", async () => {
  using socket = openNetfilterSocket(`/run/netns/${pod}`);
  const conversation = createConversation(socket);
  writeTable(conversation, { ...ruleset, chains: ruleset.chains.slice(0, 2) });
  // like a pod on an underlay: the default route leads to a gateway that does not exist
  run(pod, "link add net1 type veth peer name net1p");
  for (const link of ["net1", "net1p"]) run(pod, `link set ${link} up`);
  run(pod, "addr add 10.9.0.2/24 dev net1");
  run(pod, "route replace default via 10.9.0.1 dev net1");
  for (const link of ["all", "veth0"]) writeSysctl(`/run/netns/${pod}`, `ipv4/conf/${link}/rp_filter`, "0");
  run(pod, "route add table 100 default via 10.1.0.1 dev veth0");
  run(pod, "rule add pref 99 fwmark 0x1/0x1 lookup 100");
  const ping = () => inside(backend, "ping", "-c", "1", "-W", "1", "-q", "10.1.0.2");
  expect(ping()).toContain(" 0% packet loss");
  inside(pod, "nft", "delete", "table", "inet", "berth");
  expect(() => ping()).toThrow();
});
