/**
 * What the controller does while it leads, by name, in the order in which it is begun; it ends in the opposite order.
 * Called by berth-controller-main.ts.
 * Effects: none.
 */
import { startConditions } from "./conditions/start-conditions.ts";
import { startFinalizers } from "./finalizers/start-finalizers.ts";
import { startGarbage } from "./garbage/garbage-collector.ts";
import { startNetworks } from "./networks/keep-status.ts";
import { startShares } from "./shares/keep-shares.ts";
import { startSubnets } from "./subnets/start-subnets.ts";
import type { Parts } from "./term.ts";
import { startUsage } from "./usage/start-usage.ts";
import { startClaimStatuses } from "./workloads/start-claim-statuses.ts";

export const PARTS: Parts = {
  networks: startNetworks,
  subnets: startSubnets,
  usage: startUsage,
  shares: startShares,
  conditions: startConditions,
  finalizers: startFinalizers,
  claims: startClaimStatuses,
  garbage: startGarbage,
};
