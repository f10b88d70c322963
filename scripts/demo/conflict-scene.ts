/**
 * An address that a machine has of which Berth knows nothing: found out before a pod has it, and survived.
 * Told before the scenes that take some seconds; the last scene looks for the addresses again.
 */
import { segmentAddress } from "../../test/lab/addressing.ts";
import { openCapture } from "../../test/lab/capture.ts";
import { claimNic, type Scene } from "./acts.ts";
import { pools } from "./manifests.ts";
import type { Narrator } from "./narrator.ts";
import { berthctlAllocations, ping, watchAddresses } from "./observe.ts";
import type { Pod, Stage } from "./stage.ts";

const DESK_ONLY = { "ipam.vendor.io/ippool": '{"ipv4":["desk"]}' };
/** Pool desk gives the lowest free address first. */
const FIRST = 120;
const TAKEN = segmentAddress(0, FIRST, 4);
const ALSO_TAKEN = segmentAddress(0, FIRST + 2, 4);
const UNSPECIFIED = "0.0.0.0";
/** CNI's number for it: see docs/errors.md. */
const CONFLICT = 104;

export const conflictScene: Scene = async (stage, narrator) => {
  const printer = await stage.fabric.addHost("printer", FIRST);
  narrator.scene(
    "An address that is taken",
    `An administrator gave ${TAKEN} to a printer by hand. It is the next free address of pool desk. The network
     of scan-0 has detectIPConflict, so Berth asks the network before the pod's NIC may have an address.`,
  );
  const [link] = await printer.ipJson<{ address: string }>("link show dev eth0");
  const scan0 = await stage.createPod({ name: "scan-0", uid: "uid-scan-0", annotations: DESK_ONLY });
  using given = watchAddresses(scan0.netns);
  await claimRefusal(stage, narrator, scan0, link?.address ?? "");
  await claimQuarantine(stage, narrator, TAKEN);

  narrator.remark("The runtime tries again, as it always does, with a DEL and another ADD:");
  const nic = { network: "lan-asks", ifName: "eth0" } as const;
  const deleted = await stage.call("DEL", scan0, nic);
  narrator.claim("the DEL succeeds", deleted.exitCode === 0, `exit code ${deleted.exitCode}`);
  await claimNic(narrator, scan0, await stage.attach(scan0, nic.network, nic.ifName), ["desk"]);
  const all = given.addresses;
  const isOther = all.length > 0 && !all.includes(TAKEN);
  narrator.claim(`${TAKEN} was not on its NIC for a moment`, isOther, `all that its kernel was given is ${all.join()}`);
  const { answered, seen } = await ping(scan0.netns, pools.desk.gateway, { count: 1 });
  narrator.claim("scan-0 runs, with another address", answered, seen);

  narrator.remark(
    `With "onConflict": "next" no runtime has to try again. The printer takes the next free address, ${ALSO_TAKEN}, too:`,
  );
  await printer.ip(`addr add ${ALSO_TAKEN}/24 dev eth0`);
  const copy0 = await stage.createPod({ name: "copy-0", uid: "uid-copy-0", annotations: DESK_ONLY });
  await claimNic(narrator, copy0, await stage.attach(copy0, "lan-asks-next", "eth0"), ["desk"]);
  await claimQuarantine(stage, narrator, ALSO_TAKEN);
  narrator.remark("The printer is switched off. The last scene looks for its two addresses again.");
  await printer.delete();
};

/** One ADD: its error, and what the network heard. */
async function claimRefusal(stage: Stage, narrator: Narrator, pod: Pod, mac: string): Promise<void> {
  using capture = await openCapture(stage.fabric.switch, `host${FIRST}`);
  const { exitCode, stdout } = await stage.call("ADD", pod, { network: "lan-asks", ifName: "eth0" });
  const text = String(stdout?.msg);
  const namesAll = [TAKEN, mac, '"desk"'].every((word) => word !== "" && text.includes(word));
  const isRefused = exitCode !== 0 && stdout?.code === CONFLICT && namesAll;
  narrator.claim("the ADD is refused, and told why", isRefused, `code ${stdout?.code}: ${text}`);
  const about = capture.frames().filter(({ protocol, to, from }) => protocol === "arp" && [to, from].includes(TAKEN));
  const questions = about.filter(({ sourceMac }) => sourceMac !== mac);
  const anonymous = questions.filter(({ from }) => from === UNSPECIFIED);
  narrator.claim(
    "the pod's claim to it was never announced on the network",
    questions.length > 0 && anonymous.length === questions.length && about.length > questions.length,
    `questions: ${questions.length}, from ${UNSPECIFIED}; answers: ${about.length - questions.length}, from ${mac}`,
  );
}

async function claimQuarantine(stage: Stage, narrator: Narrator, address: string): Promise<void> {
  const [heading = "", ...lines] = await berthctlAllocations(stage);
  const line = lines.find((text) => text.startsWith(`${address} `)) ?? "";
  narrator.claim(`${address} is in quarantine, no pod's`, line.includes("Quarantined"), "berthctl allocations");
  narrator.lines([heading, line]);
}
