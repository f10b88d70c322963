#!/usr/bin/env node
/** The executable `berth-controller`: berth-controller-main.ts, on a Node.js that can load it. */
import { requireNode } from "./require-node.ts";

requireNode("berth-controller");
await import("./berth-controller-main.ts");
