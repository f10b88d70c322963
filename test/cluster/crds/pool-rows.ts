import { accept, type Row, refuse, refuseForm, times } from "./rows.ts";

const SUBNET = "10.6.0.0/24";
const pool = (keys: object) => ({ subnet: SUBNET, ...keys });
const ok = (keys: object) => accept("IPPool", pool(keys));
const no = (keys: object, field: string, more?: Partial<Row>) => refuse("IPPool", pool(keys), `spec.${field}`, more);
const form = (keys: object, field: string, more?: Partial<Row>) =>
  refuseForm("IPPool", pool(keys), `spec.${field}`, more);
const expression = (keys: object) => ({ podAffinity: { matchExpressions: [keys] } });
const label = (key: string, value: unknown = "x") => ({ nodeAffinity: { matchLabels: { [key]: value } } });
const atLabels = { serverField: "spec.nodeAffinity.matchLabels" };
const VALUES = "podAffinity.matchExpressions[0].values";

const FULL = "fd00:0006:0000:0000:0000:0000:";
const hex = (index: number): string => index.toString(16).padStart(4, "0");
const ranges = times(1_024, (i) => `${FULL}${hex(i)}:0000-${FULL}${hex(i)}:ffff`);
const selector = {
  matchLabels: Object.fromEntries(times(128, (i) => [`${"a".repeat(253)}/${"k".repeat(60)}${i}`, "v".repeat(63)])),
  matchExpressions: times(128, (i) => ({ key: `k${i}`, operator: "In", values: times(16, () => "v".repeat(63)) })),
};

/** The rules of one object may cost the API server only so much. */
const EVERYTHING_AT_ITS_LIMIT = {
  ipVersion: 6,
  subnet: "fd00:6::/64",
  ips: ranges,
  excludeIPs: ranges,
  gateway: `${FULL}0000:0001`,
  routes: times(128, (i) => ({ dst: `fd01:0:0:${i + 1}::/64`, gw: `${FULL}0000:0001` })),
  addressSpace: "a".repeat(63),
  podAffinity: selector,
  namespaceAffinity: selector,
  nodeAffinity: selector,
  namespaceName: times(1_024, (i) => `${"n".repeat(59)}${hex(i)}`),
  nodeName: times(1_024, (i) => `${"n".repeat(249)}${hex(i)}`),
  multusName: times(1_024, (i) => `${"n".repeat(63)}/${"n".repeat(249)}${hex(i)}`),
  cooldown: "596h31m23s647ms",
};

const GENERATED = {
  ...{ subnet: "blue", interface: "eth0", reclaim: true, wanted: 1, reason: "1 replica" },
  application: { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "web", uid: "u1" },
};

/** Rows about an IPPool's fields beside its addresses. */
export const POOL_ROWS: readonly Row[] = [
  accept("IPPool", EVERYTHING_AT_ITS_LIMIT, { title: "everything at its limit" }),
  ok({ podAffinity: {}, namespaceAffinity: { matchLabels: {} }, nodeAffinity: { matchExpressions: [] } }),
  ok(label("app", "")),
  ok(label("example.com/app.kubernetes_io-x", "A-b_c.9")),
  ok(label(`${"a.".repeat(126)}a/${"k".repeat(63)}`, "v".repeat(63))),
  ok({ podAffinity: { matchLabels: Object.fromEntries(times(128, (i) => [`k${i}`, "v".repeat(63)])) } }),
  ok(expression({ key: "app", operator: "In", values: ["a", ""] })),
  ok(expression({ key: "app", operator: "NotIn", values: times(128, (i) => `v${i}`) })),
  ok(expression({ key: "app", operator: "Exists" })),
  ok(expression({ key: "app", operator: "DoesNotExist", values: [] })),
  ok({ podAffinity: { matchExpressions: times(128, (i) => ({ key: `k${i}`, operator: "Exists" })) } }),
  ok({ namespaceName: ["shop", "a".repeat(63)], nodeName: ["n1", "n1.example.com", "a".repeat(253)] }),
  ok({ namespaceName: times(1_024, (i) => `n${i}`), nodeName: times(1_024, (i) => `${"n".repeat(240)}${i}`) }),
  ok({ multusName: ["Net_a", "kube-system/net-b", ...times(1_022, (i) => `a/${"n".repeat(300)}${i}`)] }),
  ok({ default: true, disable: true, selection: "ascending", cooldown: "1m30s" }),
  ok({ cooldown: "0s" }),
  ok({ cooldown: "596h31m23s647ms" }),
  ok({ cooldown: "2147483647ms" }),
  ok({ cooldown: "00000000000000000000000000001h" }),

  form(label("app", 7), "nodeAffinity.matchLabels.app"),
  no(label("-app"), 'nodeAffinity.matchLabels["-app"]', atLabels),
  no(label("a/b/c"), 'nodeAffinity.matchLabels["a/b/c"]', atLabels),
  no(label("A.com/c"), 'nodeAffinity.matchLabels["A.com/c"]', atLabels),
  no(label("k".repeat(64)), `nodeAffinity.matchLabels["${"k".repeat(64)}"]`, atLabels),
  no(label("app", "a b"), "nodeAffinity.matchLabels.app", atLabels),
  no(label("app", "-"), "nodeAffinity.matchLabels.app", atLabels),
  form(label("app", "v".repeat(64)), "nodeAffinity.matchLabels.app"),
  form(
    { podAffinity: { matchLabels: Object.fromEntries(times(129, (i) => [`k${i}`, ""])) } },
    "podAffinity.matchLabels",
  ),
  form({ podAffinity: { matchLabels: [] } }, "podAffinity.matchLabels"),
  form({ podAffinity: [] }, "podAffinity"),
  form({ podAffinity: { app: "web" } }, "podAffinity.app"),
  no(expression({ key: "", operator: "Exists" }), "podAffinity.matchExpressions[0].key"),
  form(expression({ operator: "Exists" }), "podAffinity.matchExpressions[0].key"),
  form(expression({ key: "app", operator: "Has" }), "podAffinity.matchExpressions[0].operator"),
  form(expression({ key: "app", operator: "In", value: ["a"] }), "podAffinity.matchExpressions[0].value"),
  no(expression({ key: "app", operator: "In" }), VALUES),
  no(expression({ key: "app", operator: "NotIn", values: [] }), VALUES),
  no(expression({ key: "app", operator: "Exists", values: ["a"] }), VALUES),
  no(expression({ key: "app", operator: "In", values: ["a", "a b"] }), `${VALUES}[1]`),
  form(expression({ key: "app", operator: "In", values: times(129, (i) => `v${i}`) }), VALUES),
  form(
    { podAffinity: { matchExpressions: times(129, (i) => ({ key: `k${i}`, operator: "Exists" })) } },
    "podAffinity.matchExpressions",
  ),
  form({ namespaceName: "shop" }, "namespaceName"),
  no({ namespaceName: ["shop", "a.b"] }, "namespaceName[1]"),
  no({ namespaceName: [""] }, "namespaceName[0]"),
  form({ namespaceName: ["a".repeat(64)] }, "namespaceName[0]"),
  form({ namespaceName: times(1_025, (i) => `n${i}`) }, "namespaceName"),
  no({ nodeName: ["Node"] }, "nodeName[0]"),
  no({ nodeName: ["a..b"] }, "nodeName[0]"),
  no({ nodeName: [".a"] }, "nodeName[0]"),
  form({ nodeName: ["a".repeat(254)] }, "nodeName[0]"),
  form({ nodeName: times(1_025, (i) => `n${i}`) }, "nodeName"),
  no({ multusName: ["a/b/c"] }, "multusName[0]"),
  no({ multusName: ["A/b"] }, "multusName[0]"),
  no({ multusName: ["a/"] }, "multusName[0]"),
  no({ multusName: [`${"n".repeat(64)}/b`] }, "multusName[0]"),
  form({ multusName: ["n".repeat(318)] }, "multusName[0]"),
  form({ multusName: times(1_025, (i) => `n${i}`) }, "multusName"),
  form({ default: "true" }, "default"),
  form({ disable: 1 }, "disable"),
  form({ disabled: true }, "disabled"),
  form({ selection: "random" }, "selection"),
  no({ source: { range: "a" }, ips: [] }, "ips"),
  no({ source: { range: "a" }, ips: ["10.6.0.9"] }, "ips"),
  no({ source: { range: "a" }, generated: GENERATED }, "generated"),
  no({ source: { range: "A" } }, "source.range"),
  no({ source: {} }, "source"),
  no({ source: { range: "a", prefix: SUBNET } }, "source", { also: ["spec.source.blockSize"] }),
  no({ source: { prefix: SUBNET } }, "source.blockSize"),
  no({ source: { range: "a", blockSize: 28 } }, "source.blockSize"),
  no({ source: { prefix: "10.6.0.0/22", blockSize: 28 } }, "source.prefix"),
  no({ source: { prefix: "10.6.0.1/24", blockSize: 28 } }, "source.prefix"),
  no({ source: { prefix: SUBNET, blockSize: 31 } }, "source.blockSize"),
  no({ source: { prefix: "10.6.0.0/28", blockSize: 26 } }, "source.blockSize"),
  no({ source: { prefix: "10.6.0.0/28", blockSize: 28 } }, "source.blockSize"),
  form({ source: "a" }, "source"),
  form({ source: { range: "a", maxBlocks: 4 } }, "source.maxBlocks"),
  form({ cooldown: 30 }, "cooldown"),
  no({ cooldown: "" }, "cooldown"),
  no({ cooldown: "30" }, "cooldown"),
  no({ cooldown: "1s1m" }, "cooldown"),
  no({ cooldown: "1.5s" }, "cooldown"),
  no({ cooldown: "-1s" }, "cooldown"),
  no({ cooldown: "30 s" }, "cooldown"),
  no({ cooldown: "2147483648ms" }, "cooldown"),
  no({ cooldown: "597h" }, "cooldown"),
  no({ cooldown: "999999999999999999999h" }, "cooldown"),
  form({ cooldown: `${"0".repeat(32)}s` }, "cooldown"),
];

const OWNER = { namespace: "shop", name: "db-0" };

/** Reserved addresses are of no subnet. */
export const RESERVED_ROWS: readonly Row[] = [
  accept("ReservedIP", { ips: ["10.0.0.1", "10.0.0.5-10.0.0.9", "192.168.0.1"] }),
  accept("ReservedIP", { ips: ["fd00::1"], ipVersion: 6, addressSpace: "lab" }),
  accept("ReservedIP", { ips: times(1_024, (i) => `10.0.${i >> 8}.${i & 255}`), ipVersion: 4 }),
  // An address in several lists or twice in one is reserved all the same.
  accept("ReservedIP", { ips: ["10.0.0.1-10.0.0.9", "10.0.0.5"] }),
  accept("ReservedIP", { ips: ["10.0.0.1"], owner: { namespace: "shop", name: "db-0", interface: "net1" } }),
  ...["2026-12-31T18:00:00Z", "2026-12-31T18:00:00.5+01:30"].map((until) =>
    accept("ReservedIP", { ips: ["10.0.0.1"], until }),
  ),
  ...[
    "",
    "1h",
    "2026-12-31",
    "2026-12-31T18:00:00",
    "2026-02-30T18:00:00Z",
    "2026-12-31T25:00:00Z",
    "2026-12-31T18:00:00+25:00",
  ].map((until) => refuse("ReservedIP", { ips: ["10.0.0.1"], until }, "spec.until")),
  refuse("ReservedIP", { ips: ["10.0.0.1", "10.0.0.2"], owner: OWNER }, "spec.ips"),
  refuse("ReservedIP", { ips: ["10.0.0.1-10.0.0.2"], owner: OWNER }, "spec.ips"),
  refuse("ReservedIP", { ips: ["10.0.0.1"], owner: { ...OWNER, namespace: "Shop" } }, "spec.owner.namespace"),
  refuse("ReservedIP", { ips: ["10.0.0.1"], owner: { ...OWNER, name: "db 0" } }, "spec.owner.name"),
  refuse("ReservedIP", { ips: ["10.0.0.1"], owner: { ...OWNER, interface: "a/b" } }, "spec.owner.interface"),
  refuseForm("ReservedIP", { ips: ["10.0.0.1"], owner: { name: "db-0" } }, "spec.owner.namespace"),
  refuseForm("ReservedIP", {}, "spec.ips"),
  refuseForm("ReservedIP", { ips: [] }, "spec.ips"),
  refuseForm("ReservedIP", { ips: times(1_025, (i) => `10.0.${i >> 8}.${i & 255}`) }, "spec.ips"),
  refuse("ReservedIP", { ips: ["x"] }, "spec.ips[0]"),
  refuse("ReservedIP", { ips: ["10.0.0.1-fd00::1"] }, "spec.ips[0]"),
  refuse("ReservedIP", { ips: ["10.0.0.1", "fd00::1"] }, "spec.ips[1]", { serverField: "spec.ips" }),
  refuse("ReservedIP", { ips: ["fd00::1", "10.0.0.1"] }, "spec.ips[1]", { serverField: "spec.ips" }),
  refuse("ReservedIP", { ips: ["10.0.0.1"], ipVersion: 6 }, "spec.ipVersion"),
  refuse("ReservedIP", { ips: ["fd00::1"], ipVersion: 4 }, "spec.ipVersion"),
  refuseForm("ReservedIP", { ips: ["10.0.0.1"], ipVersion: 5 }, "spec.ipVersion"),
  refuse("ReservedIP", { ips: ["10.0.0.1"], addressSpace: "L" }, "spec.addressSpace"),
  refuseForm("ReservedIP", { ips: ["10.0.0.1"], subnet: "10.0.0.0/8" }, "spec.subnet"),
];
