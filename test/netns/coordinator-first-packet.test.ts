/** The kernel activates a link some time after its carrier has come; an ADD is answered after that. */
import { it } from "vitest";
import { openNetns } from "../lab/netns.ts";
import { ask, serve } from "../lab/traffic.ts";
import { coordinateEach } from "./coordinator-lab.ts";
import { addressOf, makeNic, nicOf } from "./coordinator-world.ts";

const eth0 = nicOf("eth0", 6);
const lab = coordinateEach("bcfp");

it("the node's first packet after an ADD reaches the pod", async () => {
  makeNic(lab.names, eth0);
  const server = await serve(openNetns(lab.names.pod), 80, { protocols: ["udp"] });
  for (let round = 0; round < 30; round++) {
    await lab.world.add(eth0, {});
    await ask(openNetns(lab.names.node), addressOf(eth0, 4), 80, { protocol: "udp" });
    await lab.world.del(eth0, {});
  }
  await server.close();
});
