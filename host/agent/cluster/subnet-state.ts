/** Reads a Subnet to explain to a refused pod why no pool was generated for it. */
import type { Labels } from "../../config/label-selector.ts";
import type { SubnetState } from "../../ipam/subnet-capacity.ts";
import { isNotFound, type KubeApi } from "../../kubernetes/kube-api.ts";
import { messageOf } from "../../lib/describe.ts";
import { API_PATH } from "../../resources/fields/metadata.ts";
import { subnetStatus } from "../../resources/status.ts";
import { decodeSubnet, refuseNamespace } from "../../resources/subnet.ts";
import { SUBNET_READ_MS } from "../add-deadline.ts";

interface SubnetQuestion {
  readonly name: string;
  /** Of the workload that names it. */
  readonly namespace: string;
  readonly labels: Labels;
}

/** Never rejects: the pod is refused anyway, and the state is part of the message. */
export async function readSubnetState(
  api: KubeApi,
  { name, namespace, labels }: SubnetQuestion,
  signal: AbortSignal,
): Promise<SubnetState> {
  const path = `${API_PATH}/subnets/${encodeURIComponent(name)}`;
  try {
    const object = await api.call({ method: "GET", path, lane: "pod", patienceMs: SUBNET_READ_MS, signal });
    const { spec, deleting } = decodeSubnet(object, `Subnet "${name}"`);
    const refusal = refuseNamespace(spec, namespace, labels);
    const { waiting } = subnetStatus.safeParse(object.status).data ?? {};
    return { kind: "there", family: spec.family, isDeleting: deleting, refusal, waiting };
  } catch (error) {
    if (isNotFound(error)) return { kind: "absent" };
    return { kind: "unseen", why: `Subnet "${name}" cannot be read: ${messageOf(error)}` };
  }
}
