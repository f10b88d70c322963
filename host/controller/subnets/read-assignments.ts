/** The assignments in the status of Subnets, which may list thousands of pools: decoded once for each version. */
import { type Assignments, decodeAssignments } from "../../resources/subnet.ts";
import type { ControlledSubnet } from "../objects.ts";

const decoded = new WeakMap<ControlledSubnet, Assignments>();

/** Throws ConfigError. */
export function readAssignments(subnet: ControlledSubnet): Assignments {
  const known = decoded.get(subnet) ?? decodeAssignments(subnet.status, `Subnet "${subnet.name}", status`);
  decoded.set(subnet, known);
  return known;
}
