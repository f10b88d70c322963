/** The refusal of a MAC address that another NIC on the same parent has. */
import { CniError, ErrorCode } from "../../cni/error.ts";
import type { AttachRequest } from "../../cni/request.ts";
import { AddressRefusal } from "../../coordinator/plan/address-policy.ts";
import { macOfAddress } from "../../coordinator/plan/plan-mac.ts";
import { ApplyError } from "../../kernel/apply.ts";
import { EADDRINUSE } from "../../kernel/errno.ts";
import { NetlinkError } from "../../kernel/netlink/error.ts";
import { findParentName } from "../detection/links.ts";
import {
  listNamespacePaths,
  NETNS_FOLDERS,
  netnsIdOf,
  processPaths,
  readNamespaceAddresses,
} from "../request/live-namespaces.ts";
import { addressesOf } from "./observe.ts";

/**
 * Returns an error that names the other NIC, in place of the kernel's, which is returned for any other error. A NIC
 * that has outlived its pod is the reason where the MAC is made of the pod's address: then another address will do.
 */
export function explainMacConflict(error: unknown, { netns, ifName, netConf }: AttachRequest): unknown {
  const { operation, cause } = error instanceof ApplyError ? error : {};
  const mac = operation?.kind === "set-link" ? operation.to.mac : undefined;
  if (mac === undefined || !(cause instanceof NetlinkError && cause.errno === EADDRINUSE)) return error;
  const seen = new Set([netnsIdOf(netns) ?? ""]);
  const paths = [...listNamespacePaths(NETNS_FOLDERS), ...processPaths()];
  const place = paths.find((path) => readNamespaceAddresses(path, seen).macs.includes(mac));
  const where = place === undefined ? "in a network namespace that no path leads to" : `in ${place}`;
  const text = `Interface "${ifName}" cannot have the MAC address ${mac}: another NIC on "${findParentName(netns, ifName)}" has it, ${where}`;
  const ips = netConf.prevResult === undefined ? [] : addressesOf(netConf.prevResult, ifName);
  const ip = ips.find((each) => macOfAddress(mac.slice(0, "0a:1b".length), each) === mac);
  if (ip === undefined) return new CniError(ErrorCode.InterfaceRefused, text, { cause: error });
  const remedy = `It has outlived its pod: delete it${place === undefined ? " with the processes that keep it" : ""}. The next attempt gets another address if the pool has one`;
  return new AddressRefusal(`${text}. ${remedy}`, ip, `another NIC has the MAC address ${mac}, which is made of it`);
}
