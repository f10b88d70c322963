/** Faults at every operation of the coordinator; the gate takes every fifth. */
import { describe } from "vitest";
import { describeFailures } from "../netns/coordinator-failures.ts";
import { describeKills } from "../netns/coordinator-kills.ts";

describe("fail", () => describeFailures(1));
describe("kill", () => describeKills(1));
