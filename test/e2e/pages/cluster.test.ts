/** The pages for a cluster, typed on a real API server. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { applyObject } from "../../lab/apply.ts";
import { definitionsCrd, namespaceObject, poolObject, settingsObject } from "../../lab/cluster/objects.ts";
import { startPlane } from "../../lab/cluster/plane.ts";
import { runCommand } from "../../lab/command.ts";
import type { ControlPlane } from "../../lab/control-plane.ts";
import type { KubeObject } from "../../lab/kube-client.ts";
import { executePart, partsAt, Workstation } from "./script.ts";
import type { ExecutedPart } from "./table.ts";

const API = "/apis/ipam.vendor.io/v1";
const SETTINGS = "/api/v1/namespaces/kube-system/configmaps/vendor-conf";

let plane: ControlPlane;
/** Shared by the pages: a later one reads the files of an earlier one. */
let workstation: Workstation;

beforeAll(async () => {
  plane = await startPlane();
  workstation = new Workstation(plane.kubeconfig);
  const objects = [
    definitionsCrd(),
    namespaceObject("shop"),
    poolObject({ name: "blue", subnet: "10.6.0.0/24" }),
    { ...berthKind("ReservedIP", "printers"), spec: { ips: ["10.6.0.9"] } },
    { ...settingsObject({ enableIPv6: false }), metadata: { name: "vendor-conf", namespace: "kube-system" } },
  ];
  for (const object of objects) await applyObject(plane.client, object as KubeObject);
});

afterAll(async () => {
  workstation?.[Symbol.dispose]();
  await plane?.stop();
});

const berthKind = (kind: string, name: string) => ({ apiVersion: "ipam.vendor.io/v1", kind, metadata: { name } });

function execute(part: ExecutedPart) {
  const { home, env } = workstation;
  return executePart(part, (argv) => runCommand(argv, { cwd: home, env }));
}

it.each(partsAt("cluster"))("%s", async (_, part) => {
  await execute(part);
});

const readAll = async () => {
  const lists = ["ippools", "reservedips"].map((plural) => plane.client.get(`${API}/${plural}`));
  const objects: KubeObject[] = (await Promise.all(lists)).flatMap(({ items }) => items);
  return [...objects.map(({ kind, spec }) => ({ kind, spec })), (await plane.client.get(SETTINGS)).data];
};

it.each(partsAt("empty cluster"))("after a loss of all objects: %s", async (_, part) => {
  const before = await readAll();
  for (const path of [`${API}/ippools/blue`, `${API}/reservedips/printers`, SETTINGS]) await plane.client.delete(path);
  await execute(part);
  expect(await readAll()).toEqual(before);
});
