/**
 * A process that makes one request of the coordinator and is killed at its operation number n: `NODE POD N VERB NIC CONF`, the last
 * two as JSON. With the verb `DEL-ANSWERED` it is killed when the plugin has answered.
 */
import { createFaultCounter, openFaults } from "../../host/lib/fault.ts";
import { type Nic, openWorld } from "./coordinator-world.ts";

const [node = "", pod = "", number = "", verb = "", nic = "", conf = ""] = process.argv.slice(2);
const isNic = (value: unknown): value is Nic => typeof value === "object" && value !== null && "families" in value;
const [decodedNic, decodedConf]: unknown[] = [JSON.parse(nic), JSON.parse(conf)];
if (!isNic(decodedNic) || typeof decodedConf !== "object" || decodedConf === null) throw new Error("no NIC");

await using world = await openWorld({ node, pod });
world.setFaults(openFaults({ action: "kill", number: Number(number), point: "kernel.apply" }, createFaultCounter()));
if (verb === "ADD") await world.add(decodedNic, decodedConf);
else if (verb === "DEL-ANSWERED") {
  await world.delQuickly(decodedNic, decodedConf);
  process.kill(process.pid, "SIGKILL");
} else await world.del(decodedNic, decodedConf);
