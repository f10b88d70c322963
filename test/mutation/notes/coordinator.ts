/** Survivors in what the coordinator plans, checks and detects. */
import type { Note } from "../notes.ts";

export const COORDINATOR_NOTES: readonly Note[] = [
  {
    file: "host/coordinator/plan/plan-pod-routes.ts",
    text: "gatewayValue(a) < gatewayValue(b)",
    note: "equivalent: two default routes of one NIC and metric have two gateways",
  },
  {
    file: "host/coordinator/probe.ts",
    text: "nonce !== undefined",
    note: "equivalent: no nonce of the session is undefined; for the compiler",
  },
  {
    file: "host/coordinator/plan/address-policy.ts",
    text: "[]",
    note: "equivalent: each of the texts is a prefix; for the compiler",
  },
  {
    file: "host/coordinator/plan/names.ts",
    text: "mac !== undefined",
    note: "equivalent: an invariant that holds, six octets are a MAC address",
  },
  {
    file: "host/coordinator/plan/plan-mac.ts",
    text: "mac !== undefined",
    note: "equivalent: an invariant that holds, the configuration's two octets are checked when it is read",
  },
  {
    file: "host/coordinator/plan/plan-attachment.ts",
    text: "path !== undefined",
    note: "equivalent: an underlay pod has a path; for the compiler",
  },
  {
    file: "host/coordinator/plan/plan-detachment.ts",
    text: "scope === 0",
    note: "equivalent: the node is asked for global addresses only (knownAddresses), so it has nothing of the others",
  },
  {
    file: "host/coordinator/plan/plan-detachment.ts",
    text: "name === pair.host.name",
    note: "equivalent: the difference deletes a pair by its name, and a pod with the pair's other end is not alone",
  },
  {
    file: "host/coordinator/plan/plan-nics.ts",
    text: "nextHops?.[0]",
    note: "equivalent: a multipath route has a next hop; for the compiler",
  },
  {
    file: "host/coordinator/plan/plan-pod-routes.ts",
    text: "link === undefined",
    note: "equivalent: a unicast route without next hops has a link; for the compiler",
  },
  {
    file: "host/coordinator/plan/plan-pod-routes.ts",
    text: "[]",
    note: "equivalent: a unicast route without next hops has a link; for the compiler",
  },
  {
    file: "host/coordinator/plan/plan-pod-routes.ts",
    text: ".slice(0, 1)",
    note: "equivalent: the joined routes are the same but for their protocol, and the difference adds each once",
  },
  {
    file: "host/coordinator/plan/plan-service-path.ts",
    text: "route.table === table",
    note: "equivalent: of the node's routes only those of this table are observed (observeHost)",
  },
  {
    file: "host/coordinator/plan/plan-service-path.ts",
    text: "table === conf.hostRuleTable",
    note: "equivalent: of the node's routes only those of this table are observed (observeHost)",
  },
];
