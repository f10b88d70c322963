/**
 * A program: fills a segment with frames until it is ended, and prints how many were sent. Started by the tests of
 * detection with the path of a namespace, the index of a link, what to send (`unrelated`, `malformed`), and the two
 * addresses that are being asked about.
 * Effects: frames, as fast as they go.
 */
import { writeSync } from "node:fs";
import { encodeArpProbe, encodeArpRequest } from "../../host/kernel/packet/arp.ts";
import { encodeNdpProbe, encodeNdpSolicitation } from "../../host/kernel/packet/ndp.ts";
import { openSendingSocket, PacketError } from "../../host/kernel/packet/socket.ts";
import { ip, mac } from "../world/values.ts";

const [netnsPath = "", link = "", what = "", asked4 = "", asked6 = ""] = process.argv.slice(2);
const FRAMES_PER_TURN = 32;
const from = mac("02:00:00:00:fe:ed");

/** Others ask and probe for others. */
function unrelated(): Uint8Array[] {
  return Array.from({ length: 256 }, (_, index) => [
    encodeArpRequest(from, ip(`10.6.8.${index}`), ip(`10.6.7.${index}`)),
    encodeArpProbe(from, ip(`10.6.6.${index}`)),
    encodeNdpProbe(from, ip(`fd00::6:${index}`), Uint8Array.of(9, 9, 9, 9, 9, index)),
    encodeNdpSolicitation(from, ip(`fd00::8:${index}`), ip(`fd00::7:${index}`)),
  ]).flat();
}

/** All that the filters let through, since the addresses are at their places, and that is wrong all the same. */
function malformed(): Uint8Array[] {
  const arp = encodeArpProbe(from, ip(asked4));
  const ndp = encodeNdpProbe(from, ip(asked6), new Uint8Array(6));
  const arps = [
    arp.with(15, 6),
    arp.with(16, 0x86),
    arp.with(18, 8),
    arp.with(19, 16),
    arp.with(21, 9),
    arp.subarray(0, 42),
  ];
  const ndps = [
    ndp.with(21, 64),
    ndp.with(55, 1),
    ndp.with(56, 0),
    ndp.with(79, 0),
    ndp.with(79, 9),
    ndp.subarray(0, 78),
  ];
  return [...arps.slice(0, -1), ...ndps];
}

const frames = what === "malformed" ? malformed() : unrelated();
const socket = openSendingSocket({ netnsPath, link: Number(link) });
let sent = 0;

function turn(): void {
  for (let count = 0; count < FRAMES_PER_TURN; count++) {
    const frame = frames[sent % frames.length] ?? new Uint8Array();
    try {
      socket.send(frame);
      if (++sent === 1_000) writeSync(1, "flooding\n");
    } catch (error) {
      if (!(error instanceof PacketError)) throw error;
      break;
    }
  }
  setImmediate(turn);
}

process.on("SIGTERM", () => {
  writeSync(1, `${sent}\n`);
  process.exit(0);
});
turn();
