/**
 * The cluster's networks as they were collected: ADD makes the ways there, a change holds without a restart, CHECK
 * holds no change against a pod.
 */
import { beforeEach, describe, expect, it } from "vitest";
import { ErrorCode } from "../../host/cni/error.ts";
import { decodeServedCoordinator } from "../../host/resources/coordinator.ts";
import type { Snapshot } from "../../host/resources/snapshot.ts";
import { coordinateEach } from "./coordinator-lab.ts";
import { LAB_SNAPSHOT, makeNic, type Nic } from "./coordinator-world.ts";
import { ipJson } from "./kernel-scene.ts";

const eth0: Nic = { name: "eth0", net: 6, families: [4], gateway: true, kind: "macvlan" };

let snapshot: Snapshot = LAB_SNAPSHOT;
const lab = coordinateEach("bcn", () => snapshot);

beforeEach(async () => {
  snapshot = LAB_SNAPSHOT;
  makeNic(lab.names, eth0);
});

/** As the watch would bring it. */
function collect(status: object | undefined, spec: object = {}): void {
  const object = { apiVersion: "ipam.vendor.io/v1", kind: "Coordinator", metadata: { name: "default" }, spec, status };
  snapshot = { ...LAB_SNAPSHOT, coordinator: decodeServedCoordinator(object, "test") };
}

const synced = (serviceCIDR: string[], overlayPodCIDR: string[] = []) => ({
  ...{ phase: "Synced", reason: "serviceCIDR: of ServiceCIDR kubernetes", serviceCIDR, overlayPodCIDR },
});

/** Networks to which the pod goes over the node. */
function networksOfPod(): string[] {
  const routes: { dst: string; dev: string }[] = ipJson(lab.names.pod, "-4 route show table main");
  return routes.filter(({ dev, dst }) => dev === "veth0" && dst.includes("/")).map(({ dst }) => dst);
}

const hasPair = (): boolean =>
  ipJson(lab.names.pod, "link show").some(({ ifname }: { ifname: string }) => ifname === "veth0");

it("an ADD makes the ways to what was collected, and explain says where that is from", async () => {
  collect(synced(["10.96.0.0/12"], ["10.244.0.0/16"]));
  await lab.world.add(eth0, {});
  expect(networksOfPod()).toEqual(["10.96.0.0/12", "10.244.0.0/16"]);
  const status = 'from the status of Coordinator "default" (Synced: serviceCIDR: of ServiceCIDR kubernetes)';
  expect(lab.world.explain("shop", "web-0")).toEqual([
    expect.stringContaining("eth0 is underlay for the coordinator"),
    `eth0: serviceCIDR is 10.96.0.0/12, ${status}`,
    `eth0: overlayPodCIDR is 10.244.0.0/16, ${status}`,
  ]);
});

describe("a change after the ADD", () => {
  beforeEach(async () => {
    collect(synced(["10.96.0.0/12"], ["10.244.0.0/16"]));
    await lab.world.add(eth0, {});
  });

  it.each([
    ["another network", synced(["10.200.0.0/16"], ["10.244.0.0/16"])],
    ["nothing known any more", { phase: "NotReady", reason: "x", serviceCIDR: [], overlayPodCIDR: [] }],
  ])("%s: CHECK does not hold it against the pod", async (_, status) => {
    collect(status);
    await lab.world.check(eth0, {});
  });
  // Ways that a pod has stay as long as it lives.
  it("the next ADD adds what is new", async () => {
    collect(synced(["10.200.0.0/16"], ["10.244.0.0/16"]));
    await lab.world.add(eth0, {});
    expect(networksOfPod().sort()).toEqual(["10.200.0.0/16", "10.244.0.0/16", "10.96.0.0/12"]);
    await lab.world.check(eth0, {});
  });

  it("of a configured network is an error, as before", async () => {
    collect(synced(["10.96.0.0/12"]), { serviceCIDR: ["10.98.0.0/16"] });
    await expect(lab.world.check(eth0, {})).rejects.toThrow("restoring it requires");
  });
});

describe("a Coordinator that is not ready", () => {
  const notReady = { phase: "NotReady", reason: "serviceCIDR: nothing in ServiceCIDR objects" };

  it("refuses the ADD before anything is made, and lets it pass as soon as it is", async () => {
    collect(notReady);
    await expect(lab.world.add(eth0, {})).rejects.toMatchObject({
      code: ErrorCode.TryAgainLater,
      message: expect.stringContaining(
        'Coordinator "default" is not ready: serviceCIDR: nothing in ServiceCIDR objects',
      ),
    });
    expect(hasPair()).toBe(false);
    collect(synced(["10.96.0.0/12"]));
    await lab.world.add(eth0, {});
    expect(networksOfPod()).toEqual(["10.96.0.0/12"]);
  });

  it("does not delay pods whose definition names the services or disables the coordinator", async () => {
    collect(notReady);
    await lab.world.add(eth0, { mode: "disable" });
    expect(hasPair()).toBe(false);
    await lab.world.add(eth0, { serviceCIDR: ["10.97.0.0/16"] });
    expect(networksOfPod()).toEqual(["10.97.0.0/16"]);
  });

  it("keeps no DEL and no CHECK from going on", async () => {
    collect(synced(["10.96.0.0/12"]));
    await lab.world.add(eth0, {});
    collect(notReady);
    await lab.world.check(eth0, {});
    await lab.world.del(eth0, {});
    expect(hasPair()).toBe(false);
  });
});
