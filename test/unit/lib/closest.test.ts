import { expect, it } from "vitest";
import { findClosest } from "../../../host/lib/closest.ts";

const known = ["ipv4", "ipv6", "interface", "cleangateway"];
it.each<[word: string, expected: string | undefined]>([
  ["ipv4", "ipv4"],
  ["IPV4", "ipv4"],
  ["ipv5", "ipv4"],
  ["cleanGateway", "cleangateway"],
  ["cleangatewya", "cleangateway"],
  ["nic", undefined],
  ["", undefined],
  ["x".repeat(100_000), undefined],
])("the closest known word of %s is %s", (word, expected) => {
  expect(findClosest(word, known)).toBe(expected);
});
