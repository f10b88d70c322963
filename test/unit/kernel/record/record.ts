/**
 * Records what `ip` and `nft` say to the kernel, and what it answers, as test/unit/kernel/recorded/<family>.txt.
 * Run by hand, as root: `node test/unit/kernel/record/record.ts`, or with the names of the families to record:
 * `kinds` needs a kernel that has all kinds of links. The commands are those of the file: a new one is a line
 * `$ command` there, and a row of the family's test. Times of day and ports are left out; MACs and indexes are fixed.
 * Effects: a network namespace for the time of the run; compiles record.c; writes the files.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const preparation = [
  "ip link add v0 index 7 address 02:00:00:00:00:01 type veth peer name v1 index 8 address 02:00:00:00:00:02",
  "ip link set v0 up",
  "ip link set v1 up",
  "ip link add b0 index 9 address 02:00:00:00:00:06 type bridge",
  "ip addr add 10.6.0.254/24 dev v0",
  "ip addr add fd00::254/64 dev v0 nodad",
  "ip nexthop add id 5 via 10.6.0.1 dev v0",
];

const folder = join(import.meta.dirname, "..", "recorded");
/** `kinds` are links that many kernels lack: recorded in User-Mode Linux 6.1. */
const families = ["link", "address", "route", "rule", "neighbour", "netconf", "kinds", "nftables"];
const netns = `rec${process.pid}`;

export interface RecordedMessage {
  readonly type: number;
  readonly flags: number;
  /** Hexadecimal. */
  readonly payload: string;
}

export interface Recorded {
  readonly command: string;
  /** Messages sent, except those by which `ip` asks to know names. */
  readonly sent: readonly RecordedMessage[];
  readonly received: readonly RecordedMessage[];
}

/** `$ command`, then each message in a line: `>` sent or `<` received, its type, flags and payload. */
function formatRecorded({ command, sent, received }: Recorded): string {
  const lineOf = (mark: string) => (message: RecordedMessage) =>
    `${mark} ${message.type} 0x${message.flags.toString(16)} ${message.payload}`.trimEnd();
  return `${[`$ ${command}`, ...sent.map(lineOf(">")), ...received.map(lineOf("<"))].join("\n")}\n`;
}

/** Without sequence number and port. Some tools send more bytes than their message has. */
function messagesOf(line: string): RecordedMessage[] {
  const bytes = Buffer.from(line.slice(2), "hex");
  const messages: RecordedMessage[] = [];
  for (let at = 0; at + 16 <= bytes.length; ) {
    const length = bytes.readUInt32LE(at);
    if (length < 16) break;
    const payload = bytes.subarray(at + 16, at + length).toString("hex");
    messages.push({ type: bytes.readUInt16LE(at + 4), flags: bytes.readUInt16LE(at + 6), payload });
    at += (length + 3) & ~3;
  }
  return messages;
}

const RTM_GETLINK = 18;
const NLMSG_ERROR = 2;
const NLMSG_DONE = 3;

/**
 * `ip` also asks for links, to know their names: only `ip link show` means it, and then asks for family 17 (AF_PACKET).
 */
function isMeant(line: string): boolean {
  const [message] = line.startsWith("> ") ? messagesOf(line) : [];
  return message !== undefined && (message.type !== RTM_GETLINK || message.payload.startsWith("11"));
}

/** An acknowledgement repeats the request with its sequence number and port: only the errno counts. */
function withoutRequest({ type, flags, payload }: RecordedMessage): RecordedMessage {
  return { type, flags, payload: type === NLMSG_ERROR ? payload.slice(0, 8) : payload };
}

function record(library: string, command: string): Recorded {
  const env = { ...process.env, LD_PRELOAD: library };
  const given = command.split(" ").map((word) => (word === '""' ? "" : word));
  const words = ["netns", "exec", netns, "env", `LD_PRELOAD=${library}`, ...given];
  const stdio = ["ignore", "ignore", "ignore", ...Array<"ignore">(6).fill("ignore"), "pipe"] as const;
  const { output } = spawnSync("ip", words, { env: { ...env, LD_PRELOAD: "" }, stdio: [...stdio], encoding: "utf8" });
  const lines = String(output[9]).trim().split("\n");
  if (!command.startsWith("ip")) {
    const of = (mark: string) => lines.filter((line) => line.startsWith(mark)).flatMap(messagesOf);
    return { command, sent: of("> "), received: of("< ").map(withoutRequest) };
  }
  const start = lines.findLastIndex(isMeant);
  const sent = messagesOf(lines[start] ?? "");
  const answers = lines
    .slice(start + 1)
    .filter((line) => line.startsWith("< "))
    .flatMap(messagesOf);
  // what it learned of links meanwhile comes over another socket
  const meant = answers.filter(({ type }) => type <= NLMSG_DONE || type === (sent[0]?.type ?? 0) - 2);
  const end = meant.findIndex(({ type }) => type <= NLMSG_DONE);
  return { command, sent, received: meant.slice(0, end < 0 ? undefined : end + 1).map(withoutRequest) };
}

const temporary = mkdtempSync(join(tmpdir(), "record-"));
const library = join(temporary, "record.so");
execFileSync("cc", ["-O1", "-shared", "-fPIC", "-o", library, join(import.meta.dirname, "record.c"), "-ldl"]);
try {
  const requested = process.argv.slice(2);
  for (const family of families) {
    if (requested.length === 0 ? family === "kinds" : !requested.includes(family)) continue;
    execFileSync("ip", ["netns", "add", netns]);
    for (const line of preparation) execFileSync("ip", ["netns", "exec", netns, ...line.split(" ")]);
    const file = join(folder, `${family}.txt`);
    const commands = readFileSync(file, "utf8").match(/(?<=^\$ ).*$/gm) ?? [];
    const rows = commands.map((command) => record(library, command));
    writeFileSync(file, rows.map(formatRecorded).join(""));
    execFileSync("ip", ["netns", "del", netns]);
    console.log(`${family}: ${rows.length} commands`);
  }
} finally {
  rmSync(temporary, { recursive: true });
  spawnSync("ip", ["netns", "del", netns], { stdio: "ignore" });
}
