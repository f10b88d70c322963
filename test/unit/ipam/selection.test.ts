import { describe, expect, it } from "vitest";
import type { IfName } from "../../../host/cni/names.ts";
import { DEFAULT_VENDOR_CONF } from "../../../host/config/vendor-conf.ts";
import type { Subject } from "../../../host/ipam/model.ts";
import { selectPools } from "../../../host/ipam/selection.ts";
import { pool, poolsByName, subject } from "./subjects.ts";

const POOLS = poolsByName(
  pool("blue", "10.1.0.0/24"),
  pool("green", "10.2.0.0/24"),
  pool("red-2", "10.4.0.0/24"),
  pool("red-1", "10.3.0.0/24"),
  pool("six", "fd00::/64"),
  pool("fallback", "10.9.0.0/24", { default: true }),
);
const DUAL = DEFAULT_VENDOR_CONF;

type Annotations = NonNullable<Subject["pod"]>["annotations"];

function withPod(annotations: Annotations, options: Partial<Subject> = {}): Subject {
  return subject({ pod: { namespace: "shop", name: "web-0", labels: {}, annotations }, ...options });
}

function namespaceDefaults(ipv4: string[]): Partial<Subject> {
  return { namespace: { labels: {}, annotations: { ipv4 } } };
}

/** `eth0: blue,green | six` */
function summary(given: Subject): string {
  return selectPools(given, POOLS)
    .nics.map(({ ifName, families }) => {
      const lists = families.map(({ candidates }) => candidates.map(({ name }) => name).join(","));
      return `${ifName}: ${lists.join(" | ")}`;
    })
    .join("; ");
}

describe("selection takes the first rule that is present", () => {
  const configuration: Partial<Subject> = { ipamConf: { type: "berth", default_ipv4_ippool: ["red-1"] } };
  const rows: [what: string, subject: Subject, wanted: string][] = [
    ["default pools when nothing else is said", subject(), "eth0: fallback"],
    ["the CNI configuration over default pools", subject(configuration), "eth0: red-1"],
    [
      "namespace defaults over the configuration",
      subject({ ...configuration, ...namespaceDefaults(["green"]) }),
      "eth0: green",
    ],
    [
      "ippool over namespace defaults",
      withPod({ ippool: { ipv4: ["blue"] } }, namespaceDefaults(["green"])),
      "eth0: blue",
    ],
    [
      "ippools over ippool",
      withPod({ ippool: { ipv4: ["blue"] }, ippools: [{ ipv4: ["green"], cleangateway: false }] }),
      "eth0: green",
    ],
    ["no pod at all", subject({ pod: undefined }), "eth0: fallback"],
  ];
  it.each(rows)("%s", (_what, given, wanted) => expect(summary(given)).toBe(wanted));
});

describe("selection of ippools", () => {
  const entry = (ifName: string | undefined, name: string) => ({
    ...(ifName === undefined ? {} : { interface: ifName as IfName }),
    ipv4: [name],
    cleangateway: false,
  });

  it("demands all NICs at once", () => {
    const ippools = [entry("eth0", "blue"), entry("net1", "green")];
    expect(summary(withPod({ ippools }))).toBe("eth0: blue; net1: green");
  });

  it("without names goes by the order of the NICs", () => {
    const ippools = [entry(undefined, "blue"), entry(undefined, "green"), entry(undefined, "red-1")];
    expect(summary(withPod({ ippools }))).toBe("eth0: blue; net1: green; net2: red-1");
  });

  it("without names takes the names of the pod's networks", () => {
    const ippools = [entry(undefined, "blue"), entry(undefined, "green")];
    const networks = [{ name: "lab", interface: "store" as IfName }];
    expect(summary(withPod({ ippools, networks }))).toBe("eth0: blue; store: green");
  });

  it("without names refuses networks that give one name to two NICs", () => {
    const ippools = [entry(undefined, "blue"), entry(undefined, "green")];
    const networks = [{ name: "lab", interface: "eth0" as IfName }];
    expect(() => selectPools(withPod({ ippools, networks }), POOLS)).toThrow(
      'Annotation "ipam.vendor.io/ippools" has two entries for interface "eth0"',
    );
  });

  it("refuses an interface that the list lacks", () => {
    const given = withPod({ ippools: [entry("eth0", "blue")] }, { ifName: "net7" });
    expect(() => selectPools(given, POOLS)).toThrow(
      'Annotation "ipam.vendor.io/ippools" has no entry for interface "net7"; it lists eth0',
    );
  });
});

describe("selection of families", () => {
  it("demands a family that is enabled and missing", () => {
    const given = withPod({ ippool: { ipv4: ["blue"] } }, { vendorConf: DUAL });
    expect(() => selectPools(given, POOLS)).toThrow(
      'annotation "ipam.vendor.io/ippool": field "ipv6" is required because enableIPv6 is true',
    );
  });

  it("lets a pod take one family when allowSingleFamily is set", () => {
    const given = withPod({ ippool: { ipv4: ["blue"] } }, { vendorConf: { ...DUAL, allowSingleFamily: true } });
    expect(summary(given)).toBe("eth0: blue");
  });

  it("lower rules serve the families that they name, with a warning", () => {
    const { nics, warnings } = selectPools(subject({ ...namespaceDefaults(["green"]), vendorConf: DUAL }), POOLS);
    expect(nics[0]?.families.map(({ family }) => family)).toEqual([4]);
    expect(warnings).toEqual([
      'namespace annotation "ipam.vendor.io/default-ipv4-ippool" names no IPv6 pool: the NIC gets no IPv6 address',
    ]);
  });

  it("ignores a disabled family with a warning", () => {
    const { nics, warnings } = selectPools(withPod({ ippool: { ipv4: ["blue"], ipv6: ["six"] } }), POOLS);
    expect(nics[0]?.families).toHaveLength(1);
    expect(warnings).toEqual([
      'annotation "ipam.vendor.io/ippool" names IPv6 pools, which are ignored because enableIPv6 is false',
    ]);
  });

  it("orders v4 before v6", () => {
    const given = withPod({ ippool: { ipv6: ["six"], ipv4: ["blue"] } }, { vendorConf: DUAL });
    expect(summary(given)).toBe("eth0: blue | six");
  });

  it("refuses a rule that names disabled families only", () => {
    const given = subject({ ipamConf: { type: "berth", default_ipv6_ippool: ["six"] } });
    expect(() => selectPools(given, POOLS)).toThrow("the CNI configuration names pools of disabled families only");
  });
});

describe("selection of names and patterns", () => {
  const rows: [names: string[], wanted: string][] = [
    [["green", "blue"], "eth0: green,blue"],
    [["red-*"], "eth0: red-1,red-2"],
    [["red-2", "red-*"], "eth0: red-2,red-1"],
    [["?lue", "green"], "eth0: blue,green"],
    [["red-[1]"], "eth0: red-1"],
  ];
  it.each(rows)("%j", (ipv4, wanted) => expect(summary(withPod({ ippool: { ipv4 } }))).toBe(wanted));

  it("refuses a pattern that matches nothing", () => {
    expect(() => selectPools(withPod({ ippool: { ipv4: ["nope-*"] } }), POOLS)).toThrow(
      'Pattern "nope-*" in annotation "ipam.vendor.io/ippool" matches no IPv4 pool',
    );
  });

  it("compares a pattern with the pools once, for however many NICs and lists", () => {
    let compared = 0;
    const counting = new Proxy(pool("blue", "10.1.0.0/24"), {
      get: (target, key) => {
        compared++;
        return Reflect.get(target, key);
      },
    });
    const once = (nics: number, ipv4: string[]) => {
      compared = 0;
      const entry = (at: number) => ({
        interface: (at === 0 ? "eth0" : `n${at}`) as IfName,
        ipv4,
        cleangateway: false,
      });
      const ippools = Array.from({ length: nics }, (_, at) => entry(at));
      const { nics: found } = selectPools(withPod({ ippools }), new Map([["blue", counting]]));
      expect(new Set(found.map(({ families }) => families[0]?.candidates)).size).toBe(1);
      return compared;
    };
    expect(once(32, Array<string>(64).fill("b*"))).toBe(once(1, ["b*"]));
  });

  it("a pattern sees pools of its family only", () => {
    expect(() => selectPools(withPod({ ippool: { ipv4: ["six*"] } }), POOLS)).toThrow("matches no IPv4 pool");
  });

  it("keeps a name that does not exist as a candidate with its reason", () => {
    const [nic] = selectPools(withPod({ ippool: { ipv4: ["ghost", "blue"] } }), POOLS).nics;
    expect(nic?.families[0]?.candidates[0]).toEqual({ name: "ghost", refusal: "does not exist" });
  });
});

describe("selection without an answer", () => {
  it("says what it looked for", () => {
    expect(() => selectPools(subject(), new Map())).toThrow(
      'No pool is selected for interface "eth0": no annotation, namespace default or CNI configuration names one, ' +
        "and no IPPool has spec.default: true",
    );
  });

  it("ignores a subnet annotation when enableSubnet is false", () => {
    const vendorConf = { ...DUAL, enableIPv6: false, enableSubnet: false };
    const { warnings } = selectPools(withPod({ subnet: { ipv4: ["s"] } }, { vendorConf }), POOLS);
    expect(warnings).toEqual(['annotation "ipam.vendor.io/subnet" is ignored because enableSubnet is false']);
  });
});
