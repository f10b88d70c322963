import { expect, it } from "vitest";
import { decodeNetworkSelections } from "../../../host/config/network-selection.ts";

it.each([
  ["", undefined],
  [" a , b ", [{ name: "a" }, { name: "b" }]],
  ["ns/a@net3", [{ namespace: "ns", name: "a", interface: "net3" }]],
  ["a.b@eth1.100", [{ name: "a.b", interface: "eth1.100" }]],
  [
    ' [{"name":"a","namespace":"ns","interface":"net1","ips":["10.0.0.1"],"mac":"x","default-route":[]}]',
    [{ name: "a", namespace: "ns", interface: "net1", isAsking: true }],
  ],
  ['[{"name":"a","ips":[]}]', [{ name: "a" }]],
  ['[{"name":"b","cni-args":{"ips":"10.0.0.1"}}]', [{ name: "b", isAsking: true }]],
  ['[{"name":"a","ips":null,"cni-args":{"vlan":3}}]', [{ name: "a" }]],
  ['[{"name":"a","ipam-claim-reference":"db.net1"}]', [{ name: "a", claim: "db.net1" }]],
  // As Multus reads them: an empty value or null is not set.
  ['[{"name":"a","namespace":"","interface":"","ipam-claim-reference":""}]', [{ name: "a" }]],
  ['[{"name":"a","namespace":null,"interface":null,"ipam-claim-reference":null,"mac":null}]', [{ name: "a" }]],
  ['[{"name":"a","interfaceRequest":"net7","interface":"net8"}]', [{ name: "a", interface: "net8" }]],
  ['[{"name":"a","interfaceRequest":"net7","interface":""}]', [{ name: "a", interface: "net7" }]],
  ['[{"name":"a","portMappings":[{"hostPort":1}],"x":{"name":"b","name":"c"},"x":2}]', [{ name: "a" }]],
  // Of a key that is repeated, in any case, the last value that is not null.
  ['[{"name":"a","name":null}]', [{ name: "a" }]],
  ['[{"NAME":"c","name":"b","NAME":"a"}]', [{ name: "a" }]],
  ['[{"Name":"a","name\u017fpace":"no","Name\u017fpace":"ns"}]', [{ name: "a", namespace: "ns" }]],
  ['[{"name":"a","\u0131nterface":"net9"}]', [{ name: "a" }]],
  ['[{"name":"a","interface":"net1","interface":""}]', [{ name: "a" }]],
  [" ns / a @ net3 ", [{ namespace: "ns", name: "a", interface: "net3" }]],
])("the networks %j", (text, expected) => expect(decodeNetworkSelections(text, "x")).toEqual(expected));

it.each([
  ['{"name":"a"}', "found an object, want a list"],
  ['[{"name":"a"}', "Malformed JSON at line 1, column 14"],
])("the networks %j are none", (text, message) => {
  expect(() => decodeNetworkSelections(text, "annotation n")).toThrow(message);
});

it.each([
  ["a,", 1, 'annotation n: field "[1]": found "", want [namespace/]name[@interface]'],
  ["a//b", 0, 'field "[0]": found "a//b", want [namespace/]name[@interface]'],
  ["a@b@c", 0, 'field "[0]": found "a@b@c", want [namespace/]name[@interface]'],
  ["A,b", 0, 'field "[0].name": found "A", want a name'],
  ["x,n.s/a", 1, 'field "[1].namespace": found "n.s", want the name of a namespace'],
  ["a@abcdefghijklmnop", 0, 'field "[0].interface": found "abcdefghijklmnop", want an interface name'],
  ['["a",{"name":"b"}]', 0, 'field "[0]": found "a", want an object'],
  ["[{}]", 0, 'field "[0].name": found nothing, want a name'],
  ['[{"name":"b"},{"name":"a","interface":7}]', 1, 'field "[1].interface": found 7, want an interface name'],
  ['[{"name":"a","ipam-claim-reference":"A b"}]', 0, 'field "[0].ipam-claim-reference": found "A b", want a name'],
])("of the networks %j only entry %i is wrong", (text, wrong, message) => {
  const found = decodeNetworkSelections(text, "annotation n") ?? [];
  expect(found.flatMap(({ fault }, index) => (fault === undefined ? [] : [index]))).toEqual([wrong]);
  expect(found[wrong]).toMatchObject({ name: "", fault: { message: expect.stringContaining(message) } });
});

it("a wrong entry has its NIC's name if that is right", () => {
  const wrong = ({ name, ...entry }: object & { name?: string }) => JSON.stringify([{ name: name ?? "A", ...entry }]);
  const nicOf = (text: string) => decodeNetworkSelections(text, "x")?.[0]?.interface;
  const entries = [{ interface: "net7" }, { interfaceRequest: "net7" }, { interface: "a b" }, {}];
  expect(entries.map((each) => nicOf(wrong(each)))).toEqual(["net7", "net7", undefined, undefined]);
});
