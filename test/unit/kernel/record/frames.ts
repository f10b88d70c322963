/**
 * Records the frames that the kernel, `arping` and `ndisc6` send, as test/unit/kernel/recorded/frames.txt, with
 * `tcpdump`'s reading. Run by hand, as root: `node test/unit/kernel/record/frames.ts`.
 * Effects: two network namespaces for the time of the run; writes the file.
 */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const near = `frn${process.pid}`;
const far = `frf${process.pid}`;
const inside = (netns: string, line: string) => spawnSync("ip", ["netns", "exec", netns, ...line.split(" ")]);

const preparation = [
  `ip link add v0 address 02:00:00:00:00:01 type veth peer name v1 address 02:00:00:00:00:02 netns ${far}`,
  "sysctl -qw net.ipv6.conf.v0.accept_dad=0",
];
const farPreparation = ["ip addr add 10.6.0.1/24 dev v1", "ip addr add fd00::1/64 dev v1 nodad", "ip link set v1 up"];

const commands = [
  "arping -D -c 1 -w 1 -I v0 10.6.0.21",
  "arping -D -c 1 -w 1 -I v0 10.6.0.1",
  "ip addr add 10.6.0.21/24 dev v0",
  "arping -c 1 -w 1 -I v0 10.6.0.1",
  "arping -U -c 1 -I v0 10.6.0.21",
  "arping -A -c 1 -I v0 10.6.0.21",
  "sysctl -qw net.ipv6.conf.v0.accept_dad=1",
  "ip addr add fd00::21/64 dev v0",
  "sysctl -qw net.ipv6.conf.v0.enhanced_dad=0 net.ipv6.conf.all.enhanced_dad=0",
  "ip addr add fd00::22/64 dev v0",
  "ndisc6 -1 -r 1 -w 500 fd00::1 v0",
  "sysctl -qw net.ipv6.conf.v0.ndisc_notify=1",
  "ip link set v0 address 02:00:00:00:00:11",
];

/** `-xx` prints the frame after its line: parts of it are indented. */
function framesOf(text: string) {
  return text
    .split(/\n(?=\S)/)
    .filter((part) => part.trim() !== "")
    .map((part) => {
      const [reading = "", ...rows] = part.split("\n");
      const hex = rows.map((row) => row.replace(/^\s*0x[0-9a-f]+:/, "").replaceAll(/\s/g, "")).join("");
      return `${reading.trim()}\n${hex}\n`;
    });
}

async function record(command: string) {
  const words = ["netns", "exec", near, "tcpdump", "-i", "v0", "-nn", "-e", "-t", "-xx", "-l", "--immediate-mode"];
  const filter = "arp or (icmp6 and (ip6[40] == 135 or ip6[40] == 136))";
  const tcpdump = spawn("ip", [...words, filter], { stdio: ["ignore", "pipe", "ignore"] });
  let text = "";
  tcpdump.stdout.setEncoding("utf8").on("data", (part: string) => {
    text += part;
  });
  await sleep(600);
  inside(near, command);
  await sleep(1_500);
  tcpdump.kill("SIGINT");
  await new Promise((done) => tcpdump.on("close", done));
  const frames = framesOf(text);
  return frames.length > 0 ? `$ ${command}\n${frames.join("")}` : "";
}

try {
  for (const netns of [near, far]) execFileSync("ip", ["netns", "add", netns]);
  for (const line of preparation) inside(near, line);
  for (const line of farPreparation) inside(far, line);
  inside(near, "ip link set v0 up");
  await sleep(2_500); // link-local addresses
  const rows = [];
  for (const command of commands) rows.push(await record(command));
  writeFileSync(join(import.meta.dirname, "../recorded/frames.txt"), rows.join(""));
} finally {
  for (const netns of [near, far]) spawnSync("ip", ["netns", "del", netns]);
}
