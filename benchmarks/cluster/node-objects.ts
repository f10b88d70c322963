/** The objects of addresses of one node. */
import type { ControlPlane } from "../../test/lab/control-plane.ts";
import { COLLECTION } from "./bare-object.ts";

export async function countObjects(plane: ControlPlane, node: string): Promise<number> {
  return (await plane.client.get(`${COLLECTION}?fieldSelector=spec.node%3D${node}`)).items.length;
}
