/**
 * A pool as it was planned, and whether that is another one than there is.
 */
import { formatIp } from "../../../net/ip.ts";
import { formatPrefix } from "../../../net/prefix.ts";
import { areSame, withoutSpans } from "../../../net/spans.ts";
import type { AddressSpec } from "../../../resources/fields/address-spec.ts";
import type { Generated } from "../../../resources/fields/subnet-pool.ts";
import type { PoolTarget } from "../model.ts";
import type { PoolState } from "./pool-state.ts";

/** It stays as it is. */
export function unchangedTarget(state: PoolState): PoolTarget {
  return { ...targetOf(state), spans: state.ranges, isChanged: false };
}

export function targetOf(state: PoolState): PoolTarget {
  const { name, now, supply, target: spans, generated, entry } = state;
  const { gateway, routes } = supply?.subnet.spec ?? now?.spec ?? { gateway: undefined, routes: [] };
  const common = { name, now, subnet: supply?.subnet, spans, generated, gateway, routes };
  if (now === undefined) return { ...common, isChanged: spans.length > 0 };
  if (state.isDeleting) {
    // It gets nothing more: what is reserved for it beside what it has goes back.
    const isMore = supply !== undefined && withoutSpans(entry, state.ranges).length > 0;
    return { ...common, generated: now.generated, spans: state.ranges, isChanged: isMore || state.isUnknown };
  }
  const isOther =
    !areSame(spans, state.ranges) ||
    JSON.stringify(generated) !== JSON.stringify(orderedLike(generated, now.generated)) ||
    describeWay(common) !== describeWay(now.spec);
  const isPromisedMore = supply !== undefined && withoutSpans(entry, spans).length > 0;
  return { ...common, isChanged: isOther || isPromisedMore || state.isUnknown };
}

/** The same keys in the same order: the API server's order is another. */
function orderedLike(model: Generated, value: Generated): Generated {
  const { apiVersion, kind, namespace, name, uid } = value.application;
  const application = { ...model.application, apiVersion, kind, namespace, name, uid };
  const { subnet, interface: ifName, reclaim, wanted, reason } = value;
  return { ...model, subnet, application, interface: ifName, reclaim, wanted, reason };
}

function describeWay({ gateway, routes }: Pick<AddressSpec, "gateway" | "routes">): string {
  const way = routes.map(({ dst, gw }) => `${formatPrefix(dst)} via ${formatIp(gw)}`);
  return [gateway === undefined ? "" : formatIp(gateway), ...way].join();
}
