import { describe, expect, it } from "vitest";
import {
  describeNetworks,
  requireServiceNetworks,
  SettingsReader,
} from "../../../../host/agent/coordinator/settings.ts";
import { CniError, ErrorCode } from "../../../../host/cni/error.ts";
import { decodeNetConf } from "../../../../host/cni/net-conf.ts";
import { decodeCoordinatorConf } from "../../../../host/config/coordinator-conf.ts";
import { resolveCoordinatorConf } from "../../../../host/config/coordinator-settings.ts";
import { formatPrefix } from "../../../../host/net/prefix.ts";
import {
  coordinatorLayers,
  decodeCoordinator,
  decodeServedCoordinator,
} from "../../../../host/resources/coordinator.ts";
import type { Snapshot } from "../../../../host/resources/snapshot.ts";
import { cases } from "../../../world/rows.ts";

const object = (spec: object, status?: unknown) => ({
  ...{ apiVersion: "ipam.vendor.io/v1", kind: "Coordinator", spec },
  metadata: { name: "default", resourceVersion: "1" },
  ...(status === undefined ? {} : { status }),
});

const SYNCED = {
  ...{ phase: "Synced", reason: "serviceCIDR: of ServiceCIDR kubernetes" },
  ...{ serviceCIDR: ["10.96.0.0/12"], overlayPodCIDR: ["10.244.0.0/16"] },
};
const NOT_READY = { phase: "NotReady", reason: "serviceCIDR: nothing in ServiceCIDR objects" };

/** Returns the settings of an ADD: the networks, and where they come from. */
function look(entry: object, spec: object | undefined, status?: unknown, isCluster = false) {
  const said = decodeCoordinatorConf(entry, "x");
  const coordinator = spec && decodeServedCoordinator(object(spec, status), "x");
  const conf = resolveCoordinatorConf(said, ...coordinatorLayers(coordinator));
  const { origins, warnings, missing, collected } = describeNetworks(said, coordinator, isCluster);
  const networks = [...conf.serviceCIDR, ...conf.overlayPodCIDR].map(formatPrefix);
  return { networks, origins, warnings, missing, collected };
}

const BOTH_KEYS = ["serviceCIDR", "overlayPodCIDR"];
const DEFINED = { serviceCIDR: ["10.1.0.0/16"], overlayPodCIDR: ["10.2.0.0/16"] };
const SPECIFIED = { serviceCIDR: ["10.3.0.0/16"], overlayPodCIDR: ["10.4.0.0/16"] };
const [BY_DEFINITION, BY_RESOURCE] = ["set by the network's definition", 'set by Coordinator "default"'];
const BY_STATUS = 'from the status of Coordinator "default" (Synced: serviceCIDR: of ServiceCIDR kubernetes)';
const EMPTY = { serviceCIDR: [], overlayPodCIDR: [] };
const WORDS: Readonly<Record<string, string>> = {
  ...{ DEFINITION: BY_DEFINITION, RESOURCE: BY_RESOURCE, STATUS: BY_STATUS },
  NO_STATUS: 'it is not set, and Coordinator "default" has no status yet',
  NO_OBJECT: 'the definition names none, and there is no Coordinator "default"',
};
type Sources = Partial<Record<"entry" | "spec" | "status", object>>;
it.each(cases<Sources>`
  the definition's ${{ entry: DEFINED, spec: SPECIFIED, status: SYNCED }}
    => serviceCIDR is 10.1.0.0/16, DEFINITION & overlayPodCIDR is 10.2.0.0/16, DEFINITION
  none, as the definition's empty list says ${{ entry: EMPTY, spec: { serviceCIDR: ["10.3.0.0/16"] }, status: SYNCED }}
    => serviceCIDR is empty, DEFINITION & overlayPodCIDR is empty, DEFINITION
  what was collected, when the resource's lists are empty ${{ spec: EMPTY, status: SYNCED }}
    => serviceCIDR is 10.96.0.0/12, STATUS & overlayPodCIDR is 10.244.0.0/16, STATUS
  the specification's ${{ spec: SPECIFIED, status: SYNCED }}
    => serviceCIDR is 10.3.0.0/16, RESOURCE & overlayPodCIDR is 10.4.0.0/16, RESOURCE
  what was collected, key by key ${{ entry: { overlayPodCIDR: ["10.2.0.0/16"] }, spec: {}, status: SYNCED }}
    => serviceCIDR is 10.96.0.0/12, STATUS & overlayPodCIDR is 10.2.0.0/16, DEFINITION
  no pod networks with podCIDRType none, whatever an old status says ${{ spec: { podCIDRType: "none" }, status: SYNCED }}
    => serviceCIDR is 10.96.0.0/12, STATUS & overlayPodCIDR is empty because podCIDRType of Coordinator "default" is none
  none without a status ${{ spec: {} }} => serviceCIDR is empty: NO_STATUS & overlayPodCIDR is empty: NO_STATUS
  none without a Coordinator ${{}} => serviceCIDR is empty: NO_OBJECT & overlayPodCIDR is empty: NO_OBJECT
`)("networks of an ADD: %s", (_, { entry = {}, spec, status }, text) => {
  const origins = text.replaceAll(/[A-Z_]{6,}/g, (word) => WORDS[word] ?? word).split(" & ");
  const networks = text.match(/[0-9.]+\/[0-9]+/g) ?? [];
  const collected = BOTH_KEYS.filter((_key, at) => origins[at]?.endsWith(BY_STATUS));
  expect(look(entry, spec, status)).toEqual({ networks, origins, warnings: [], missing: undefined, collected });
});

it.each<[what: string, entry: object, spec: object | undefined, missing: string | undefined]>([
  ["no Coordinator", {}, undefined, 'There is no Coordinator "default"'],
  ["no status", {}, {}, 'Coordinator "default" has no status yet'],
  ["networks of the definition", { serviceCIDR: ["10.1.0.0/16"] }, undefined, undefined],
  ["an empty list of the definition", { serviceCIDR: [] }, undefined, undefined],
  ["networks of the specification", {}, { serviceCIDR: ["10.1.0.0/16"] }, undefined],
  ["an entry that is switched off", { mode: "disable" }, undefined, 'There is no Coordinator "default"'],
])("a cluster whose networks were not collected yet with %s", (_, entry, spec, missing) => {
  const found = look(entry, spec, undefined, true);
  expect(found.missing).toBe(missing);
  expect(look(entry, spec).missing).toBeUndefined();
  if (missing === undefined) return;
  expect(() => requireServiceNetworks(found)).toThrow(
    `The cluster's service networks are unknown. ${missing}. The controller (berth-controller) collects them`,
  );
});

describe("a Coordinator that is not ready", () => {
  const text = 'Coordinator "default" is not ready: serviceCIDR: nothing in ServiceCIDR objects';

  it("refuses an ADD without a known service network, with code 11, the reason and the remedy", () => {
    const found = look({}, {}, { ...NOT_READY, overlayPodCIDR: ["10.244.0.0/16"] });
    expect(found).toMatchObject({ networks: ["10.244.0.0/16"], warnings: [text], missing: text });
    const refusal = () => requireServiceNetworks(found);
    expect(refusal).toThrow(CniError);
    expect(refusal).toThrow(expect.objectContaining({ code: ErrorCode.TryAgainLater }));
    expect(refusal).toThrow(
      `The cluster's service networks are unknown. ${text}. The controller (berth-controller) collects them into that status; check that it is running, or set "serviceCIDR" there or in the network's definition`,
    );
  });

  it.each<[what: string, entry: object, spec: object, warnings: string[]]>([
    ["by its definition", { serviceCIDR: ["10.1.0.0/16"] }, {}, [text]],
    ["by the specification", {}, { serviceCIDR: ["10.1.0.0/16"] }, [text]],
    ["by the specification, without pod networks", {}, { serviceCIDR: ["10.1.0.0/16"], podCIDRType: "none" }, []],
    ["by the definition, both of them", { serviceCIDR: ["10.1.0.0/16"], overlayPodCIDR: ["10.2.0.0/16"] }, {}, []],
  ])("keeps no pod waiting that is told %s", (_, entry, spec, warnings) => {
    const found = look(entry, spec, NOT_READY);
    expect(found).toMatchObject({ warnings, missing: undefined });
    expect(() => requireServiceNetworks(found)).not.toThrow();
  });

  it("keeps no pod waiting for networks that were known before, nor for pod networks", () => {
    const found = look({}, {}, { ...NOT_READY, serviceCIDR: ["10.96.0.0/12"] });
    expect(found).toMatchObject({ networks: ["10.96.0.0/12"], warnings: [text], missing: undefined });
  });
});

describe("a status", () => {
  const collected = (status: unknown) => decodeServedCoordinator(object({}, status), "x").collected;
  const none = { phase: "Synced", reason: "", overlayPodCIDR: [], serviceCIDR: [] };
  it.each([
    [{}, undefined],
    [null, undefined],
    [{ phase: "Maybe" }, undefined],
    [{ phase: "Synced" }, none],
    [{ phase: "Synced", reason: 3, serviceCIDR: ["10.96.0.0/12", "x"] }, none],
  ])("that is invalid affects nothing else: %j", (status, wanted) => expect(collected(status)).toEqual(wanted));

  it("in a manifest is ignored: there is no cluster", () => {
    expect(decodeCoordinator(object({}, SYNCED), "x").collected).toBeUndefined();
  });
});

it("more networks than a line has room for are counted", () => {
  const serviceCIDR = Array.from({ length: 11 }, (_, index) => `10.${index}.0.0/16`);
  expect(look({ serviceCIDR }, undefined).origins[0]).toContain("10.7.0.0/16 and 3 more, set by the network's");
});

describe("settings of requests", () => {
  const request = (keys: object, pod: string) => ({
    netConf: decodeNetConf(
      JSON.stringify({ cniVersion: "1.0.0", name: "lan", type: "coordinator", ...keys, args: { cni: { pod } } }),
    ),
  });

  it("are decoded once for the pods of a network, and again when the definition or the resource has changed", () => {
    let coordinator = decodeServedCoordinator(object({ serviceCIDR: ["10.3.0.0/16"] }), "x");
    const snapshot = () => ({ coordinator }) as Snapshot;
    const reader = new SettingsReader({ snapshot, isCluster: false });
    const first = reader.read(request({}, "a"));
    expect(reader.read(request({}, "b"))).toBe(first);
    expect(first.conf.serviceCIDR.map(formatPrefix)).toEqual(["10.3.0.0/16"]);
    const other = reader.read(request({ serviceCIDR: ["10.1.0.0/16"] }, "a"));
    expect(other.conf.serviceCIDR.map(formatPrefix)).toEqual(["10.1.0.0/16"]);
    coordinator = decodeServedCoordinator(object({ serviceCIDR: ["10.5.0.0/16"] }), "x");
    expect(reader.read(request({}, "a")).conf.serviceCIDR.map(formatPrefix)).toEqual(["10.5.0.0/16"]);
  });

  it("that are invalid are refused each time", () => {
    const reader = new SettingsReader({ snapshot: () => ({ coordinator: undefined }) as never, isCluster: false });
    for (const pod of ["a", "b"]) expect(() => reader.read(request({ mode: "wrong" }, pod))).toThrow("mode");
  });
});
