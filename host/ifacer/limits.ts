/**
 * The limits of devices, each explained in docs/limits.md.
 * Effects: none.
 */

/** Most addresses in `arp_ip_target` and in `ns_ip6_target`: the kernel's bond has room for no more (BOND_MAX_ARP_TARGETS). */
export const MAX_TARGETS = 16;

/** How often an ADD looks again when somebody else made the same device between its look and its deed. */
export const DEVICE_ATTEMPTS = 5;
