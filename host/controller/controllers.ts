/**
 * What the controller does while it leads, by name, in the order in which it is begun; it ends in the opposite order.
 */

import { startClaimStatuses } from "./address-owners/start-claim-statuses.ts";
import { startConditions } from "./conditions/start-conditions.ts";
import { startFinalizers } from "./finalizers/start-finalizers.ts";
import { startGarbage } from "./gc/garbage-collector.ts";
import type { Parts } from "./leadership.ts";
import { startNetworks } from "./networks/keep-status.ts";
import { startShares } from "./shares/keep-shares.ts";
import { startSubnets } from "./subnets/controller.ts";
import { startUsage } from "./usage/start-usage.ts";

export const CONTROLLERS: Parts = {
  networks: startNetworks,
  subnets: startSubnets,
  usage: startUsage,
  shares: startShares,
  conditions: startConditions,
  finalizers: startFinalizers,
  claims: startClaimStatuses,
  garbage: startGarbage,
};
