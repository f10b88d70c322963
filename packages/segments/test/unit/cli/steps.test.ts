import { expect, it } from "vitest";
import type { KubeApi } from "../../../../../host/kubernetes/kube-api.ts";
import { ADMITS_ALL } from "../../../../../test/fakes/admission/admission.ts";
import { MemoryApiServer } from "../../../../../test/fakes/memory-api-server.ts";
import { NO_LEASES } from "../../../blocks/own-leases.ts";
import { RANGES_MAP } from "../../../blocks/own-ranges.ts";
import { demand } from "../../../cli/blocks/steps.ts";

const RANGES = "/apis/ipam.vendor.io/v1/addressranges";
const MEMBERS = "/apis/ipam.vendor.io/v1/rangemembers";
const MAPS = "/api/v1/namespaces/kube-system/configmaps";

function startServer(): MemoryApiServer {
  const serves = {
    [RANGES]: { apiVersion: "ipam.vendor.io/v1", kind: "AddressRange" },
    [MEMBERS]: { apiVersion: "ipam.vendor.io/v1", kind: "RangeMember" },
    [MAPS]: { apiVersion: "v1", kind: "ConfigMap" },
  };
  return new MemoryApiServer({ serves, isOpen: true, admission: { ...ADMITS_ALL, hasStatus: () => true } });
}

const textOf = (left: number) => JSON.stringify({ ...NO_LEASES, past: [`${left}`] });

/** The controller writes the cluster's memory just before each of the command's first `times` writes of it. */
function disturbed(home: MemoryApiServer, times: number): Pick<KubeApi, "call"> {
  const client = home.client();
  let left = times;
  return {
    call: async (request) => {
      if (request.method === "PATCH" && left-- > 0)
        await client.call({ ...request, body: { data: { lan: textOf(left) } } });
      return client.call(request);
    },
  };
}

async function lease(times: number): Promise<void> {
  const [home, hub] = [startServer(), startServer()];
  hub.put(RANGES, "lan", { spec: { subnet: "10.6.0.0/24", blockSize: 28 } });
  hub.put(MEMBERS, "lan.east", { spec: { range: "lan", member: "east", user: "east", maxBlocks: 3 } });
  home.put(MAPS, RANGES_MAP, { metadata: { namespace: "kube-system" } });
  const own = { api: disturbed(home, times) };
  const { signal } = new AbortController();
  await demand(
    { hub: hub.client(), own, cluster: "c1" } as unknown as Parameters<typeof demand>[0],
    { range: "lan", member: "east", namespace: "kube-system", signal },
    { lease: { lan: 1 } },
  );
}

it("a demand is made again when the controller has written the cluster's memory meanwhile", async () => {
  await expect(lease(2)).resolves.toBeUndefined();
});

it("a demand ends with the conflict when the controller does not stop to write", async () => {
  await expect(lease(1_000)).rejects.toMatchObject({ status: 409 });
});
