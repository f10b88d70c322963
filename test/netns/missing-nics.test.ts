/** The NICs that a driver of the pod may have, in a real namespace. */
import { expect, it } from "vitest";
import { KERNEL_NICS } from "../../host/agent/fences/orphan-nics.ts";
import { mayBeDriven } from "../../host/agent/operate/missing-nics.ts";
import type { Allocation } from "../../host/registry/registry.ts";
import { makeLab } from "./detection-lab.ts";

type Ipam = Parameters<typeof mayBeDriven>[1];

it("a driver may have an SR-IOV device that is no link of the pod's namespace, and no other one", async () => {
  using lab = makeLab("bkmn");
  const { netnsPath: netns, name } = lab.addPod({ addresses: ["10.7.0.10/24"] }).link;
  const row = { namespace: "", pod: "", netns, netnsCookie: KERNEL_NICS.readCookie(netns) };
  const ask = (ifName: string, network: string) => {
    const networks = { pluginsOf: () => [{ entry: { type: network }, place: "" }], nicsOf: () => [] };
    return mayBeDriven({ ...row, ifName, network } as unknown as Allocation, { networks } as unknown as Ipam);
  };
  expect(await Promise.all([ask("net1", "sriov"), ask("net1", "macvlan"), ask(name, "sriov")])).toEqual([
    true,
    false,
    false,
  ]);
});
