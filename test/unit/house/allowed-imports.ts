/**
 * The imports between the folders of host/, from the bottom up: a row names the imports of its folder besides itself,
 * and only rows above it may be named. A row for a file is for that file alone; the row of a folder with subfolders of
 * its own rows is for its other files. An import that is not listed needs a decision: add it here when the folder
 * should know the other one, else pass what is needed as an argument.
 */
export const ALLOWED_IMPORTS: Readonly<Record<string, string>> = {
  lib: "",
  net: "",
  core: "lib net",
  cni: "lib net",
  config: "lib net cni",
  records: "",
  resources: "lib net core cni config",
  plan: "net",
  ipam: "net core cni config records resources",
  kubernetes: "lib config",
  metrics: "lib net kubernetes",
  registry: "lib net config resources ipam kubernetes",
  kernel: "lib net plan",
  coordinator: "lib net cni config plan kernel",
  ifacer: "lib net cni config plan kernel",
  findings: "lib net config records resources plan ipam registry kernel coordinator",
  agent:
    "lib net core cni config records resources plan ipam kubernetes metrics registry kernel coordinator ifacer findings",
  install: "lib cni config resources plan kubernetes kernel coordinator",
  controller: "lib net core cni config records resources ipam kubernetes metrics registry findings",
  cli: "lib net core cni config records resources kubernetes coordinator ifacer install findings",
  "extension.ts": "resources kubernetes metrics findings agent controller cli",
  bin: "lib core config kernel kubernetes metrics agent install controller cli extension.ts",
};

/** The same inside the agent. */
export const ALLOWED_IN_AGENT: Readonly<Record<string, string>> = {
  "agent/log": "",
  "agent/request": "agent/log",
  "agent/netns": "agent/request",
  "agent/fences": "agent/netns",
  "agent/liveness": "agent/request",
  "agent/gc": "agent/log agent/liveness agent/fences",
  "agent/reconcile": "agent/liveness agent/fences agent/gc",
  "agent/detection": "agent/log",
  "agent/ipam": "agent/request agent/detection",
  "agent/metrics": "agent/ipam",
  "agent/coordinator": "agent/log agent/request agent/detection agent/ipam",
  "agent/ifacer": "agent/request",
  "agent/backend.ts": "agent/log agent/request agent/ipam",
  "agent/server": "agent/log agent/request agent/ipam agent/metrics",
  "agent/operate":
    "agent/log agent/request agent/backend.ts agent/coordinator agent/ipam agent/server agent/detection agent/netns",
  "agent/embedded": "agent/request agent/netns agent/backend.ts agent/detection agent/ipam agent/metrics",
  "agent/cluster":
    "agent/request agent/backend.ts agent/detection agent/gc agent/ipam agent/metrics agent/server agent/reconcile agent/fences agent/liveness",
  "agent/agent.ts":
    "agent/log agent/backend.ts agent/cluster agent/coordinator agent/embedded agent/ifacer agent/ipam agent/metrics agent/operate agent/request agent/server",
};

/** The same inside the controller. */
export const ALLOWED_IN_CONTROLLER: Readonly<Record<string, string>> = {
  controller: "",
  "controller/owners": "controller",
  "controller/usage": "controller",
  "controller/certificates": "controller",
  "controller/finalizers": "controller",
  "controller/gc": "controller",
  "controller/notices": "controller controller/gc",
  "controller/epoch": "controller controller/gc",
  "controller/subnets": "controller controller/finalizers",
  "controller/conditions": "controller",
  "controller/networks": "controller controller/conditions",
  "controller/controllers.ts":
    "controller controller/conditions controller/epoch controller/finalizers controller/gc controller/networks controller/notices controller/owners controller/subnets controller/usage",
  "controller/controller-process.ts": "controller controller/owners",
  "controller/status-server.ts": "controller/controller-process.ts",
};
