/**
 * Another node's agent asks for addresses of a node that is lost, on a real segment: it knows no link for them, and
 * takes the one under a NIC that it has from that pool.
 */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Lab, makeLab } from "./detection-lab.ts";

const SCRIPT = join(import.meta.dirname, "detection-lost-node-child.ts");

let lab: Lab;

beforeAll(() => {
  lab = makeLab("bkdn");
});

afterAll(() => lab?.[Symbol.dispose]());

function ask(netns: string, ...addresses: readonly string[]): unknown {
  const argv = [`--net=/run/netns/${lab.node}`, process.execPath, SCRIPT, netns, ...addresses];
  return JSON.parse(execFileSync("nsenter", argv, { encoding: "utf8" }));
}

it("conflict: a pod of the lost node that still answers keeps its address, the silent ones are free", () => {
  const own = lab.addPod({ kind: "macvlan", addresses: ["10.6.0.9/24"] });
  lab.addPod({ addresses: ["10.6.0.1/24"] });
  expect(ask(own.netns, "10.6.0.1", "10.6.0.2", "10.6.0.3")).toEqual(["10.6.0.2", "10.6.0.3"]);
});

it("conflict: without a NIC of the pool, or when its namespace is gone, nothing is known, and nothing is free", () => {
  expect(ask("-", "10.6.0.4")).toEqual([]);
  expect(ask("gone", "10.6.0.4")).toEqual([]);
});

it("conflict: nor when the segment cannot be reached", () => {
  const own = lab.addPod({ kind: "macvlan", addresses: ["10.6.0.8/24"] });
  lab.ip(lab.switch, "link set node down");
  expect(ask(own.netns, "10.6.0.5")).toEqual([]);
  lab.ip(lab.switch, "link set node up");
});
