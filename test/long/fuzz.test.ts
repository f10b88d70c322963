/** Fuzzing guided by coverage, for an hour in all. */
import { fuzzAll } from "../fuzz/campaigns.ts";

fuzzAll(3_600);
