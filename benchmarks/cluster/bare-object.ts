/** An object of an allocation's kind and size that no agent looks after. */
import { randomUUID } from "node:crypto";
import { API_PATH } from "../../host/resources/fields/metadata.ts";
import {
  allocationLabels,
  allocationName,
  encodeIpAllocation,
  type IpAllocationSpec,
} from "../../host/resources/ip-allocation.ts";

export const COLLECTION = `${API_PATH}/ipallocations`;

/** The path of object `number` of the address space. */
export function barePath(space: string, number: number): string {
  return `${COLLECTION}/${allocationName(ipOf(number), space)}`;
}

/** Object `number` of the address space, whose name is also that of its node. */
export function bareObject(space: string, number: number): object {
  const holder = { namespace: "bench", pod: `${space}-${number}`, podUid: randomUUID(), ifName: "eth0", node: space };
  const spec: IpAllocationSpec = {
    ...{ ip: ipOf(number), addressSpace: space, prefixLength: 16, pool: "bench", state: "Bound", node: space },
    holders: [holder],
    since: new Date().toISOString(),
  };
  return encodeIpAllocation(spec, { name: allocationName(spec.ip, space), labels: allocationLabels(spec) });
}

/** From 10.0.0.0 on. */
function ipOf(number: number): IpAllocationSpec["ip"] {
  return { family: 4, value: 0x0a_00_00_00n + BigInt(number) };
}
