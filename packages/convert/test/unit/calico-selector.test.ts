import { describe, expect, it } from "vitest";
import { parseCalicoSelector } from "../../calico-selector.ts";

const In = (key: string, ...values: string[]) => ({ key, operator: "In", values });
const NotIn = (key: string, ...values: string[]) => ({ key, operator: "NotIn", values });

describe("a selector of Calico", () => {
  it.each<[selector: string, requirements: object[]]>([
    ["", []],
    ["rack == 'a'", [In("rack", "a")]],
    ['rack=="a"&&all()', [In("rack", "a")]],
    ['topology.kubernetes.io/zone != "west"', [NotIn("topology.kubernetes.io/zone", "west")]],
    ["rack in {'a', \"b\"}", [In("rack", "a", "b")]],
    ["rack not in {'a'}", [NotIn("rack", "a")]],
    ["!has(ssd)", [{ key: "ssd", operator: "DoesNotExist" }]],
    ["(rack == 'a' && (has(x))) && y == ''", [In("rack", "a"), { key: "x", operator: "Exists" }, In("y", "")]],
  ])("%s is a label selector", (selector, requirements) => expect(parseCalicoSelector(selector)).toEqual(requirements));

  it.each([
    ...["rack == 'a' || rack == 'b'", "!all()", "!(rack == 'a')", "rack contains 'a'", "rack starts with 'a'"],
    ...["global()", "rack ==", "rack == 'a' &&", "(rack == 'a'", "rack == 'a')"],
    ...["rack in {}", "rack in {'a'", "rack == 'a", "has(", "rack"],
    ...["'a' == rack", "%"],
  ])("%s is none", (selector) => expect(parseCalicoSelector(selector)).toBeUndefined());
});
