/** The controller's own process with a real API server and a fake Nautobot: options, token file, lease and rights. */
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { borrowPlane } from "../../../../test/cluster/borrow-plane.ts";
import { startControllerProcess } from "../../../../test/lab/cluster/controller-process.ts";
import { ALLOCATIONS, allocationObject, allocationSpec } from "../../../../test/lab/cluster/objects.ts";
import type { ControlPlane } from "../../../../test/lab/control-plane.ts";
import { until } from "../../../../test/lab/waiting.ts";
import { AddressApi } from "../fakes/address-api.ts";

let plane: ControlPlane;
let api: AddressApi;
beforeAll(async () => {
  plane = await borrowPlane();
  api = await AddressApi.start();
});
afterAll(async () => {
  await api?.[Symbol.asyncDispose]();
  await plane.stop();
});

it("a controller with the options of a record server writes the addresses of pods, and the token into no log", async () => {
  await plane.client.create(ALLOCATIONS, allocationObject(allocationSpec("10.6.0.7", { prefixLength: 16 })));
  const records = ["--records-server=nautobot", `--records-url=${api.url}`, `--records-token-file=${api.tokenFile}`];
  const own = ["--records-cluster=east", "--records-addresses", "--records-interval=1", "--records-domain=pods.east"];
  const controller = await startControllerProcess({
    ...{ kubeconfig: plane.kubeconfig, name: "a", args: [...records, ...own, "--log-level=debug"] },
  });
  onTestFinished(() => controller.kill());
  await until(
    () => controller.output().slice(-2_000),
    () => api.entries.size === 1,
    60_000,
  );
  const [entry] = api.entries.values();
  expect(entry).toMatchObject({ ip: "10.6.0.7", length: 16, dnsName: "web-0.shop.pods.east", tags: ["berth"] });
  expect(entry?.description).toMatch(/^Pod shop\/web-0 eth0, cluster east \[berth [-0-9a-f]{36}\]$/);
  expect(controller.output()).not.toContain("0123456789abcdef");
});
