import { describe } from "vitest";
import { MemoryApiServer } from "../../fakes/memory-api-server.ts";
import { describeApiServer } from "./api-server-suite.ts";

describe("the API server in memory", () => {
  const serves = { "/apis/ipam.vendor.io/v1/subnets": { apiVersion: "ipam.vendor.io/v1", kind: "Subnet" } };
  const api = new MemoryApiServer({ serves }).client();
  describeApiServer(async () => api);
});
