import { expect, it } from "vitest";
import {
  describeForeign,
  foreignAnnotations,
  MAX_FOREIGN_ANNOTATIONS,
} from "../../../host/config/foreign-annotations.ts";

const SPIDERPOOL = "ipam.spidernet.io/ippool";
const CALICO = "cni.projectcalico.org/ipv4pools";

it.each<[what: string, annotations: object, keys: string[]]>([
  ["of Spiderpool", { [SPIDERPOOL]: "{}" }, [SPIDERPOOL]],
  ["of Calico", { [CALICO]: "[]" }, [CALICO]],
  ["of Whereabouts", { "whereabouts.cni.cncf.io/pool": "" }, ["whereabouts.cni.cncf.io/pool"]],
  ["that Calico writes itself", { "cni.projectcalico.org/podIP": "10.0.0.1/32" }, []],
  ["that Spiderpool writes itself", { "ipam.spidernet.io/assigned-eth0": "{}" }, []],
  ["beside Berth's own", { [SPIDERPOOL]: "{}", "ipam.vendor.io/ippool": "{}" }, []],
  ["of a huge name", { [`ipam.spidernet.io/${"x".repeat(1_000)}`]: "" }, []],
])("annotations %s", (_what, annotations, keys) => expect(foreignAnnotations(annotations)).toEqual(keys));

it("names a few", () => {
  const many = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`ipam.spidernet.io/a${index}`, ""]));
  expect(foreignAnnotations(many)).toHaveLength(MAX_FOREIGN_ANNOTATIONS);
});

it("concerns the NIC that Berth serves: Calico's only the first", () => {
  expect(describeForeign([CALICO], false)).toBeUndefined();
  expect(describeForeign([CALICO], true)).toContain(`Annotation "${CALICO}" is of Calico and ignored`);
  expect(describeForeign([SPIDERPOOL, CALICO], false)).toContain(`Annotation "${SPIDERPOOL}" is of Spiderpool`);
  expect(describeForeign([SPIDERPOOL], false)).toContain("docs/annotations.html");
});
