/** The node's end of a pair has no link-local address, and so no routes that the kernel walks for each other pod. */
import { expect, it } from "vitest";
import { nameVeth } from "../../host/coordinator/plan/names.ts";
import { coordinateEach } from "./coordinator-lab.ts";
import { containerOf, makeNic, nicOf } from "./coordinator-world.ts";
import { ipJson, showIn, sysctlIn } from "./kernel-scene.ts";

const lab = coordinateEach("bcll");
const nic = nicOf("eth0", 6);

it("the node's end of a pair has no link-local address, and a second ADD leaves it so", async () => {
  const { node } = lab.names;
  const end = nameVeth(containerOf(lab.names)).host.name;
  sysctlIn(node, "net.ipv6.conf.default.addr_gen_mode=0");
  makeNic(lab.names, nic);
  for (const _time of ["first", "second"]) {
    await lab.world.add(nic, {});
    await expect.poll(() => ipJson(node, `link show ${end}`)[0].operstate).toBe("UP");
    expect(showIn(node, `-6 addr show dev ${end}`)).toBe("");
    expect(showIn(node, `-6 route show table all dev ${end} proto kernel`)).not.toContain("fe80::");
  }
  await lab.world.check(nic, {});
});
