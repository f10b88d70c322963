/** Name of the scheduling gate by which a pod waits until the pools that it selects have room. */
export const ADDRESS_GATE = "ipam.vendor.io/address";
