/** Behaviour that the fake of test/fakes is held to, on a real API server. */
import { afterAll, beforeAll, describe } from "vitest";
import type { KubeClient } from "../../host/kubernetes/client.ts";
import { connectClient } from "../lab/cluster/in-process.ts";
import type { ControlPlane } from "../lab/control-plane.ts";
import { describeApiServer } from "../unit/fakes/api-server-suite.ts";
import { borrowPlane } from "./borrow-plane.ts";

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
});
