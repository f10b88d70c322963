/** Answers of a kernel without IPv6 (`ipv6.disable=1`) to questions about it. */
import { expect, it } from "vitest";
import { EAFNOSUPPORT, EOPNOTSUPP } from "../../../host/kernel/errno.ts";
import { RTM_GETADDR } from "../../../host/kernel/netlink/address/constants.ts";
import { hasAnyAddress } from "../../../host/kernel/netlink/address/requests.ts";
import { type Conversation, Refusal } from "../../../host/kernel/netlink/conversation.ts";
import { NetlinkError } from "../../../host/kernel/netlink/error.ts";
import { findNeighbour } from "../../../host/kernel/netlink/neighbour/requests.ts";
import { listRoutes } from "../../../host/kernel/netlink/route/requests.ts";
import { listRules } from "../../../host/kernel/netlink/rule/requests.ts";
import { ip } from "../../world/values.ts";
import { answersTo } from "./recorded.ts";
import { SILENT } from "./silent-conversation.ts";

const refuse = (errno: number) => (): never => {
  throw new NetlinkError({ operation: "ask", errno });
};

it("has no IPv6 rules", () => expect(listRules({ ...SILENT, dump: refuse(EAFNOSUPPORT) }, 6)).toEqual([]));

it("has no IPv6 routes, although it answers with the routes of IPv4", () => {
  const four = answersTo("route", "ip -4 route show table all");
  const kernel: Conversation = { ...SILENT, dump: () => four };
  expect(listRoutes(kernel, { family: 4 }).length).toBeGreaterThan(0);
  expect(listRoutes(kernel, { family: 6 })).toEqual([]);
  expect(listRoutes(kernel)).toEqual(listRoutes(kernel, { family: 4 }));
});

it("has no IPv6 addresses and neighbours", () => {
  const refusal = new Refusal(
    { operation: "get address", type: RTM_GETADDR, payload: new Uint8Array() },
    { errno: EOPNOTSUPP, message: undefined, offset: undefined },
  );
  expect(hasAnyAddress({ ...SILENT, pipeline: () => [refusal] }, [ip("fd00::1")])).toBe(false);
  expect(findNeighbour({ ...SILENT, request: refuse(EAFNOSUPPORT) }, 2, ip("fd00::1"))).toBeUndefined();
});
