import { describe } from "vitest";
import { ADMITS_ALL } from "../../fakes/admission/admission.ts";
import { BerthAdmission } from "../../fakes/admission/berth-admission.ts";
import { MemoryApiServer } from "../../fakes/memory-api-server.ts";
import { describeApiServer } from "./api-server-suite.ts";

describe.each([
  ["without schemas", ADMITS_ALL],
  ["with Berth's schemas and policies", new BerthAdmission()],
])("the API server in memory %s", (_, admission) => {
  const serves = { "/apis/ipam.vendor.io/v1/subnets": { apiVersion: "ipam.vendor.io/v1", kind: "Subnet" } };
  const api = new MemoryApiServer({ serves, admission }).client();
  describeApiServer(async () => api);
});
