/** Files of tests that share one cluster, because a start takes 20 to 30 seconds. Each is a suite. */
import { afterAll, beforeAll, describe } from "vitest";
import { cluster, startSharedCluster } from "./shared-cluster.ts";

beforeAll(startSharedCluster);
afterAll(() => cluster?.stop());

describe("workloads", async () => void (await import("./workloads.ts")));
describe("Subnets", async () => void (await import("./subnets.ts")));
describe("trouble", async () => void (await import("./trouble.ts")));
describe("repairs", async () => void (await import("./repairs.ts")));
describe("maintenance", async () => void (await import("./maintenance.ts")));
describe("networks", async () => void (await import("./networks.ts")));
