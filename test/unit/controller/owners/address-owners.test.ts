/** What an IPAMClaim requests. Other owners: test/cluster/owners.test.ts. */
import { expect, it } from "vitest";
import { openAddressOwners } from "../../../../host/controller/owners/address-owners.ts";
import type { NamingWorkload } from "../../../../host/controller/types.ts";
import { ObjectBudget } from "../../../../host/lib/object-budget.ts";
import { MemoryApiServer } from "../../../fakes/memory-api-server.ts";
import { recordLog } from "../../../world/recorded-log.ts";

const CLAIMS = "/apis/k8s.cni.cncf.io/v1alpha1";

it("an IPAMClaim with a mistake in its requests keeps what it has, and says which mistake", async () => {
  const cluster = new MemoryApiServer({ isOpen: true });
  const put = (...ipRequests: readonly string[]): void => {
    const metadata = { namespace: "shop", name: "vm", uid: "u" };
    for (const path of ["ipamclaims", "namespaces/shop/ipamclaims"])
      cluster.put(`${CLAIMS}/${path}`, "vm", { kind: "IPAMClaim", metadata, spec: { network: "lan", ipRequests } });
  };
  put("10.6.0.52/24");
  const api = cluster.client(undefined, (_path, deliver) => deliver());
  const budget = new ObjectBudget({ totalBytes: 2 ** 30, home: "" });
  const owners = openAddressOwners({ api, budget, log: recordLog().log, random: () => 0.5 });
  const isNamed = (of?: NamingWorkload): boolean => {
    if (of?.fault !== undefined) throw of.fault;
    return of?.requested?.includes("10.6.0.52") === true;
  };
  const claim = { kind: "IPAMClaim", namespace: "shop", name: "vm", uid: "u", member: "vm" };
  const look = () => owners.readLiveness(claim, new AbortController().signal, isNamed);
  await owners.synced();
  expect(await look()).toBe("alive");
  put("10.6.0.52/24", "10.6.0.300/24");
  expect(await look()).toBe("unknown");
  const fault = () => owners.findNaming()[0]?.fault?.message;
  await expect.poll(fault).toContain('"spec.ipRequests[1]": found "10.6.0.300/24", want an');
  put("10.6.0.53/24");
  expect(await look()).toBe("gone");
  await owners.close();
});
