/**
 * Behaviour that the fake of test/fakes is held to, on a real API server; and both beside each other, with a script
 * of random operations.
 */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubeClient } from "../../host/kubernetes/client.ts";
import { BerthAdmission } from "../fakes/admission/berth-admission.ts";
import { MemoryApiServer } from "../fakes/memory-api-server.ts";
import { connectClient } from "../lab/cluster/in-process.ts";
import type { ControlPlane } from "../lab/control-plane.ts";
import { playScript } from "../unit/fakes/api-script.ts";
import { describeApiServer } from "../unit/fakes/api-server-suite.ts";
import { borrowPlane } from "./borrow-plane.ts";

const SEED = Number(process.env.BERTH_SEED ?? Date.now() % 2 ** 31);
const STEPS = 400;

let plane: ControlPlane;
let client: KubeClient;
beforeAll(async () => {
  plane = await borrowPlane();
  client = await connectClient(plane.kubeconfig);
});
afterAll(async () => {
  await client?.close();
  await plane?.stop();
});

describe("a real API server", () => {
  describeApiServer(async () => client);

  it.each([1, 2, SEED])("answers a script of random operations as the fake does (seed %i)", async (seed) => {
    const serves = { "/apis/ipam.vendor.io/v1/subnets": { apiVersion: "ipam.vendor.io/v1", kind: "Subnet" } };
    const admission = new BerthAdmission();
    const fake = await playScript(new MemoryApiServer({ serves, admission }).client(), seed, STEPS, "script");
    const real = await playScript(client, seed, STEPS, `script-${process.pid}-${seed}`);
    expect(fake).toEqual(real);
  });
});
