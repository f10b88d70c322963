import { describe, expect, it } from "vitest";
import { decodeConfig } from "../../../host/config/config-error.ts";
import { type Labels, labelSelector, matchLabels, parseLabelSelector } from "../../../host/config/label-selector.ts";

const labels: Labels = { app: "web", "example.com/tier": "front", empty: "" };
const expression = (operator: string, values?: string[], key = "app") => ({
  matchExpressions: [values === undefined ? { key, operator } : { key, operator, values }],
});

const rows: [selector: object, expected: boolean][] = [
  [{}, true],
  [{ matchLabels: { app: "db" } }, false],
  [{ matchLabels: { app: "web", "example.com/tier": "front" } }, true],
  [{ matchLabels: { app: "web", other: "x" } }, false],
  [{ matchLabels: { empty: "" } }, true],
  [{ matchLabels: { absent: "" } }, false],
  [expression("In", ["db", "web"]), true],
  [expression("In", ["db"], "absent"), false],
  [expression("NotIn", ["db"]), true],
  [expression("NotIn", ["web"]), false],
  [expression("NotIn", ["web"], "absent"), true],
  [expression("Exists"), true],
  [expression("Exists", undefined, "absent"), false],
  [expression("DoesNotExist"), false],
  [expression("DoesNotExist", undefined, "absent"), true],
  [expression("DoesNotExist", undefined, "hasOwnProperty"), true],
  [{ matchLabels: { app: "web" }, ...expression("In", ["db"]) }, false],
];
it.each(rows)("a selector matches as in Kubernetes %j: %s", (value, expected) => {
  expect(matchLabels(decodeConfig(labelSelector, value, "x"), labels)).toBe(expected);
});

describe("a selector is refused", () => {
  const tooMany = Array.from({ length: 129 }, (_, at) => `v${at}`);
  const rows: [value: unknown, message: string][] = [
    [null, "found null, want an object"],
    [{ matchLabel: {} }, 'field "matchLabel": found an unknown key, want the key "matchLabels"'],
    [{ matchLabels: { app: 1 } }, 'field "matchLabels.app": found 1, want text'],
    [{ matchLabels: { "a b": "x" } }, "want a label's key"],
    [{ matchLabels: { "Ä.com/a": "x" } }, "want a label's key"],
    [{ matchLabels: { [`${"a".repeat(64)}`]: "x" } }, "want a label's key"],
    [{ matchLabels: { app: "-x" } }, "want a label's value"],
    [{ matchLabels: { app: "x".repeat(64) } }, "want a label's value"],
    [JSON.parse('{"matchLabels":{"__proto__":"x"}}'), 'field "matchLabels.__proto__"'],
    [
      { matchLabels: Object.fromEntries(tooMany.map((key) => [key, ""])) },
      'field "matchLabels": found an object, want at most 128 labels',
    ],
    [{ matchExpressions: tooMany.map((key) => ({ key, operator: "Exists" })) }, "want a list of at most 128"],
    [expression("In", tooMany), 'field "matchExpressions[0].values"'],
    [{ matchExpressions: {} }, 'field "matchExpressions": found an object, want a list'],
    [expression("in", ["a"]), 'found "in", want one of "In", "NotIn", "Exists", "DoesNotExist"'],
    [
      expression("In"),
      'field "matchExpressions[0].values": found nothing, want at least one value with the operator In',
    ],
    [expression("NotIn", []), "found an empty list, want at least one value with the operator NotIn"],
    [expression("Exists", ["a"]), "found a list, want no values with the operator Exists"],
    [{ matchExpressions: [{ operator: "Exists" }] }, 'field "matchExpressions[0].key": found nothing'],
  ];
  it.each(rows)("%j", (value, message) => expect(() => decodeConfig(labelSelector, value, "x")).toThrow(message));
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
    ["empty=", true],
    ["app=web,app=db", false],
    ["app in (web", undefined],
    ["", undefined],
    ["app>1", undefined],
    ["!app=web", undefined],
    ["app=a b", undefined],
    ["app in (a,-b)", undefined],
    [Array(129).fill("app").join(), undefined],
    [`app in (${Array(129).fill("web").join()})`, undefined],
  ])("%s: %s", (text, isMatch) => {
    const selector = parseLabelSelector(text);
    expect(selector && matchLabels(selector, labels)).toBe(isMatch);
  });
});
