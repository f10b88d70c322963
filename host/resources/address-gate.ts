/** The scheduling gate by which a pod waits until the pools that it selects have room (docs/scheduling-gate.md). */

/** Name of the gate in `spec.schedulingGates`. */
export const ADDRESS_GATE = "ipam.vendor.io/address";

/** Type of the pod's condition that says whether the pools have room. */
export const ADDRESS_CONDITION = "ipam.vendor.io/AddressAvailable";
