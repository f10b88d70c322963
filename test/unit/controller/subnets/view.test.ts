import { expect, it } from "vitest";
import type { StrayAddress } from "../../../../host/controller/subnets/model.ts";
import { viewOf } from "../../../../host/controller/subnets/view.ts";
import type { Caches } from "../../../../host/controller/types.ts";
import { parseIp } from "../../../../host/net/ip.ts";
import { generatedPool } from "../conditions/judged.ts";

const EMPTY = { items: new Map() };
const caches = {
  ...{ reserved: EMPTY, vendorConf: EMPTY, namespaces: EMPTY, allocations: EMPTY, coordinators: EMPTY },
} as unknown as Caches;

function strayOf(pool: string, text: string): StrayAddress {
  const { family, value } = parseIp(text) ?? expect.fail(text);
  return { addressSpace: "", family, address: value, pool };
}

it("an address is no stray while its pool has it as this process wrote it: the watch is late", () => {
  const strays = [strayOf("web", "10.6.0.3"), strayOf("web", "10.6.0.9"), strayOf("gone", "10.6.0.3")];
  const nothing = () => undefined;
  const rest = { demands: [], subnets: [], livenessOf: nothing, successorOf: nothing, excessMs: () => 0 };
  const pools = [generatedPool("web", { ips: ["10.6.0.1-10.6.0.4"], wanted: 4 })];
  expect(viewOf({ ...rest, caches, pools, strays }).strays).toEqual(strays.slice(1));
});
