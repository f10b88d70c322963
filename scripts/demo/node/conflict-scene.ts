/** An address of a machine that Berth does not know: detected before a pod has it, and survived. */
import { join } from "node:path";
import { segmentAddress } from "../../../test/lab/addressing.ts";
import { openCapture } from "../../../test/lab/capture.ts";
import { requireCommand } from "../../../test/lab/command.ts";
import { root } from "../../setup/paths.mjs";
import type { Narrator, Scene } from "../engine.ts";
import { createPod, type Place, type Pod, pools } from "./place.ts";

const DESK = { ippool: { ipv4: ["desk"] } };
/** Pool desk gives the lowest free address first. */
const FIRST = 120;
const TAKEN = segmentAddress(0, FIRST, 4);
const ALSO_TAKEN = segmentAddress(0, FIRST + 2, 4);
const UNSPECIFIED = "0.0.0.0";
/** CNI's number for it: see docs/errors.md. */
const CONFLICT = 104;

export const conflictScene: Scene<Place> = {
  title: "An address that is taken",
  text: `An administrator gave ${TAKEN} to a printer by hand. It is the next free address of pool desk. The network of scan-0 has
    detectIPConflict, so Berth asks the network before the pod's NIC may have an address.`,
  act: async (place, narrator) => {
    const printer = await place.fabric.addHost("printer", FIRST);
    const [link] = await printer.ipJson<{ address: string }>("link show dev eth0");
    const scan0 = await createPod(place, "scan-0", DESK);
    await claimRefusal(place, narrator, { pod: scan0, mac: link?.address ?? "" });
    await claimQuarantine(place, narrator, TAKEN);
    narrator.remark("The runtime tries again, as it always does, with a DEL and another ADD:");
    const { exitCode } = await scan0.call("DEL", "lan-asks");
    narrator.claim("the DEL succeeds", exitCode === 0, `exit code ${exitCode}`);
    await scan0.attach(narrator, "lan-asks");
    await narrator.reaches("scan-0 runs, with another address", scan0.netns, pools.desk.gateway);
    narrator.remark(
      `With "onConflict": "next" no runtime has to try again. The printer takes the next free address, ${ALSO_TAKEN}, too:`,
    );
    await printer.ip(`addr add ${ALSO_TAKEN}/24 dev eth0`);
    await (await createPod(place, "copy-0", DESK)).attach(narrator, "lan-asks-next");
    await claimQuarantine(place, narrator, ALSO_TAKEN);
    narrator.remark("The printer is switched off. The last scene looks for its two addresses again.");
    await printer.delete();
  },
};

interface Conflict {
  readonly pod: Pod;
  readonly mac: string;
}

/** One ADD: its error, and the frames on the network. */
async function claimRefusal(place: Place, narrator: Narrator, { pod, mac }: Conflict): Promise<void> {
  using capture = await openCapture(place.fabric.switch, `host${FIRST}`);
  const { stdout } = await pod.call("ADD", "lan-asks");
  const text = String(stdout?.msg);
  const namesAll = [TAKEN, mac, '"desk"'].every((word) => word !== "" && text.includes(word));
  narrator.claim("the ADD is refused, and told why", stdout?.code === CONFLICT && namesAll, text);
  const about = capture.frames().filter(({ protocol, to, from }) => protocol === "arp" && [to, from].includes(TAKEN));
  const questions = about.filter(({ sourceMac }) => sourceMac !== mac);
  const isAnonymous = questions.length > 0 && questions.every(({ from }) => from === UNSPECIFIED);
  narrator.claim(
    "the pod's claim to it was never announced on the network",
    isAnonymous && about.length > questions.length,
    `questions: ${questions.length}, from ${UNSPECIFIED}; answers: ${about.length - questions.length}, from ${mac}`,
  );
}

async function claimQuarantine({ agent }: Place, narrator: Narrator, address: string): Promise<void> {
  const berthctl = [process.execPath, join(root, "dist", "berthctl.mjs")];
  const text = await requireCommand([...berthctl, "allocations"], { env: agent.env });
  const [heading = "", ...lines] = text.trimEnd().split("\n");
  const line = lines.find((each) => each.startsWith(`${address} `)) ?? "";
  narrator.claim(`${address} is in quarantine, no pod's`, line.includes("Quarantined"), "berthctl allocations");
  narrator.lines([heading, line]);
}
