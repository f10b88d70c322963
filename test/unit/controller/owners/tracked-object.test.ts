import { describe, expect, it } from "vitest";
import { namesSubnets, readTemplate } from "../../../../host/controller/owners/tracked-object.ts";
import { annotationsOf } from "./workload-objects.ts";

it.each<[annotations: unknown, expected: boolean]>([
  [{ "ipam.vendor.io/subnet": "" }, true],
  [{ "ipam.vendor.io/subnets": "[]" }, true],
  [{ "ipam.vendor.io/ippool": "{}" }, false],
  [Object.create({ "ipam.vendor.io/subnet": "" }), false],
  [{}, false],
  [null, false],
  [undefined, false],
])("annotations %j name Subnets: %s", (annotations, expected) => expect(namesSubnets(annotations)).toBe(expected));

describe("a template", () => {
  const read = (annotations: object) => readTemplate("shop", annotationsOf({ ...annotations }));
  const subnet = { ipv4: ["blue"] };

  it("without more than Subnets has the defaults", () =>
    expect(read({ subnet })).toEqual({
      kind: "requests",
      ...{ subnet, subnets: undefined, first: undefined, others: [], reclaim: true },
      number: { kind: "flexible", count: 1 },
    }));

  it("says how many, and whether the pool goes with the workload", () => {
    const more = { "ippool-ip-number": "7", "ippool-reclaim": "false" };
    expect(read({ subnet, ...more })).toMatchObject({ number: { kind: "fixed", count: 7 }, reclaim: false });
  });

  it("has the NICs of right entries beside wrong ones", () => {
    const others = (networks: string) => read({ subnet, "k8s.v1.cni.cncf.io/networks": networks });
    const [first, third] = ["a 1", "c 3"].map((each) => ({ ifName: `net${each[2]}`, attachment: `shop/${each[0]}` }));
    expect(others("a,B,c")).toMatchObject({ others: [first, third] });
    expect(others("{")).toMatchObject({ kind: "requests", others: [] });
  });

  it.each<[annotations: object, message: string]>([
    [{ subnet: { ipv4: ["A b"] } }, 'annotation "ipam.vendor.io/subnet": field "ipv4[0]": found "A b"'],
    [{ subnets: [{ ipv4: ["a"] }] }, 'annotation "ipam.vendor.io/subnets": field "[0].interface": found nothing'],
    [{ subnet, "ippool-ip-number": "a+1" }, 'annotation "ipam.vendor.io/ippool-ip-number": found "a+1"'],
    [{ subnet, "ippool-reclaim": "no" }, 'annotation "ipam.vendor.io/ippool-reclaim": found "no"'],
    [{ subnet, "ippool-ip-numbr": "1" }, 'annotation "ipam.vendor.io/ippool-ip-numbr": found an unknown annotation'],
    [{ subnet: " ".repeat(20_000) }, 'annotation "ipam.vendor.io/subnet": found a longer text'],
  ])("with %j cannot be followed", (annotations, message) => {
    const template = read(annotations);
    expect(template.kind).toBe("fault");
    expect(template.kind === "fault" && template.message).toContain(message);
  });
});
