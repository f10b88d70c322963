/**
 * The extensions that a package beside the house may add to it. Nothing here imports a package: only host/bin names
 * them, and a package is removed by deleting its folder and its name there.
 */
import type { Command } from "commander";
import type { z } from "zod";
import type { AgentParts, Server } from "./agent/agent.ts";
import type { Backend } from "./agent/backend.ts";
import type { Audit } from "./agent/log/audit.ts";
import type { Routes } from "./agent/operate/status-api.ts";
import type { Driver } from "./agent/request/driver.ts";
import type { CommandLine } from "./cli/command-line.ts";
import type { OpenCaches } from "./controller/caches.ts";
import type { Controllers } from "./controller/leadership.ts";
import type { Measurements } from "./controller/types.ts";
import type { Problem } from "./findings/problem.ts";
import type { KubeApi } from "./kubernetes/kube-api.ts";
import type { MetricSet } from "./metrics/metric.ts";
import type { CustomKind } from "./resources/custom-kind.ts";

/** The values of all options of a program. Their consumers are methods, so that a package may name those it reads. */
type Flags = object;

/** Ends the program with a clause that says why its options are wrong. */
export type Refuse = (text: string) => never;

/** The parts that a server beside the controller may use. */
export interface ControllerParts extends Omit<AgentParts, "backend" | "answer"> {
  readonly api: KubeApi;
  readonly caches: OpenCaches;
}

/** Controllers that run while a process leads, and their resources. */
export interface MoreControllers {
  readonly controllers: Controllers;
  /** Why a connection may not last: a sentence without a full stop. */
  readonly problem?: string | undefined;
  close?(): Promise<void>;
}

/**
 * The extensions of a package to the agent, in agent-extension.ts, which loads nothing for other programs. Every agent
 * reads all of these when it starts.
 */
export interface AgentExtension {
  readonly addAgentOptions?: (program: Command) => void | Promise<void>;
  /** Opens POST routes of the agent's status API, by their paths. */
  readonly openRoutes?: (backend: Backend, audit: Audit) => Routes;
  /** Opens the driver of a runtime that does not speak CNI, by the agent's options. */
  openDriver?(flags: Flags): Promise<Driver>;
  /** Undefined if the agent's options do not ask for one. */
  agentServer?(flags: Flags, refuse: Refuse): Promise<Server<AgentParts> | undefined>;
}

/** The extensions to the other programs, which all read them at start: modules for only one are imported in it. */
export interface Extension {
  /** The kinds whose definitions are generated. */
  readonly readKinds?: () => Promise<readonly CustomKind[]>;
  /** The problems that its searches of `check` can find: docs/findings.md is generated from them. */
  readonly readProblems?: () => Promise<readonly Problem[]>;
  /** Sections of the chart's values; its templates work without them. */
  readonly readChartValues?: () => Promise<z.ZodRawShape>;
  /** Adds commands to berthctl and kubectl berth, behind those of the house in the help, and searches to `check`. */
  readonly addCommands?: (cli: CommandLine) => void | Promise<void>;
  readonly addControllerOptions?: (program: Command) => void | Promise<void>;
  /** Undefined if the controller's options do not ask for one. */
  controllerServer?(flags: Flags, refuse: Refuse): Promise<Server<ControllerParts> | undefined>;
  /** Opened once, with the controller's options; closed after the controllers have stopped. */
  openControllers?(flags: Flags, refuse: Refuse): Promise<MoreControllers>;
  /** Adds metrics of the controller; `measured`: the counts of its parts. */
  addMetrics?(set: MetricSet, measured: () => Measurements): Promise<void>;
}
