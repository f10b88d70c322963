/** Faults at every ninth operation of the coordinator; at each: test/long/coordinator-faults.test.ts. */
import { describe } from "vitest";
import { describeFailures } from "./coordinator-failures.ts";
import { describeKills } from "./coordinator-kills.ts";

describe("fail", () => describeFailures(9));
describe("kill", () => describeKills(9));
