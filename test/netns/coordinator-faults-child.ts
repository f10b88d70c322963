/** A process that makes one request of the coordinator and is killed at its operation number n: `NODE POD N VERB NIC CONF`, the last two as JSON. */
import { createFaultCounter, openFaults } from "../../host/lib/fault.ts";
import { type Nic, openWorld } from "./coordinator-world.ts";

const [node = "", pod = "", number = "", verb = "", nic = "", conf = ""] = process.argv.slice(2);
const isNic = (value: unknown): value is Nic => typeof value === "object" && value !== null && "families" in value;
const [decodedNic, decodedConf]: unknown[] = [JSON.parse(nic), JSON.parse(conf)];
if (!isNic(decodedNic) || typeof decodedConf !== "object" || decodedConf === null) throw new Error("no NIC");

await using world = await openWorld({ node, pod });
world.setFaults(openFaults({ action: "kill", number: Number(number), point: "kernel.apply" }, createFaultCounter()));
if (verb === "ADD") await world.add(decodedNic, decodedConf);
else await world.del(decodedNic, decodedConf);
