/** The controllers that run while this process leads, in the order in which they start. They stop in reverse order. */

import { startConditions } from "./conditions/conditions-controller.ts";
import { startEpoch } from "./epoch/epoch-controller.ts";
import { startFinalizers } from "./finalizers/finalizer-controller.ts";
import { startLettingGo } from "./finalizers/let-go-controller.ts";
import { startGarbage } from "./gc/garbage-collector.ts";
import type { Controllers } from "./leadership.ts";
import { startMachines } from "./networks/machines-controller.ts";
import { startNetworks } from "./networks/networks-controller.ts";
import { startNotices } from "./notices/notice-controller.ts";
import { startClaimStatus } from "./owners/claim-status.ts";
import { startFixed } from "./owners/fixed-controller.ts";
import { startPolicies } from "./policies-controller.ts";
import { startSettings } from "./settings-controller.ts";
import { startSubnets } from "./subnets/subnets-controller.ts";
import { startShares } from "./usage/full-namespaces.ts";
import { startUsage } from "./usage/usage-controller.ts";
import { startWaitingPods } from "./waiting-pods-controller.ts";

export const CONTROLLERS: Controllers = {
  epoch: startEpoch,
  networks: startNetworks,
  machines: startMachines,
  fixed: startFixed,
  subnets: startSubnets,
  usage: startUsage,
  shares: startShares,
  conditions: startConditions,
  finalizers: startFinalizers,
  claims: startClaimStatus,
  garbage: startGarbage,
  notices: startNotices,
  policies: startPolicies,
  settings: startSettings,
  waiting: startWaitingPods,
};

const { subnets: _subnets, ...WITHOUT_SUBNETS } = CONTROLLERS;

/** Before everything is deleted: no object gets a finalizer. */
export const LETTING_GO: Controllers = { ...WITHOUT_SUBNETS, finalizers: startLettingGo };
