/** The beginning of the cluster's story: kinds, an account and manifests, agents on two nodes, pods of a Deployment. */
import { join } from "node:path";
import { applyFile, applyFolder, applyObject, readDocuments } from "../../../test/lab/apply.ts";
import { attachmentOf } from "../../../test/lab/history/follow.ts";
import { KubeError, type KubeObject } from "../../../test/lab/kube-client.ts";
import { eventually } from "../../../test/lab/waiting.ts";
import { root } from "../../setup/paths.mjs";
import {
  allocations,
  allocationsOf,
  attach,
  claimPing,
  kubectlGetAllocations,
  nodeOf,
  requirePod,
  type Scene,
} from "./acts.ts";
import { ALLOCATIONS, EXAMPLES } from "./stage.ts";

export const manifestScene: Scene = async (stage, narrator) => {
  narrator.scene(
    "A cluster and its manifests",
    `etcd and kube-apiserver are the real ones; there are no controllers. Berth's kinds, its accounts, the policies and the examples
     in deploy/examples are applied as kubectl apply --server-side does it.`,
  );
  const { client } = stage.plane;
  const kinds = await applyFolder(client, join(root, "deploy", "crds"));
  const account = await applyFile(client, join(root, "deploy", "rbac.yaml"));
  const controller = await applyFile(client, join(root, "deploy", "controller.yaml"));
  const policies = await applyFile(client, join(root, "deploy", "policies.yaml"));
  narrator.lines([
    `deploy/crds/            ${kinds.length} kinds`,
    `deploy/rbac.yaml        ${account.length} objects`,
    `deploy/controller.yaml  ${controller.length} objects`,
    `deploy/policies.yaml    ${policies.length} objects`,
  ]);
  const examples = await applyFolder(client, EXAMPLES);
  narrator.lines([`deploy/examples/   ${examples.join(", ")}`]);
  const { items } = await client.get("/apis/ipam.vendor.io/v1/ippools");
  const names = items.map(({ metadata }: KubeObject) => metadata.name);
  narrator.claim("the pools are there", items.length === 3, names.join(", "));

  const [pool] = await readDocuments(join(EXAMPLES, "20-pools.yaml"));
  const wrong = { ...pool, metadata: { name: "wrong" }, spec: { ...pool.spec, gateway: "10.61.0.1" } };
  const refusal = await applyObject(client, wrong).then(
    () => "nothing",
    (error: unknown) => (error instanceof KubeError ? error.text : String(error)),
  );
  const isExplained = refusal.includes("spec.gateway");
  narrator.claim("a pool whose gateway lies elsewhere is refused by the API server itself", isExplained, refusal);
};

export const nodesScene: Scene = async (stage, narrator) => {
  narrator.scene(
    "Two nodes, two agents",
    `Each node has an agent, which knows the cluster from its own watches: pools, settings, and the pods of its own node. It has a token
     of the account from deploy/rbac.yaml, as the node's kubelet would get it for the agent's pod: it names the node.`,
  );
  await stage.startNodes();
  for (const { name, agent } of stage.nodes) {
    const { status, body } = await eventually(
      () => agent.request("/v1/health"),
      (health) => health.status === 200,
      10_000,
    );
    narrator.claim(`the agent of ${name} is ready`, status === 200, status === 200 ? "ready" : body);
  }
  const client = await stage.openAgentClient();
  try {
    const tried = await client.delete("/apis/ipam.vendor.io/v1/ippools/lan-v4").catch((error: unknown) => error);
    const isRefused = tried instanceof KubeError && tried.status === 403;
    narrator.claim("an agent may not delete a pool", isRefused, isRefused ? tried.text : "it was deleted");
  } finally {
    client.close();
  }
};

export const deploymentScene: Scene = async (stage, narrator) => {
  narrator.scene(
    "Pods of a Deployment",
    `web wants four pods and names no pool: the namespace shop does, one for each family. The scheduler binds two of them to each node
     (here the demo does). The runtime takes some time to make a pod's sandbox; the agent does not wait for it.`,
  );
  for (let number = 0; number < 4; number++) {
    await stage.createPod("50-web.yaml", `web-${number}`, nodeOf(stage, number % 2));
  }
  const ahead = await eventually(
    () => allocations(stage),
    (objects) => objects.length === 8,
    5_000,
  );
  narrator.claim(
    "all addresses are claimed before any runtime has asked",
    ahead.length === 8,
    `${ahead.length} objects`,
  );
  for (let number = 0; number < 4; number++) await attach(stage, narrator, requirePod(stage, `web-${number}`));
  narrator.remark("One object for each address, whose name is the address. Whoever creates it has the address:");
  narrator.lines(await kubectlGetAllocations(stage));
  const [web0, web1] = [requirePod(stage, "web-0"), requirePod(stage, "web-1")];
  const [address = ""] = web0.addresses;
  const { name } = attachmentOf(address, web0.uid);
  const [object] = await allocationsOf(stage, web0);
  const copy = { ...object, metadata: { name } };
  const second = await stage.plane.client.create(ALLOCATIONS, copy).catch((error: unknown) => error);
  const isTaken = second instanceof KubeError && second.reason === "AlreadyExists";
  narrator.claim("a second object of that name cannot be created", isTaken, isTaken ? second.text : "it was created");
  await claimPing(narrator, web0, web1);
};

export const reservedScene: Scene = async (stage, narrator) => {
  narrator.scene(
    "A reserved address",
    `Pool desk has three addresses, and the ReservedIP printer says that no pod may have 10.60.0.121. So two pods get one, and the third is
     told why it does not.`,
  );
  for (const number of [0, 1]) {
    await attach(stage, narrator, await stage.createPod("70-desk.yaml", `desk-${number}`, nodeOf(stage, number)));
  }
  const given = ["desk-0", "desk-1"].flatMap((name) => requirePod(stage, name).addresses).sort();
  const areOthers = given.join() === "10.60.0.120,10.60.0.122";
  narrator.claim("the printer's address is left out", areOthers, given.join(", "));
  const desk2 = await stage.createPod("70-desk.yaml", "desk-2", nodeOf(stage, 0));
  const { exitCode, stderr } = await stage.call("add", desk2);
  narrator.claim("the refusal names the pool", exitCode !== 0 && stderr.includes("desk"), stderr.trim());
  await stage.call("del", desk2);
  await stage.removePod(desk2);
};
