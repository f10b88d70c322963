import { expect, it } from "vitest";
import { decodeNetworkSelections } from "../../../host/config/network-selection.ts";

it.each([
  ["", undefined],
  ["  \n", undefined],
  ["a", [{ name: "a" }]],
  [" a , b ", [{ name: "a" }, { name: "b" }]],
  ["ns/a@net3", [{ namespace: "ns", name: "a", interface: "net3" }]],
  ["a.b@eth1.100", [{ name: "a.b", interface: "eth1.100" }]],
  ["[]", []],
  ['[{"name":"a"}]', [{ name: "a" }]],
  [
    ' [{"name":"a","namespace":"ns","interface":"net1","ips":["10.0.0.1"],"mac":"x","default-route":[]}]',
    [{ name: "a", namespace: "ns", interface: "net1", isAsking: true }],
  ],
  [
    '[{"name":"a","ips":[]},{"name":"b","cni-args":{"ips":"10.0.0.1"}}]',
    [{ name: "a" }, { name: "b", isAsking: true }],
  ],
  ['[{"name":"a","ips":null,"cni-args":{"vlan":3}}]', [{ name: "a" }]],
  ['[{"name":"a","ipam-claim-reference":"db.net1"}]', [{ name: "a", claim: "db.net1" }]],
])("the networks %j", (text, expected) => {
  expect(decodeNetworkSelections(text, "x")).toEqual(expected);
});

it.each([
  ["a,", 'annotation n: found "", want [namespace/]name[@interface]'],
  ["a//b", 'found "a//b", want [namespace/]name[@interface]'],
  ["a@b@c", 'found "a@b@c", want [namespace/]name[@interface]'],
  ["/a", 'found "/a"'],
  ["a@", 'found "a@"'],
  ["A", 'field "[0].name": found "A", want a name'],
  ["x,n.s/a", 'field "[1].namespace": found "n.s", want the name of a namespace'],
  ["a@abcdefghijklmnop", 'field "[0].interface": found "abcdefghijklmnop", want an interface name'],
  ['{"name":"a"}', "found an object, want a list"],
  ['[{"name":"a"}', "Malformed JSON at line 1, column 14"],
  ['["a"]', 'field "[0]": found "a", want an object'],
  ["[{}]", 'field "[0].name": found nothing, want a name'],
  ['[{"name":"a","ipam-claim-reference":"A b"}]', 'field "[0].ipam-claim-reference": found "A b", want a name'],
])("the networks %j are refused", (text, message) => {
  expect(() => decodeNetworkSelections(text, "annotation n")).toThrow(message);
});
