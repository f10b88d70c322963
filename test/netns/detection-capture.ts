/** tcpdump on a port of the switch: the frames on the wire, in tcpdump's words. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { encodeArp } from "../../host/kernel/packet/arp.ts";
import { ETH_P_ARP } from "../../host/kernel/packet/ethernet.ts";
import { arpFilter } from "../../host/kernel/packet/segment.ts";
import { openPacketSocket } from "../../host/kernel/packet/socket.ts";
import type { Mac } from "../../host/net/mac.ts";
import { ip, mac } from "../world/values.ts";
import { type Lab, run } from "./detection-lab.ts";

export interface Capture {
  /** Ends it, and gives one line per frame from `source`, in the order in which they passed. */
  read(source: Mac): Promise<string[]>;
}

const MARKER = "192.0.2.77";
const markerMac = mac("02:00:00:00:00:77");

/** The last frame of a capture: when it is in the file, all before it are. */
function sendMarker(lab: Lab, port: string): void {
  const [link] = JSON.parse(lab.ip(lab.switch, `-j link show ${port}`));
  const options = { netnsPath: `/run/netns/${lab.switch}`, link: link.ifindex, etherType: ETH_P_ARP };
  using socket = openPacketSocket({ ...options, filter: arpFilter([]) });
  const packet = { senderMac: markerMac, senderIp: ip(MARKER), targetMac: markerMac, targetIp: ip(MARKER) };
  socket.send(encodeArp({ destination: markerMac, source: markerMac, operation: 2, ...packet }));
}

/** Details of a packet go on in lines that begin with a blank. */
function readingOf(file: string): string[] {
  const text = run("tcpdump", "-r", file, "-n", "-e", "-t", "-vvv");
  const lines = text.trimEnd().replaceAll(/\n\s+/g, " ").split("\n");
  return lines.map((line) => line.replaceAll(/\s+/g, " "));
}

/** Captures all that passes the port of the switch, both ways. Resolves when it listens. */
export async function capture(lab: Lab, port: string): Promise<Capture> {
  const directory = mkdtempSync(join(tmpdir(), "berth-capture-"));
  const file = join(directory, "frames.pcap");
  const dump = ["tcpdump", "-i", port, "-U", "-w", file, "--immediate-mode", "-Z", "root"];
  const child = spawn("nsenter", [`--net=/run/netns/${lab.switch}`, ...dump]);
  let words = "";
  child.stderr.on("data", (chunk) => (words += chunk));
  const ended = new Promise((resolve) => child.once("close", resolve));
  await expect.poll(() => words, { timeout: 30_000, interval: 5 }).toContain("listening on");
  const sizeOf = () => statSync(file).size;
  return {
    async read(source) {
      sendMarker(lab, port);
      const hasMarker = () => sizeOf() > 24 && readingOf(file).some((line) => line.includes(MARKER));
      await expect.poll(hasMarker, { timeout: 30_000, interval: 20 }).toBe(true);
      child.kill("SIGINT");
      await ended;
      const lines = readingOf(file);
      rmSync(directory, { recursive: true });
      return lines.filter((line) => line.startsWith(`${source} >`));
    },
  };
}
