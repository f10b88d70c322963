/**
 * Pools as the controller caches all of them: what thousands of generated pools have in common is held once, and what none of its parts reads is left
 * out.
 */
import { isDeepStrictEqual } from "node:util";
import type { Labels } from "../config/label-selector.ts";
import type { KubeObject } from "../kubernetes/kube-api.ts";
import { SharedTexts, SharedValues } from "../lib/shared-values.ts";
import { formatPrefix, type Prefix } from "../net/prefix.ts";
import type { SubnetPoolSpec } from "../resources/fields/subnet-pool.ts";
import type { IpPoolSpec } from "../resources/ip-pool.ts";
import { type Condition, type ControlledPool, decodeControlledPool } from "./objects.ts";

/** No part of the controller reads the labels of pools. */
const NO_LABELS: Labels = {};

const NOTHING: readonly never[] = [];

class SharedParts {
  readonly #texts = new SharedTexts();
  readonly #conditions = new SharedValues<Condition>();
  readonly #finalizers = new SharedValues<readonly string[]>();
  readonly #subnets = new SharedValues<Prefix>();

  /** `before`: what was known of a pool of this name. What it has in common with it is held once, too, for it is kept along with what follows from it. */
  pool({ value, conditions, finalizers, ...rest }: ControlledPool, before: ControlledPool | undefined): ControlledPool {
    return {
      ...rest,
      conditions: conditions.length === 0 ? NOTHING : conditions.map((each) => this.#condition(each)),
      finalizers: this.#finalizers.of(finalizers.join(), () => finalizers),
      value: value && { ...value, labels: NO_LABELS, spec: orEqual(before?.value?.spec, this.#spec(value.spec)) },
    };
  }

  #condition(condition: Condition): Condition {
    return this.#conditions.of(JSON.stringify(condition), () => condition);
  }

  #spec({ excluded, routes, namespaceName, nodeName, multusName, ...rest }: IpPoolSpec): IpPoolSpec {
    return {
      ...rest,
      subnet: this.#subnets.of(formatPrefix(rest.subnet), () => rest.subnet),
      generated: rest.generated && this.#generated(rest.generated),
      excluded: orNothing(excluded),
      routes: orNothing(routes),
      namespaceName: orNothing(namespaceName),
      nodeName: orNothing(nodeName),
      multusName: orNothing(multusName),
    };
  }

  #generated({ subnet, application, interface: ifName, reclaim, wanted, reason }: SubnetPoolSpec): SubnetPoolSpec {
    const { apiVersion, kind, namespace, name, uid } = application;
    return {
      subnet: this.#texts.of(subnet),
      application: {
        apiVersion: this.#texts.of(apiVersion),
        kind: this.#texts.of(kind),
        namespace: this.#texts.of(namespace),
        name,
        uid,
      },
      interface: this.#texts.of(ifName),
      reclaim,
      wanted,
      reason: this.#texts.of(reason),
    };
  }
}

function orEqual<T>(before: T | undefined, now: T): T {
  return before !== undefined && isDeepStrictEqual(before, now) ? before : now;
}

function orNothing<T>(list: readonly T[]): readonly T[] {
  return list.length === 0 ? NOTHING : list;
}

/** Returns a decoder with parts of its own that are shared. It throws only for what is not an API object at all. */
export function openPoolDecoder(): (object: KubeObject, before?: ControlledPool) => ControlledPool {
  const shared = new SharedParts();
  return (object, before) => shared.pool(decodeControlledPool(object), before);
}
