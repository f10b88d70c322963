import { describe, expect, it } from "vitest";
import { decodeConfig } from "../../../host/config/config-error.ts";
import { type Labels, labelSelector, matchLabels, parseLabelSelector } from "../../../host/config/label-selector.ts";

const labels: Labels = { app: "web", "example.com/tier": "front", empty: "" };
const expression = (operator: string, values?: string[], key = "app") => ({
  matchExpressions: [values === undefined ? { key, operator } : { key, operator, values }],
});

it.each<[selector: object, expected: boolean]>([
  [{}, true],
  [{ matchLabels: { app: "db" } }, false],
  [{ matchLabels: { app: "web", "example.com/tier": "front" } }, true],
  [{ matchLabels: { app: "web", other: "x" } }, false],
  [{ matchLabels: { empty: "" } }, true],
  [{ matchLabels: { absent: "" } }, false],
  [expression("In", ["db", "web"]), true],
  [expression("NotIn", ["db"]), true],
  [expression("NotIn", ["web"]), false],
  [expression("NotIn", ["web"], "absent"), true],
  [expression("Exists"), true],
  [expression("Exists", undefined, "absent"), false],
  [expression("DoesNotExist"), false],
  [expression("DoesNotExist", undefined, "absent"), true],
  [expression("DoesNotExist", undefined, "hasOwnProperty"), true],
  [{ matchLabels: { app: "web" }, ...expression("In", ["db"]) }, false],
])("a selector matches as in Kubernetes %j: %s", (value, expected) => {
  expect(matchLabels(decodeConfig(labelSelector, value, "x"), labels)).toBe(expected);
});

it("a selector is refused for a label of no prototype", () => {
  const value = JSON.parse('{"matchLabels":{"__proto__":"x"}}');
  expect(() => decodeConfig(labelSelector, value, "x")).toThrow('field "matchLabels.__proto__"');
});

describe("the text of a selector", () => {
  it.each<[text: string, isMatch: boolean | undefined]>([
    ["app=web", true],
    ["app == web, example.com/tier in (back, front)", true],
    ["!app", false],
    ["! absent", true],
    ["app!=web", false],
    ["absent!=web", true],
    ["example.com/tier notin (front)", false],
    ["absent notin (a,b),app=web", true],
    ["app=web,app=db", false],
    ["", undefined],
    ["app>1", undefined],
    ["app=a b", undefined],
    ["app in (a,-b)", undefined],
    [Array(129).fill("app").join(), undefined],
    [`app in (${Array(129).fill("web").join()})`, undefined],
  ])("%s: %s", (text, isMatch) => {
    const selector = parseLabelSelector(text);
    expect(selector && matchLabels(selector, labels)).toBe(isMatch);
  });

  it("of very many commas takes no time for each of them", () => {
    expect(parseLabelSelector(`(${",".repeat(1_000_000)})`)).toBeUndefined();
  });
});
