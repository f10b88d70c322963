/** The paths at which the API server serves Berth's resources. */
import { API_VERSION } from "./fields/metadata.ts";

const collection = (plural: string) => ({ apiVersion: API_VERSION, plural });

export const IP_POOLS = collection("ippools");
export const IP_POOL_USAGES = collection("ippoolusages");
export const IP_ALLOCATIONS = collection("ipallocations");
export const SUBNETS = collection("subnets");
export const RESERVED_IPS = collection("reservedips");
export const COORDINATORS = collection("coordinators");
export const ADDRESS_RANGES = collection("addressranges");
export const RANGE_MEMBERS = collection("rangemembers");
